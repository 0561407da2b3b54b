//! State of a sender, as its transport knows it.

use core::time::Duration;

/// A sender's statistics of its path at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SenderStats {
    /// Segments retransmitted on this connection so far; `None` if they are not counted for each.
    pub retransmits: Option<u64>,
    /// Bytes of text acknowledged so far.
    pub acked: u64,
    /// The congestion window, bytes.
    pub cwnd: u64,
    /// The peer's window, bytes.
    pub rwnd: u64,
    /// Bytes of text in a full segment.
    pub mss: u32,
    /// Smoothed round-trip time, if measured.
    pub rtt: Option<Duration>,
    /// Least recent round-trip time, if measured.
    pub min_rtt: Option<Duration>,
    /// Variation of round trips (RTTVAR).
    pub rttvar: Duration,
    /// Time in which it was kept from sending more.
    pub limited: Limited,
}

/// Time in which a sender was kept from sending more, by reason, as in Linux' `TCP_INFO`. In the
/// rest of its time it had nothing to send and nothing unacknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limited {
    /// By the congestion window, or while an acknowledgment is awaited.
    pub cwnd: Duration,
    /// By the peer's window.
    pub rwnd: Duration,
    /// By its send buffer.
    pub sndbuf: Duration,
}

/// The limit that keeps a sender from sending more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// The application has no data.
    App,
    /// The peer's window is full.
    Rwnd,
    /// The congestion window is full.
    Cwnd,
    /// The send buffer is full, all of it in flight.
    Sndbuf,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 4] = [Self::App, Self::Rwnd, Self::Cwnd, Self::Sndbuf];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Rwnd => "rwnd",
            Self::Cwnd => "cwnd",
            Self::Sndbuf => "sndbuf",
        }
    }
}
