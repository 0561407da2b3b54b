//! Super-segments cut here, where the device cuts none: a connection is asked once for several segments,
//! which then leave one behind the other.

use alloc::collections::VecDeque;

use bytes::Bytes;
use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::Context;
use whimbrel_tcp::conn::{Marking, OutgoingSegment};
use whimbrel_wire::tcp::TcpFlags;

use crate::ip::{FlowKey, SegmentOut};
use crate::net::Net;

/// The output of a connection in its turn, and the rest that has not left yet.
#[derive(Debug)]
pub(crate) struct SegmentationQueue {
    /// The most text that it sends, bytes: what the device cuts, or what is cut here.
    pub(crate) turn: u32,
    /// True if super-segments are cut here, because the device cuts none.
    pub(crate) is_here: bool,
    /// The headers of what is left, with the number of its first byte.
    head: Option<Head>,
    text: VecDeque<Bytes>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    key: FlowKey,
    outgoing: OutgoingSegment,
    marking: Marking,
    /// Bytes of text that are left.
    left: u32,
}

impl SegmentationQueue {
    /// For a device that takes super-segments of up to `max_text` bytes of text, or of none (0).
    pub(crate) fn new(max_text: u32, mtu: u16) -> Self {
        let mut cutting = Self { turn: 0, is_here: false, head: None, text: VecDeque::new() };
        cutting.set_sizes(max_text, mtu);
        cutting
    }

    /// The device takes so much from now on.
    pub(crate) fn set_sizes(&mut self, max_text: u32, mtu: u16) {
        let here = (SEGMENTS * u32::from(mtu)).min(MOST_TEXT);
        self.turn = if max_text == 0 { here } else { max_text };
        self.is_here = max_text == 0;
    }

    /// Drops what is left of this connection if its segments have more text than `mss`.
    pub(crate) fn forget_larger(&mut self, key: &FlowKey, mss: u16) {
        if self.head.as_ref().is_some_and(|head| head.key == *key && head.outgoing.gso_size > mss) {
            self.head = None;
            self.text.clear();
        }
    }

    /// Drops what is left of a connection from this address.
    pub(crate) fn forget(&mut self, local: u16) {
        if self.head.as_ref().is_some_and(|head| head.key.local_index == local) {
            self.head = None;
            self.text.clear();
        }
    }

    /// Takes a super-segment, whose text stands in `tx`: [`SegmentationQueue::transmit`] makes segments of it.
    #[inline(never)]
    pub(crate) fn begin(
        &mut self,
        key: FlowKey,
        outgoing: OutgoingSegment,
        marking: Marking,
        tx: &mut TxSegment,
    ) {
        let left = tx.payload.bytes();
        self.head = Some(Head { key, outgoing, marking, left });
        self.text.extend(tx.payload.as_slice().iter().cloned());
        tx.payload.clear();
    }

    /// True if nothing is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Writes the next segment of what is being cut, and says whether it leaves.
    // Few are: inlined, it would take registers from those that are not.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, cx: &Context, net: &mut Net, tx: &mut TxSegment) -> bool {
        let Some(Head { key, mut outgoing, marking, left }) = self.head.take() else {
            return false;
        };
        let len = u32::from(outgoing.gso_size).min(left);
        let mut missing = len as usize;
        while missing > 0
            && let Some(first) = self.text.front_mut()
        {
            let part = first.split_to(missing.min(first.len()));
            missing -= part.len();
            if first.is_empty() {
                self.text.pop_front();
            }
            // There is room: the whole had no more slices.
            let _pushed = tx.payload.push(part);
        }
        if len < left {
            let mut rest = outgoing;
            rest.seq += len;
            // RFC 3168 6.1.2: "it SHOULD set the CWR bit only on the first new data packet that it transmits."
            if !rest.has_ace_with_cwr() {
                rest.flags = rest.flags.without(TcpFlags::CWR);
            }
            self.head = Some(Head { key, outgoing: rest, marking, left: left - len });
            // What ends the text stands on its last segment.
            outgoing.flags = outgoing.flags.without(TcpFlags::PSH | TcpFlags::FIN);
        }
        outgoing.gso_size = 0;
        let order = cx.tunables.option_order;
        net.ip.write_segment(&SegmentOut::of_flow(&key, &outgoing, marking, order), tx)
            && net.transmit(tx, cx.now)
    }
}

/// Segments that are cut here, at most, of what a connection sends in its turn: more would keep other
/// connections waiting.
const SEGMENTS: u32 = 16;
/// Bytes of text in a super-segment that is cut here, at most.
const MOST_TEXT: u32 = 65_000;
