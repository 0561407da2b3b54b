//! The sending half of a connection: what was sent and is not acknowledged, what is due, and what the
//! peer's window and the path admit. The text itself stands in the [`SendQueue`], which is there only
//! while something is in it, so that callers pass it in.

mod acknowledged;
mod application;
mod begin;
mod ecn;
mod lost;
mod mtu_probe;
mod output;

use whimbrel_base::{Instant, Micros, Tick};
use whimbrel_recovery::Path;
use whimbrel_recovery::cc::{Algorithm, Window};
use whimbrel_wire::{SeqNum, WindowScale};

use super::attempts::{Attempts, SendTimer};
use super::{RttEstimator, SendQueue, SendSequence};
use crate::flags::flags;

pub use acknowledged::{Acknowledged, IncomingAck, Order, reports_duplicate};
pub use mtu_probe::plan_mtu_probe;
pub use output::{Head, SendRange, make_mtu_probe, segments};

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    seq: SendSequence,
    rtt: RttEstimator,
    pub(crate) window: Window,
    /// When text was last sent, or when the connection began.
    pub(crate) text_sent: Tick,
    /// Bytes that may wait to be acknowledged.
    size: u32,
    /// Bytes of text in a full segment: the peer's MSS or the path's, less our options.
    mss: u16,
    /// The most text that one acknowledgment took, up to a full segment: RFC 5927 7.2's maxsizeacked,
    /// without headers. One that took several short segments counts as of a long one, after which a
    /// router's report of less is believed only once what it quotes has timed out.
    acked_size: u16,
    flags: Flags,
    /// The scale of the peer's window fields.
    scale: WindowScale,
    attempts: Attempts,
}

/// Bounds of the text that waits, other than the sender's own size.
#[derive(Clone, Copy, Debug)]
pub struct SendBounds {
    /// True if memory is short, and this connection gets little.
    pub is_memory_limited: bool,
    /// Bytes that may wait to be sent for the first time, if that was set.
    pub unsent_low_water: Option<u32>,
}

/// Nagle's algorithm: small segments wait for the acknowledgment of earlier ones (RFC 9293 3.7.4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Nagle {
    /// A small segment waits until no earlier small one is in flight.
    #[default]
    On,
    /// A small segment leaves as soon as the windows admit it (`TCP_NODELAY`).
    Off,
}

/// The wait of segments that are not full for more text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Cork {
    /// They wait (`TCP_CORK`, `MSG_MORE`): until more comes, FIN is due, or, with nothing in
    /// flight, one retransmission time-out passed.
    On,
    /// They go as Nagle's algorithm says.
    #[default]
    Off,
}

/// Text that waits for its time, to who asks what may be due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacedText {
    /// It is not due.
    Waits,
    /// It counts: its time must become known.
    Counts,
}

flags! {
    /// Facts about a sender.
    Flags {
        /// Our SYN is not acknowledged; it is to be sent while SND.NXT stands on it.
        SYN = 0,
        /// The application closed its direction: FIN follows the last byte, and is not
        /// acknowledged.
        FIN_QUEUED = 1,
        /// Our FIN was sent at least once.
        FIN_SENT = 2,
        /// FIN does not ride on text.
        FIN_APART = 3,
        /// The first of what is lost is to be sent again, or the segment at SND.UNA.
        RETRANSMIT = 4,
        /// The peer's closed window is to be probed.
        PROBE = 5,
        /// An old number is to be sent, so that the peer must answer.
        KEEP_ALIVE = 6,
        /// The application was refused room and waits for it.
        WANTS_ROOM = 7,
        /// Nagle's algorithm is off.
        NO_DELAY = 8,
        /// Segments that are not full wait, whatever Nagle's algorithm says.
        CORK = 9,
        /// A loss probe is to be sent: new text, or the last segment again.
        LOSS_PROBE = 10,
        /// Segments were seen to arrive in another order than they were sent.
        REORDERS = 11,
        /// When the application was refused room last, all connections together held more text than a core
        /// keeps in its caches.
        SEND_SHARE_LIMITED = 12,
        /// Text waits for its time: the flow is paced.
        PACED = 13,
        /// A probe of the path MTU is to be sent as soon as it may.
        MTU_PROBE = 14,
        /// cwnd was reduced since new text was sent, which the next says (CWR) if ECN is used.
        REDUCED = 15,
    }
}

impl Flags {
    /// Those that ask for a segment whatever the congestion window says.
    const AGAIN: Self = Self(Self::RETRANSMIT.0 | Self::PROBE.0 | Self::LOSS_PROBE.0);
    /// The two kinds of probes that a timer asks for.
    const PROBES: Self = Self(Self::PROBE.0 | Self::LOSS_PROBE.0);
    /// Those that ask for a segment.
    const DUE: Self = Self(Self::AGAIN.0 | Self::KEEP_ALIVE.0);
    /// Those, and text that waits: by one test.
    const DUE_OR_PACED: Self = Self(Self::DUE.0 | Self::PACED.0);
    /// Those that decide what is sent next before text is looked at.
    const BEFORE_TEXT: Self = Self(Self::AGAIN.0 | Self::PACED.0 | Self::MTU_PROBE.0);
}

/// Queries that are possible at any time.
impl Sender {
    /// The send sequence variables.
    #[inline]
    pub const fn seq(&self) -> &SendSequence {
        &self.seq
    }

    /// The estimate of the round trip, and the time-out that follows from it.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The number of numbers were sent and are not acknowledged.
    #[inline]
    pub fn unacknowledged(&self) -> u32 {
        self.seq.max.offset_from(self.seq.una)
    }

    /// The number of numbers are thought to be in the network.
    #[inline]
    pub fn pipe(&self, queue: Option<&SendQueue>) -> u32 {
        match queue {
            Some(queue) => queue.recovery.pipe(&queue.flight),
            None => self.seq.in_flight(),
        }
    }

    /// The view of a connection that recovery needs; `sack`: selective acknowledgments were negotiated.
    pub fn path(&self, now: Instant, sack: bool, min_rtt: Option<Micros>) -> Path {
        let reorders = self.flags.has(Flags::REORDERS);
        Path { now, sack, mss: u32::from(self.mss), srtt: self.rtt.srtt(), min_rtt, reorders }
    }

    /// cwnd (RFC 5681 2): how many bytes may be in flight.
    pub const fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// ssthresh, bytes; `u32::MAX` before the first loss.
    pub const fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Which algorithm sets them.
    #[inline]
    pub const fn algorithm(&self) -> Algorithm {
        self.window.algorithm()
    }

    /// Bytes of text in a full segment.
    #[inline]
    pub const fn mss(&self) -> u16 {
        self.mss
    }

    /// True if text waits for its time.
    #[inline]
    pub const fn is_paced(&self) -> bool {
        self.flags.has(Flags::PACED)
    }

    /// Text waits for its time no more.
    pub const fn end_pacing_wait(&mut self) {
        self.flags.clear(Flags::PACED);
    }

    /// The most bytes of text that are known to have arrived in one segment.
    pub const fn acked_size(&self) -> u16 {
        self.acked_size
    }

    /// The scale of the peer's window fields.
    pub const fn scale(&self) -> WindowScale {
        self.scale
    }

    /// Bytes that may wait to be acknowledged.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The number of times that the retransmission timer ran out in a row.
    #[inline]
    pub const fn attempts(&self) -> u8 {
        self.attempts.count()
    }

    /// The action of the timer when it runs out.
    #[inline]
    pub const fn timer(&self) -> SendTimer {
        self.attempts.timer()
    }

    /// True if a closed window is being probed.
    #[inline]
    pub fn is_persisting(&self) -> bool {
        self.attempts.is_persisting()
    }

    /// True if all that was sent is acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.seq.is_idle()
    }

    /// True if our SYN is not acknowledged.
    #[inline]
    pub const fn has_syn(&self) -> bool {
        self.flags.has(Flags::SYN)
    }

    /// True if the application closed its direction, and our FIN is not acknowledged.
    #[inline]
    pub const fn fin_queued(&self) -> bool {
        self.flags.has(Flags::FIN_QUEUED)
    }

    /// True if our FIN was sent and is not acknowledged.
    pub const fn fin_sent(&self) -> bool {
        self.flags.has(Flags::FIN_SENT)
    }

    /// True if a keep-alive probe is to be sent.
    #[inline]
    pub const fn keep_alive_is_due(&self) -> bool {
        self.flags.has(Flags::KEEP_ALIVE)
    }

    /// A keep-alive probe is to be sent, or need not be, or was.
    pub const fn set_keep_alive(&mut self, is_due: bool) {
        self.flags.set_if(Flags::KEEP_ALIVE, is_due);
    }

    /// True if the application was refused room and waits for it.
    #[inline]
    pub const fn wants_room(&self) -> bool {
        self.flags.has(Flags::WANTS_ROOM)
    }

    /// The wait of small segments for earlier ones.
    pub const fn nagle(&self) -> Nagle {
        if self.flags.has(Flags::NO_DELAY) { Nagle::Off } else { Nagle::On }
    }
}

/// The end of the stream.
impl Sender {
    /// One past the last byte of text that the application gave us.
    #[inline]
    pub fn text_end(&self, queue: Option<&SendQueue>) -> SeqNum {
        self.text_start() + queued(queue)
    }

    /// The number of the first byte in the send buffer.
    #[inline]
    fn text_start(&self) -> SeqNum {
        self.seq.una + u32::from(self.flags.has(Flags::SYN))
    }

    /// True if something is lost and not sent again.
    #[inline]
    pub fn has_lost(&self, queue: Option<&SendQueue>) -> bool {
        queue.is_some_and(|queue| queue.flight.has_lost())
    }

    /// The number at a stream offset of what is in flight.
    fn number_at(&self, queue: &SendQueue, offset: u64) -> SeqNum {
        self.seq.una + (offset - queue.flight.una()) as u32
    }

    /// The stream offset of a number from SND.UNA on.
    #[inline]
    fn offset_of(&self, queue: &SendQueue, number: SeqNum) -> u64 {
        queue.flight.una() + u64::from(number.offset_from(self.seq.una))
    }

    /// True if text or FIN lies beyond SND.NXT.
    #[inline]
    pub fn has_unsent(&self, queue: Option<&SendQueue>) -> bool {
        let fin = u32::from(self.flags.has(Flags::FIN_QUEUED));
        self.seq.nxt.before(self.text_end(queue) + fin)
    }

    /// Bytes of text that were never sent.
    pub fn unsent(&self, queue: Option<&SendQueue>) -> u32 {
        let beyond = self.text_end(queue).distance_from(self.seq.max).max(0).unsigned_abs();
        // Before our SYN is sent, its number is unsent too.
        beyond.min(queued(queue))
    }

    /// SND.UP: one past the last urgent byte, while it is not acknowledged.
    #[inline]
    pub fn urgent_end(&self, queue: Option<&SendQueue>) -> Option<SeqNum> {
        Some(self.text_start() + queue?.text.urgent()?)
    }
}

/// Bytes of text that wait to be acknowledged.
#[inline]
fn queued(queue: Option<&SendQueue>) -> u32 {
    queue.map_or(0, |queue| queue.text.len())
}

#[cfg(test)]
impl Sender {
    /// As if `bytes` more of the stream had been sent and acknowledged, while the peer sent `received`.
    pub fn skip(&mut self, bytes: u32, received: u32) {
        let seq = &mut self.seq;
        for number in [&mut seq.una, &mut seq.nxt, &mut seq.max, &mut seq.wl2] {
            *number += bytes;
        }
        seq.wl1 += received;
    }
}
