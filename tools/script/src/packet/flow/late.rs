//! Decides if one acknowledgment of the host may stand for another that is written.

use alloc::vec::Vec;

use whimbrel_wire::SeqNum;

use super::super::super::ast::{Ack, OptionList, Seq, TcpOption, TcpPacket};
use super::{FlowState, Segment};

/// Bytes of a block: the first, and the one after the last.
type Block = (SeqNum, SeqNum);

impl FlowState {
    /// True if a pure acknowledgment of the host begins at the end of all that it sent. Probes do
    /// not.
    pub(crate) fn is_at_end(&self, segment: &Segment) -> bool {
        self.local_end.is_none_or(|end| end == segment.seq)
    }

    /// True if a written pure acknowledgment begins beyond all that the host sent. An owed one had
    /// to leave before later data, so such a number is wrong now, although it may fit later.
    pub(crate) fn is_beyond_end(&self, body: &TcpPacket) -> bool {
        match (body.seq, self.local_end) {
            (Seq::Relative(seq), Some(end)) => self.local(seq).distance_from(end) > 0,
            _ => false,
        }
    }

    /// True if a written pure acknowledgment follows from the packets so far, so that a later one
    /// may replace it. It begins at the end of all that the host sent, and acknowledges up to the
    /// end of a segment of the peer. It echoes a timestamp of the peer, and its blocks lie between
    /// segments' edges.
    pub(crate) fn may_be_outdone(&self, body: &TcpPacket) -> bool {
        let Seq::Relative(seq) = body.seq else { return false };
        let Some(Ack::Relative(ack)) = body.ack else { return false };
        let is_edge = |at: &u32| self.remote_begins.contains(at) || self.remote_ends.contains(at);
        self.local_end == Some(self.local(seq))
            && echo(body).is_none_or(|ecr| self.remote_stamps.contains(&ecr))
            && self.remote_ends.contains(&ack)
            && written(body)
                .iter()
                .all(|(left, right)| left != right && is_edge(left) && is_edge(right))
    }

    /// True if a segment of the host names or acknowledges all blocks of `body`. Duplicate data is
    /// named once, so that only the same block will do.
    pub(crate) fn names_as_much(&self, body: &TcpPacket, segment: &Segment) -> bool {
        let live = |edge: &u32| self.live_sack_edge(*edge);
        let wanted: Vec<Block> =
            written(body).iter().map(|(left, right)| (live(left), live(right))).collect();
        let came: Vec<Block> = blocks(&segment.options)
            .iter()
            .map(|(left, right)| (SeqNum::new(*left), SeqNum::new(*right)))
            .collect();
        let Some((first, rest)) = wanted.split_first() else { return true };
        let is_named = |block: &Block| {
            is_below(block, segment.ack) || came.iter().any(|outer| is_within(block, outer))
        };
        let acknowledged = match body.ack {
            Some(Ack::Relative(ack)) => self.remote(ack),
            _ => segment.ack,
        };
        // RFC 2883 4: such a block is the first, and lies below the acknowledgment or in the second.
        let is_duplicate = is_below(first, acknowledged)
            || rest.first().is_some_and(|outer| is_within(first, outer));
        let is_first = if is_duplicate { came.first() == Some(first) } else { is_named(first) };
        is_first && rest.iter().all(is_named)
    }
}

fn is_below(block: &Block, ack: SeqNum) -> bool {
    block.1.distance_from(ack) <= 0
}

fn is_within(inner: &Block, outer: &Block) -> bool {
    inner.0.distance_from(outer.0) >= 0 && inner.1.distance_from(outer.1) <= 0
}

/// Timestamp that a segment is to echo.
fn echo(body: &TcpPacket) -> Option<u32> {
    let OptionList::These(options) = &body.options else { return None };
    options.iter().find_map(|option| match option {
        TcpOption::Timestamps { ecr, .. } => Some(*ecr),
        TcpOption::SomeTimestamps { ecr, .. } => *ecr,
        _ => None,
    })
}

/// Blocks that a segment is to have.
fn written(body: &TcpPacket) -> &[(u32, u32)] {
    match &body.options {
        OptionList::Any => &[],
        OptionList::These(options) => blocks(options),
    }
}

fn blocks(options: &[TcpOption]) -> &[(u32, u32)] {
    let named = options.iter().find_map(|option| match option {
        TcpOption::Sack(blocks) => Some(blocks.as_slice()),
        _ => None,
    });
    named.unwrap_or_default()
}
