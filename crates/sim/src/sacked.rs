//! What a receiver named by SACK it has, and is never to want again.
//!
//! RFC 2018 8 lets it: "the data receiver is permitted to discard data in its queue that has not been
//! acknowledged to the data sender, even if the data has already been reported in a SACK option". Ours
//! refuses what arrives where memory is short, and keeps what it named. That it forgot something the
//! streams do not show: whoever sent it sends it again, after a time-out.

use std::collections::BTreeMap;

use whimbrel_wire::tcp::{SackBlock, TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, SeqNum};

/// The ranges beyond the last acknowledgment, of each receiver and sender, and where streams ended.
#[derive(Default, Debug)]
pub(crate) struct Sacked {
    named: BTreeMap<[Endpoint; 2], Vec<SackBlock>>,
    /// One past the FIN.
    ends: Vec<([Endpoint; 2], SeqNum)>,
}

impl Sacked {
    /// The same ends may have another connection, to which nothing was named.
    pub(crate) fn begin_anew(&mut self) {
        self.named.clear();
    }

    /// A FIN is sent to the first end of a flow, by the second; its number is before `end`. What was named
    /// behind it is not of the stream, and may be forgotten when it is taken.
    pub(crate) fn on_fin(&mut self, flow: [Endpoint; 2], end: SeqNum) {
        self.ends.push((flow, end));
    }

    /// The first end of a flow sends this to the second.
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
        // RFC 2883 4: a block below the acknowledgment names what came twice. One that begins 2^31 below it
        // is told by its end: on the circle its beginning lies as far ahead.
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

/// Adds a block, as one with those that it touches.
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
