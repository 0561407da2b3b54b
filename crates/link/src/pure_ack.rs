//! Acknowledgments without text, and which of them cover older ones.

use alloc::collections::BTreeMap;

use whimbrel_base::Instant;
use whimbrel_wire::tcp::{TcpFlags, TcpView};
use whimbrel_wire::{Endpoint, IpHeader, Protocol, SeqNum};

/// A TCP segment that acknowledges, without text and without a flag that must not be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PureAck {
    ack: SeqNum,
    flags: TcpFlags,
    has_sack: bool,
    /// The packet's length.
    bytes: usize,
}

/// Reads the ends of a frame's connection, and its acknowledgment if it has no other content.
/// `None` if it is no TCP segment.
fn read(frame: &[u8]) -> Option<Segment> {
    let (ip, payload) = IpHeader::parse(frame).ok()?;
    if ip.protocol != Protocol::TCP || ip.fragment.is_some() {
        return None;
    }
    let (tcp, header_len) = TcpView::parse(payload).ok()?;
    let ends = [Endpoint::new(ip.src, tcp.src_port), Endpoint::new(ip.dst, tcp.dst_port)];
    let ecn = TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE;
    let is_pure = payload.len() == header_len && tcp.flags.without(ecn) == TcpFlags::ACK;
    let ack = is_pure.then(|| PureAck {
        ack: tcp.ack,
        flags: tcp.flags,
        has_sack: tcp.options.has_sack(),
        bytes: frame.len(),
    });
    Some(Segment { ends, ack })
}

/// Ends of a segment's connection, and its acknowledgment.
struct Segment {
    ends: [Endpoint; 2],
    ack: Option<PureAck>,
}

/// True if a frame only acknowledges.
pub(crate) fn is_pure_ack(frame: &[u8]) -> bool {
    read(frame).is_some_and(|segment| segment.ack.is_some())
}

impl PureAck {
    /// True if `newer` says all that this acknowledgment says.
    ///
    /// RFC 9293 3.4: "an acknowledgment of sequence number X indicates that all octets up to but not
    /// including X have been received". Others stay: one of the same number is a duplicate (RFC 5681 2) or
    /// a window update, SACK blocks are repeated a few times only (RFC 2018 4), and the ECN bits count
    /// marks (RFC 3168 6.1.3, RFC 9768 3.2.2). So do longer ones: an option may be among them.
    fn is_covered_by(&self, newer: &Self) -> bool {
        let says_same = self.flags == newer.flags && self.bytes == newer.bytes;
        says_same && !self.has_sack && !newer.has_sack && newer.ack.after(self.ack)
    }
}

/// Waiting acknowledgments in a queue, the last of each connection.
#[derive(Debug, Default)]
pub(crate) struct AckFilter {
    waiting: BTreeMap<[Endpoint; 2], WaitingAck>,
    /// Entries added since the sent ones were last removed.
    noted: usize,
}

/// An acknowledgment that is the last frame of its connection in the queue.
#[derive(Debug)]
struct WaitingAck {
    ack: PureAck,
    /// Time of its first bit: from then on it is not in the queue.
    starts: Instant,
    /// Its number on the link.
    number: u64,
}

impl AckFilter {
    /// Takes a frame. Returns the number of the waiting one that it replaces, if it covers that.
    /// Any other frame of the connection stays behind it.
    pub(crate) fn replace(&mut self, now: Instant, frame: &[u8]) -> Option<u64> {
        let Segment { ends, ack } = read(frame)?;
        let waiting = self.waiting.get_mut(&ends).filter(|waiting| waiting.starts > now)?;
        match ack.filter(|newer| waiting.ack.is_covered_by(newer)) {
            Some(newer) => {
                waiting.ack = newer;
                Some(waiting.number)
            }
            None => {
                self.waiting.remove(&ends);
                None
            }
        }
    }

    /// Notes that a frame waits until `starts` under this number.
    pub(crate) fn note(&mut self, now: Instant, starts: Instant, number: u64, frame: &[u8]) {
        let Some(Segment { ends, ack: Some(ack) }) = read(frame) else { return };
        self.noted += 1;
        if self.noted > Self::MOST_CONNECTIONS / 2 {
            self.noted = 0;
            self.waiting.retain(|_, waiting| waiting.starts > now);
        }
        if starts > now && self.waiting.len() < Self::MOST_CONNECTIONS {
            self.waiting.insert(ends, WaitingAck { ack, starts, number });
        }
    }

    /// Forgets all waiting ones, which are lost.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Most connections whose last acknowledgment is known.
    const MOST_CONNECTIONS: usize = 1 << 12;
}
