//! Checks that a receiver keeps the data that it named by SACK.
//!
//! RFC 2018 8 does not require it: "the data receiver is permitted to discard data in its queue
//! that has not been acknowledged to the data sender, even if the data has already been reported in
//! a SACK option". Ours refuses arrivals if memory is short, and keeps what it named. The streams
//! do not show a discard: the sender sends the data again, after a time-out.

use std::collections::BTreeMap;

use whimbrel_wire::tcp::{SackBlock, TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, SeqNum};

/// Ranges beyond the last acknowledgment, for each receiver and sender, and the ends of streams.
#[derive(Default, Debug)]
pub(crate) struct Sacked {
    named: BTreeMap<[Endpoint; 2], Vec<SackBlock>>,
    /// Number after the FIN.
    ends: Vec<([Endpoint; 2], SeqNum)>,
}

impl Sacked {
    /// Forgets all ranges, for a new connection between the ends.
    pub(crate) fn forget(&mut self) {
        self.named.clear();
    }

    /// Notes a FIN to the first end of a flow, from the second; its number is before `end`. Data
    /// named beyond it is not in the stream, and may be forgotten when the FIN is taken.
    pub(crate) fn on_fin(&mut self, flow: [Endpoint; 2], end: SeqNum) {
        self.ends.push((flow, end));
    }

    /// Notes a segment from the first end of a flow to the second.
    pub(crate) fn on_segment(
        &mut self,
        flow: [Endpoint; 2],
        header: &TcpHeader,
    ) -> Result<(), String> {
        if header.flags.contains(TcpFlags::SYN) || header.flags.contains(TcpFlags::RST) {
            self.named.remove(&flow);
            return Ok(());
        }
        let TcpHeader { ack, options, .. } = header;
        let named = self.named.entry(flow).or_default();
        named.retain(|block| ack.before(block.right));
        // RFC 2883 4: a block below the acknowledgment names duplicate data. One that begins 2^31
        // below it is recognised by its end: on the circle its beginning lies as far ahead.
        let is_fresh = |block: &&SackBlock| ack.at_or_before(block.left) && ack.before(block.right);
        let fresh = options.sack.as_slice().iter().filter(is_fresh);
        fresh.for_each(|block| join(named, *block));
        let is_over = self.ends.contains(&(flow, *ack));
        let is_wanted =
            |block: &&SackBlock| block.left.before(*ack) || (block.left == *ack && !is_over);
        let wanted = named.iter().find(is_wanted);
        let broken = wanted.map(|SackBlock { left, right }| {
            format!("wants again what SACK named, {left:?} to {right:?}: {header:?}")
        });
        if named.is_empty() {
            self.named.remove(&flow);
        }
        broken.map_or(Ok(()), Err)
    }
}

/// Adds a block, merged with those that it touches.
fn join(named: &mut Vec<SackBlock>, mut block: SackBlock) {
    named.retain(|other| {
        let apart = other.right.before(block.left) || block.right.before(other.left);
        if !apart {
            block.left = block.left.earlier(other.left);
            block.right = block.right.later(other.right);
        }
        apart
    });
    named.push(block);
}

#[cfg(test)]
mod tests;
