//! The events that a congestion control receives.

use whimbrel_base::{Instant, Micros};

/// A segment that leaves, or a super-segment that a device cuts.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it leaves, as the burst's clock has it.
    pub now: Instant,
    /// Bytes of text that leave, in one or more segments; 0 with a FIN alone.
    pub bytes: u32,
    /// Bytes in flight from then on.
    pub in_flight: u32,
    /// Bytes of text in a full segment.
    pub mss: u32,
}

/// An acknowledgment of the peer's, and the flow when it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When the acknowledgment arrived.
    pub now: Instant,
    /// Bytes that it acknowledges: 0 if that was SYN or FIN alone, or nothing.
    pub delivered: u32,
    /// Bytes of which it is the first to tell that they arrived: without those that it acknowledges and SACK
    /// had named before, and with those that SACK names now (RFC 6937: DeliveredData).
    pub arrived: u32,
    /// Of these, the bytes of a flight that the congestion window limited. Nothing else is a reason to
    /// let it grow: the application or the peer's window asked for no more (RFC 7661 4.4, RFC 9438 5.8).
    pub limited: u32,
    /// Bytes that are in flight still.
    pub in_flight: u32,
    /// The round trip that it ends, if it could be measured.
    pub rtt: Option<Micros>,
    /// SRTT (RFC 6298 2), zero before the first measurement.
    pub srtt: Micros,
    /// The rate at which text arrives, for who [asks](super::CongestionControl::samples_rate), if something
    /// arrived of which it can be told.
    pub rate: Option<Rate>,
    /// The phase of recovery when it arrived.
    pub phase: Phase,
    /// Bytes of text in a full segment.
    pub mss: u32,
    /// The rules of slow start.
    pub slow_start: SlowStart,
}

/// The rules of slow start, as tunables have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowStart {
    /// The most bytes by which one acknowledgment lets the window grow.
    pub most: u32,
    /// The first one ends where the round trip grows (RFC 9406), or acknowledgments arrive without a pause.
    pub hystart: bool,
    /// Text leaves spread over the round trip, and so do the acknowledgments of what fills no path.
    pub paced: bool,
}

/// Shorter round trips are not paced by their window: a quantum fills them.
pub(crate) const SHORTEST_PACED_TRIP: Micros = Micros::from_millis(1);

impl Default for SlowStart {
    /// All that is acknowledged counts, and HyStart++ watches.
    fn default() -> Self {
        Self { most: u32::MAX, hystart: true, paced: false }
    }
}

impl Ack {
    /// The bytes by which a window may grow that grows with what is acknowledged.
    #[inline]
    pub(super) fn countable(&self) -> u32 {
        match self.phase {
            Phase::Open => self.limited,
            // RFC 3465 2.3: in slow start after a time-out "a TCP MUST use L=1*SMSS": one
            // acknowledgment may cover much that had arrived long before.
            Phase::AfterTimeout => self.limited.min(self.mss),
            // Until all that was out at the loss is acknowledged, recovery says what may leave.
            Phase::FastRecovery => 0,
        }
    }
}

/// A sample of the delivery rate, from the transmission that was the last to leave of what arrived
/// (draft-ietf-ccwg-bbr, "Delivery Rate Samples").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Bytes that arrived at the peer in `interval`, modulo 2^32: since the transmission left.
    pub delivered: u64,
    /// The time in which they did; `None` if that is less than the least round trip, so that it is no measure.
    pub interval: Option<Micros>,
    /// True if the application limited the sender when the transmission left: the path may carry more.
    pub app_limited: bool,
    /// Bytes that arrived since the connection has its algorithm.
    pub total: u64,
    /// Bytes that were in flight when the transmission had left, its own included.
    pub in_flight: u32,
    /// Bytes that were judged lost since then.
    pub lost: u32,
    /// Selective acknowledgments were negotiated. Without them one loss in a round trip is found, however many there
    /// are, and bytes that arrived are estimated by duplicate acknowledgments (RFC 6937 2).
    pub sack: bool,
}

/// A transmission that was judged lost, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostText {
    /// Bytes of it that are lost.
    pub bytes: u32,
    /// Bytes that were in flight when it had left, its own included.
    pub in_flight: u32,
    /// Bytes that were judged lost since then, these included.
    pub lost: u32,
    /// True if the application limited the sender when it left.
    pub app_limited: bool,
    /// Selective acknowledgments were negotiated.
    pub sack: bool,
}

/// The phase of recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Phase {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// Fast recovery, from a loss event until all that was out then is acknowledged.
    FastRecovery,
    /// From a time-out until all that was out then is acknowledged.
    AfterTimeout,
}

/// The flight when recovery begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Bytes that were sent and are not acknowledged.
    pub in_flight: u32,
    /// Bytes of text in a full segment.
    pub mss: u32,
}

/// The retransmission timer ran out for text.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// First or repeated.
    pub kind: TimeoutKind,
    /// Bytes that were sent and are not acknowledged.
    pub in_flight: u32,
    /// Bytes of text in a full segment.
    pub mss: u32,
}

/// The cause of a retransmission time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutKind {
    /// Text, for the first time.
    First,
    /// Text that was sent again by a time-out before, or of a window for which marks of the network reduced
    /// ssthresh already (RFC 3168 6.1.2).
    Repeated,
}
