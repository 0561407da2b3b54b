//! `struct tcp_info` by Linux' field names, from a snapshot of the stack.
//!
//! Linux counts in segments where the stack counts in bytes: such fields are the bytes in full
//! segments, rounded as each says. A field of Linux without a true value here is missing, and
//! [`TcpInfo::field`] does not know its name.

use core::num::NonZeroU64;
use core::time::Duration;

use whimbrel_base::{Instant, Tick};
use whimbrel_tcp::conn::{Limit, Snapshot, State};
use whimbrel_tcp::recovery::CaState;
use whimbrel_tcp::table::Listener;

use crate::state::{self, number_of};

macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// Result of `TCP_INFO`, with Linux' names and units.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct TcpInfo { $($(#[$doc])* pub $field: $type,)* }

        impl TcpInfo {
            /// Names of its fields.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field),)*];

            /// Fills each field from `value`, by its name; the value fits.
            pub fn by_field(mut value: impl FnMut(&'static str) -> u64) -> Self {
                Self { $($field: value(stringify!($field)) as $type,)* }
            }

            /// Field by its C name.
            pub fn field(&self, name: &str) -> Option<i64> {
                match name {
                    $(stringify!($field) => Some(self.$field as i64),)*
                    _ => None,
                }
            }
        }
    };
}

tcp_info! {
    /// The state, by Linux' numbers ([`state::NUMBERS`]).
    tcpi_state: u32,
    /// State of loss recovery: 0 open, 1 disorder, 2 window reduced for marks, 3 recovery,
    /// 4 loss.
    tcpi_ca_state: u32,
    /// Unanswered retransmission time-outs in a row.
    tcpi_retransmits: u32,
    /// Unanswered probes of a closed window, or of a silent peer, in a row.
    tcpi_probes: u32,
    /// Number of time-outs that doubled RTO.
    tcpi_backoff: u32,
    /// Negotiated options ([`TcpInfo::OPTIONS`]).
    tcpi_options: u32,
    /// Scale of the peer's windows.
    tcpi_snd_wscale: u32,
    /// Scale of our windows.
    tcpi_rcv_wscale: u32,
    /// The retransmission time-out (RFC 6298), microseconds.
    tcpi_rto: u32,
    /// Bytes of text in a full segment.
    tcpi_snd_mss: u32,
    /// Numbers sent and not acknowledged, in full segments, rounded up; at a listener the waiting
    /// connections.
    tcpi_unacked: u32,
    /// Number of these that the peer is known to hold, in full segments, rounded up: those named by
    /// an acknowledgment (RFC 2018), which has room for three or four ranges; without SACK the
    /// number of duplicate acknowledgments.
    tcpi_sacked: u32,
    /// Number of these taken as lost, in full segments, rounded up: those that RACK found (RFC 8985
    /// 6.2), and after a time-out those sent long enough before it (6.3).
    tcpi_lost: u32,
    /// Number of these that were retransmitted, rounded up.
    tcpi_retrans: u32,
    /// SRTT, microseconds; 0 before the first measurement.
    tcpi_rtt: u32,
    /// Variation of round trips (RTTVAR of RFC 6298), microseconds.
    tcpi_rttvar: u32,
    /// ssthresh in full segments; 0x7fffffff before the first loss.
    tcpi_snd_ssthresh: u32,
    /// cwnd in full segments.
    tcpi_snd_cwnd: u32,
    /// MSS that we announced, minus our options in each segment.
    tcpi_advmss: u32,
    /// Number of duplicates that mean a loss.
    tcpi_reordering: u32,
    /// Bytes of text that were never sent.
    tcpi_notsent_bytes: u32,
    /// The peer's window, bytes.
    tcpi_snd_wnd: u32,
    /// The window that we announce, bytes.
    tcpi_rcv_wnd: u32,
    /// Number of segments retransmitted in all.
    tcpi_total_retrans: u32,
    /// Number of full segments acknowledged, rounded up for each acknowledgment, the SYN included.
    tcpi_delivered: u32,
    /// Number of these that acknowledgments with ECE acknowledged (RFC 3168).
    tcpi_delivered_ce: u32,
    /// 0, as on Linux since 4.15.
    tcpi_fackets: u32,
    /// Most bytes of text in a received segment.
    tcpi_rcv_mss: u32,
    /// Largest window that may be announced, bytes.
    tcpi_rcv_ssthresh: u32,
    /// Longest delay of an acknowledgment, microseconds.
    tcpi_ato: u32,
    /// 0: not remembered, as on Linux.
    tcpi_last_ack_sent: u32,
    /// Milliseconds since text was sent; like the next two, since the start if there was none.
    tcpi_last_data_sent: u32,
    /// Milliseconds since text arrived.
    tcpi_last_data_recv: u32,
    /// Milliseconds since an acknowledgment arrived.
    tcpi_last_ack_recv: u32,
    /// Largest IP packet that the path is known to carry, bytes.
    tcpi_pmtu: u32,
    /// Bytes per second at which text leaves if it is paced, or would; 0 before a round trip was measured.
    tcpi_pacing_rate: u64,
    /// The most of that which was set (`SO_MAX_PACING_RATE`); 2^64 - 1 if nothing was.
    tcpi_max_pacing_rate: u64,
    /// Bytes of text acknowledged.
    tcpi_bytes_acked: u64,
    /// Bytes of text that arrived in order.
    tcpi_bytes_received: u64,
    /// Bytes of text sent, with retransmissions.
    tcpi_bytes_sent: u64,
    /// Bytes of text retransmitted.
    tcpi_bytes_retrans: u64,
    /// Segments sent, with retransmissions and bare acknowledgments.
    tcpi_segs_out: u32,
    /// Segments received, with bare acknowledgments.
    tcpi_segs_in: u32,
    /// Segments sent with text.
    tcpi_data_segs_out: u32,
    /// Segments received with text.
    tcpi_data_segs_in: u32,
    /// Time with data to send or unacknowledged, microseconds, to a millisecond.
    tcpi_busy_time: u64,
    /// Part of that time in which the peer's window was the limit.
    tcpi_rwnd_limited: u64,
    /// Part of that time in which our send buffer was the limit.
    tcpi_sndbuf_limited: u64,
    /// The least round trip of the last five minutes, microseconds; 0xffffffff before the first.
    tcpi_min_rtt: u32,
    /// Acknowledgments that reported duplicate text (RFC 2883).
    tcpi_dsack_dups: u32,
    /// Acknowledgments that reported text which arrived after later text.
    tcpi_reord_seen: u32,
    /// Retransmission time-outs, with each repetition and those of a SYN, but not of a SYN-ACK,
    /// which is repeated before there is a connection.
    tcpi_total_rto: u16,
    /// Number of them that were the first in a row.
    tcpi_total_rto_recoveries: u16,
    /// Total milliseconds from a first time-out until the data it took as lost was acknowledged.
    tcpi_total_rto_time: u32,
}

/// Values from outside of the connection.
pub(crate) struct SocketMetrics {
    pub(crate) now: Instant,
    pub(crate) path_mtu: u16,
    pub(crate) delayed_ack: Duration,
}

impl TcpInfo {
    /// Bits of `tcpi_options`.
    pub const OPTIONS: &'static [(&'static str, u8)] = &[
        ("TCPI_OPT_TIMESTAMPS", 1),
        ("TCPI_OPT_SACK", 2),
        ("TCPI_OPT_WSCALE", 4),
        ("TCPI_OPT_ECN", 8),
        ("TCPI_OPT_ECN_SEEN", 16),
        ("TCPI_OPT_SYN_DATA", 32),
    ];

    /// Values for a socket that is neither connected nor listens.
    pub(crate) fn unconnected() -> Self {
        Self { tcpi_state: u32::from(state::CLOSE), ..Self::default() }
    }

    /// `TCP_INFO` of a listener.
    pub(crate) fn of_listener(listener: &Listener) -> Self {
        Self {
            tcpi_state: u32::from(state::LISTEN),
            tcpi_unacked: listener.waiting() as u32,
            ..Self::default()
        }
    }

    /// `TCP_INFO` of a connection.
    pub(crate) fn of(snapshot: &Snapshot, around: &SocketMetrics) -> Self {
        let mss = u32::from(snapshot.mss).max(1);
        let (snd_scale, rcv_scale) =
            snapshot.scales.map_or((0, 0), |(snd, rcv)| (snd.get(), rcv.get()));
        let attempts = u32::from(snapshot.attempts);
        let (retransmits, window_probes) =
            if snapshot.persist { (0, attempts) } else { (attempts, 0) };
        let probes = window_probes + u32::from(snapshot.keep_alive_probes);
        let infinite = snapshot.ssthresh == u32::MAX;
        Self {
            tcpi_state: u32::from(number_of(snapshot.state)),
            tcpi_ca_state: ca_state(snapshot.ca_state),
            tcpi_retransmits: retransmits,
            tcpi_probes: probes,
            tcpi_backoff: u32::from(snapshot.backoff),
            tcpi_options: options(snapshot),
            tcpi_snd_wscale: u32::from(snd_scale),
            tcpi_rcv_wscale: u32::from(rcv_scale),
            tcpi_rto: micros(snapshot.rto),
            tcpi_snd_mss: mss,
            tcpi_unacked: snapshot.snd.max.offset_from(snapshot.snd.una).div_ceil(mss),
            tcpi_sacked: snapshot.sacked,
            tcpi_lost: snapshot.lost.div_ceil(mss),
            tcpi_retrans: snapshot.sent_again.div_ceil(mss),
            tcpi_rtt: snapshot.srtt.map_or(0, micros),
            tcpi_rttvar: micros(snapshot.rttvar),
            tcpi_snd_ssthresh: if infinite { INFINITE } else { snapshot.ssthresh / mss },
            tcpi_snd_cwnd: snapshot.cwnd / mss,
            tcpi_advmss: advmss(snapshot),
            tcpi_reordering: 3,
            tcpi_notsent_bytes: snapshot.unsent,
            tcpi_snd_wnd: snapshot.snd.wnd.get(),
            tcpi_rcv_wnd: snapshot.rcv.wnd(),
            tcpi_fackets: 0,
            tcpi_last_ack_sent: 0,
            tcpi_rcv_ssthresh: snapshot.recv_limit,
            tcpi_ato: micros(around.delayed_ack),
            tcpi_pmtu: u32::from(around.path_mtu),
            tcpi_pacing_rate: snapshot.pacing_rate.unwrap_or_default(),
            tcpi_max_pacing_rate: snapshot.max_pacing_rate.map_or(u64::MAX, NonZeroU64::get),
            tcpi_bytes_sent: snapshot.tally.bytes_acked
                + snapshot.info_counts.bytes_retrans
                + u64::from(snapshot.unacked_text()),
            ..Self::counted(snapshot, around.now.tick())
        }
    }

    /// Fields that are counts.
    fn counted(snapshot: &Snapshot, now: Tick) -> Self {
        let Snapshot { tally, info_counts, .. } = snapshot;
        let limited = |limit| snapshot.limited(limit).as_micros() as u64;
        let (window, buffer) = (limited(Limit::Window), limited(Limit::Buffer));
        Self {
            tcpi_total_retrans: info_counts.total_retrans,
            tcpi_delivered: tally.delivered,
            tcpi_delivered_ce: info_counts.delivered_ce,
            tcpi_rcv_mss: u32::from(tally.rcv_mss),
            tcpi_last_data_sent: now.millis_since(tally.last_data_sent),
            tcpi_last_data_recv: now.millis_since(tally.last_data_recv),
            tcpi_last_ack_recv: now.millis_since(tally.last_ack_recv),
            tcpi_bytes_acked: tally.bytes_acked,
            tcpi_bytes_received: tally.bytes_received,
            tcpi_bytes_retrans: info_counts.bytes_retrans,
            tcpi_segs_out: tally.segs_out,
            tcpi_segs_in: tally.segs_in,
            tcpi_data_segs_out: tally.data_segs_out,
            tcpi_data_segs_in: tally.data_segs_in,
            tcpi_busy_time: limited(Limit::Network) + window + buffer,
            tcpi_rwnd_limited: window,
            tcpi_sndbuf_limited: buffer,
            tcpi_min_rtt: tally.min_rtt().map_or(u32::MAX, micros),
            tcpi_dsack_dups: info_counts.dsack_dups,
            tcpi_reord_seen: info_counts.reorderings,
            tcpi_total_rto: info_counts.timeouts,
            tcpi_total_rto_recoveries: info_counts.recoveries,
            tcpi_total_rto_time: info_counts.millis,
            ..Self::default()
        }
    }
}

fn options(snapshot: &Snapshot) -> u32 {
    // Before the peer answers, they are only offered.
    if snapshot.state == State::SynSent {
        return 0;
    }
    let scaled = snapshot.scales.is_some();
    u32::from(snapshot.timestamps)
        | u32::from(snapshot.sack) << 1
        | u32::from(scaled) << 2
        | u32::from(snapshot.ecn) << 3
        | u32::from(snapshot.syn_data) << 5
}

fn advmss(snapshot: &Snapshot) -> u32 {
    let stamped = snapshot.timestamps && snapshot.state != State::SynSent;
    u32::from(snapshot.advertised_mss) - if stamped { 12 } else { 0 }
}

const fn ca_state(state: CaState) -> u32 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Value for "no threshold yet": Linux' `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;
