//! `struct tcp_info`, as linux/tcp.h lays it out.

use std::time::Duration;

/// What the kernel knows of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelInfo {
    /// `tcpi_snd_mss`: bytes of text in a full segment.
    pub mss: u32,
    /// The smoothed round-trip time: `tcpi_rtt`.
    pub rtt: Duration,
    /// The least round trip of the last minutes: `tcpi_min_rtt`; zero if the kernel does not tell.
    pub min_rtt: Duration,
    /// How much round trips vary: `tcpi_rttvar`.
    pub rttvar: Duration,
    /// The congestion window in segments: `tcpi_snd_cwnd`.
    pub cwnd: u32,
    /// `tcpi_total_retrans`: segments sent again.
    pub retransmits: u32,
    /// `tcpi_bytes_acked`: bytes that the peer acknowledged, a SYN and a FIN of ours included.
    pub acked: u64,
    /// `tcpi_snd_wnd`: the peer's window, bytes; 0 on kernels before 5.4, which do not tell.
    pub rwnd: u32,
    /// `tcpi_busy_time`: how long there was something to send, or to be acknowledged.
    pub busy: Duration,
    /// `tcpi_rwnd_limited`: how much of that the peer's window took.
    pub rwnd_limited: Duration,
    /// `tcpi_sndbuf_limited`: how much of that the send buffer took.
    pub sndbuf_limited: Duration,
}

impl KernelInfo {
    pub(super) fn parse(info: &[u8]) -> Self {
        let word = |at: usize| {
            let octets = info.get(at..).and_then(|rest| rest.first_chunk::<4>());
            octets.map_or(0, |octets| u32::from_ne_bytes(*octets))
        };
        let long = |at: usize| {
            let octets = info.get(at..).and_then(|rest| rest.first_chunk::<8>());
            octets.map_or(0, |octets| u64::from_ne_bytes(*octets))
        };
        let micros = |at: usize| Duration::from_micros(long(at));
        Self {
            mss: word(16),
            rtt: Duration::from_micros(word(68).into()),
            min_rtt: Duration::from_micros(word(148).into()),
            rttvar: Duration::from_micros(word(72).into()),
            cwnd: word(80),
            retransmits: word(100),
            acked: long(120),
            rwnd: word(228),
            busy: micros(168),
            rwnd_limited: micros(176),
            sndbuf_limited: micros(184),
        }
    }
}
