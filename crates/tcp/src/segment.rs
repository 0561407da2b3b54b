//! Arrived segments, as a device lends them for the length of one call.

use whimbrel_base::packet::{Payload, SegMeta};
use whimbrel_wire::tcp::{TcpFlags, TcpView};
use whimbrel_wire::{SeqNum, TrafficClass};

/// An arrived segment: its header as values, its payload where the device left it.
#[derive(Debug)]
pub struct RxSegment<'a> {
    /// The header, parsed; its options are read when asked for.
    pub header: TcpView<'a>,
    /// The text that follows the header.
    pub payload: Payload<'a>,
    /// The metadata of its arrival.
    pub meta: SegMeta,
    /// The traffic class of its IP header, with the ECN field: CE if a router marked it (RFC 3168 5).
    pub class: TrafficClass,
}

impl RxSegment<'_> {
    /// SEG.LEN (RFC 9293 3.4): the bytes of text, and one each for SYN and FIN.
    #[inline]
    pub fn len(&self) -> u32 {
        let flags = self.header.flags;
        self.payload.len()
            + u32::from(flags.contains(TcpFlags::SYN))
            + u32::from(flags.contains(TcpFlags::FIN))
    }

    /// The number of the first byte of text: a SYN comes before it.
    #[inline]
    pub fn text_seq(&self) -> SeqNum {
        self.header.seq + u32::from(self.header.flags.contains(TcpFlags::SYN))
    }

    /// True if SEG.LEN is zero: a pure acknowledgment, a reset, or nothing at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
