//! `struct tcp_info` of linux/tcp.h.

use std::time::Duration;

/// The kernel's data about a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelInfo {
    /// `tcpi_snd_mss`: bytes of text in a full segment.
    pub mss: u32,
    /// `tcpi_rtt`: smoothed round-trip time.
    pub rtt: Duration,
    /// `tcpi_min_rtt`: least round-trip time of the last minutes; zero if the kernel does not
    /// report it.
    pub min_rtt: Duration,
    /// `tcpi_rttvar`: variation of round-trip times.
    pub rttvar: Duration,
    /// `tcpi_snd_cwnd`: congestion window in segments.
    pub cwnd: u32,
    /// `tcpi_total_retrans`: retransmitted segments.
    pub retransmits: u32,
    /// `tcpi_bytes_acked`: bytes acknowledged by the peer, including a SYN and FIN of this side.
    pub acked: u64,
    /// `tcpi_snd_wnd`: peer's window in bytes; 0 on kernels before 5.4, which do not report it.
    pub rwnd: u32,
    /// `tcpi_busy_time`: time during which there was data to send or to be acknowledged.
    pub busy: Duration,
    /// `tcpi_rwnd_limited`: part of it limited by the peer's window.
    pub rwnd_limited: Duration,
    /// `tcpi_sndbuf_limited`: part of it limited by the send buffer.
    pub sndbuf_limited: Duration,
}

impl KernelInfo {
    pub(super) fn parse(info: &[u8]) -> Self {
        let word = |at: usize| {
            let bytes = info.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let long = |at: usize| {
            let bytes = info.get(at..).and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
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
