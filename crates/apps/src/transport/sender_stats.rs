//! The state of a sender, as far as its transport knows it.

use core::time::Duration;

/// What a connection's sender knows of its path at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SenderStats {
    /// Segments sent again on this connection so far; `None` if they are not counted for each.
    pub retransmits: Option<u64>,
    /// Bytes of text that the peer acknowledged so far.
    pub acked: u64,
    /// The congestion window, bytes.
    pub cwnd: u64,
    /// The peer's window, bytes.
    pub rwnd: u64,
    /// Bytes of text in a full segment.
    pub mss: u32,
    /// The smoothed round-trip time, if it was measured.
    pub rtt: Option<Duration>,
    /// The least round-trip time of late, if it was measured.
    pub min_rtt: Option<Duration>,
    /// How much round trips vary (RTTVAR).
    pub rttvar: Duration,
    /// For how long it was kept from sending more so far.
    pub limited: Limited,
}

/// For how long a sender was kept from sending more, and by what, as Linux' `TCP_INFO` counts it;
/// the rest of its time there was nothing to send, and nothing that waited to be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limited {
    /// By what is under way: the congestion window, or an acknowledgment that is awaited.
    pub cwnd: Duration,
    /// By the peer's window.
    pub rwnd: Duration,
    /// By its own send buffer.
    pub sndbuf: Duration,
}

/// What keeps a sender from sending more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// The application gives nothing.
    App,
    /// The peer's window is full.
    Rwnd,
    /// The congestion window is full.
    Cwnd,
    /// The send buffer is full, all of it in flight.
    Sndbuf,
}

impl Limit {
    /// Every one of them.
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
