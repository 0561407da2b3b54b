//! `struct tcp_info` by Linux' field names, filled from what the stack knows at one moment.
//!
//! Linux counts in segments what the stack counts in bytes: such fields are the bytes in full
//! segments, rounded as said at each. A field of Linux' that the stack has no true value for is
//! not there, and [`TcpInfo::field`] does not know its name.

use core::time::Duration;

use whimbrel_base::{Instant, Tick};
use whimbrel_tcp::conn::{Limit, Snapshot, State};
use whimbrel_tcp::recovery::CaState;
use whimbrel_tcp::table::Listener;

use crate::state::{self, number_of};

macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// What `TCP_INFO` tells of a connection, with Linux' names and units.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct TcpInfo { $($(#[$doc])* pub $field: $type,)* }

        impl TcpInfo {
            /// The names of its fields.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field),)*];

            /// With the value that `value` has for each of them, by its name; it fits.
            pub fn by_field(mut value: impl FnMut(&'static str) -> u64) -> Self {
                Self { $($field: value(stringify!($field)) as $type,)* }
            }

            /// A field by its name in C.
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
    /// What loss recovery is doing: 0 open, 1 disorder, 3 recovery, 4 loss.
    tcpi_ca_state: u32,
    /// Unanswered retransmission time-outs in a row.
    tcpi_retransmits: u32,
    /// Unanswered probes of a closed window, or of a silent peer, in a row.
    tcpi_probes: u32,
    /// How many time-outs doubled RTO.
    tcpi_backoff: u32,
    /// What was negotiated ([`TcpInfo::OPTIONS`]).
    tcpi_options: u32,
    /// The scale of the peer's windows.
    tcpi_snd_wscale: u32,
    /// The scale of ours.
    tcpi_rcv_wscale: u32,
    /// The retransmission time-out (RFC 6298), microseconds.
    tcpi_rto: u32,
    /// Bytes of text in a full segment.
    tcpi_snd_mss: u32,
    /// Numbers sent and not acknowledged, in full segments, rounded up; at a listener the
    /// connections that wait.
    tcpi_unacked: u32,
    /// Of these, how many full segments the peer is known to hold, rounded up: those that one of its
    /// acknowledgments named (RFC 2018), which has room for three or four ranges; without SACK as many
    /// as duplicate acknowledgments came.
    tcpi_sacked: u32,
    /// Of these, how many full segments are taken to be lost, rounded up: those that RACK found so
    /// (RFC 8985 6.2), and after a time-out those that were sent long enough before it (6.3).
    tcpi_lost: u32,
    /// How many of these were sent again, rounded up.
    tcpi_retrans: u32,
    /// SRTT, microseconds; 0 before the first measurement.
    tcpi_rtt: u32,
    /// How much round trips vary (RTTVAR of RFC 6298), microseconds.
    tcpi_rttvar: u32,
    /// ssthresh in full segments; 0x7fffffff before the first loss.
    tcpi_snd_ssthresh: u32,
    /// cwnd in full segments.
    tcpi_snd_cwnd: u32,
    /// The MSS that we announced, less our options in each segment.
    tcpi_advmss: u32,
    /// How many duplicates mean a loss.
    tcpi_reordering: u32,
    /// Bytes of text that were never sent.
    tcpi_notsent_bytes: u32,
    /// The peer's window, bytes.
    tcpi_snd_wnd: u32,
    /// The window that we announce, bytes.
    tcpi_rcv_wnd: u32,
    /// How many segments were sent again in all.
    tcpi_total_retrans: u32,
    /// How many full segments were acknowledged, rounded up for each acknowledgment, the SYN
    /// included.
    tcpi_delivered: u32,
    /// 0, as on Linux since 4.15.
    tcpi_fackets: u32,
    /// The most bytes of text that one segment brought.
    tcpi_rcv_mss: u32,
    /// The largest window that may be announced, bytes.
    tcpi_rcv_ssthresh: u32,
    /// The longest that an acknowledgment is delayed, microseconds.
    tcpi_ato: u32,
    /// 0: not remembered, as on Linux.
    tcpi_last_ack_sent: u32,
    /// Milliseconds since text was sent; as the next two, since the beginning before the first time.
    tcpi_last_data_sent: u32,
    /// Milliseconds since text arrived.
    tcpi_last_data_recv: u32,
    /// Milliseconds since an acknowledgment arrived.
    tcpi_last_ack_recv: u32,
    /// The largest IP packet that the path is known to carry, bytes.
    tcpi_pmtu: u32,
    /// Bytes of text acknowledged.
    tcpi_bytes_acked: u64,
    /// Bytes of text that arrived in order.
    tcpi_bytes_received: u64,
    /// Bytes of text sent, those sent again included.
    tcpi_bytes_sent: u64,
    /// Bytes of text sent again.
    tcpi_bytes_retrans: u64,
    /// Segments sent, retransmissions and bare acknowledgments included.
    tcpi_segs_out: u32,
    /// Segments that arrived, bare acknowledgments included.
    tcpi_segs_in: u32,
    /// Those sent with text.
    tcpi_data_segs_out: u32,
    /// Those that arrived with text.
    tcpi_data_segs_in: u32,
    /// How long there was something to send or to be acknowledged, microseconds, to a millisecond.
    tcpi_busy_time: u64,
    /// How much of that the peer's window was what kept it from being sent.
    tcpi_rwnd_limited: u64,
    /// How much of that our send buffer was.
    tcpi_sndbuf_limited: u64,
    /// The least round trip of the last five minutes, microseconds; 0xffffffff before the first.
    tcpi_min_rtt: u32,
    /// Acknowledgments that told of text which the peer had already (RFC 2883).
    tcpi_dsack_dups: u32,
    /// Acknowledgments that told of text which arrived after text that was sent later.
    tcpi_reord_seen: u32,
    /// Retransmission time-outs, each repetition of one and those of a SYN included, but not those of a
    /// SYN-ACK, which goes again before there is a connection.
    tcpi_total_rto: u16,
    /// How many of them were the first in a row.
    tcpi_total_rto_recoveries: u16,
    /// Milliseconds from a first time-out until what it took for lost was acknowledged, in all.
    tcpi_total_rto_time: u32,
}

/// What is told beside a connection's own variables.
pub(crate) struct Surroundings {
    pub(crate) now: Instant,
    pub(crate) path_mtu: u16,
    pub(crate) delayed_ack: Duration,
}

impl TcpInfo {
    /// The bits of `tcpi_options`.
    pub const OPTIONS: &'static [(&'static str, u8)] = &[
        ("TCPI_OPT_TIMESTAMPS", 1),
        ("TCPI_OPT_SACK", 2),
        ("TCPI_OPT_WSCALE", 4),
        ("TCPI_OPT_ECN", 8),
        ("TCPI_OPT_ECN_SEEN", 16),
        ("TCPI_OPT_SYN_DATA", 32),
    ];

    /// Of a socket that is neither connected nor listens.
    pub(crate) fn unconnected() -> Self {
        Self { tcpi_state: u32::from(state::CLOSE), ..Self::default() }
    }

    /// What a listener answers to `TCP_INFO`.
    pub(crate) fn of_listener(listener: &Listener) -> Self {
        Self {
            tcpi_state: u32::from(state::LISTEN),
            tcpi_unacked: listener.waiting() as u32,
            ..Self::default()
        }
    }

    /// What a connection answers to `TCP_INFO`.
    pub(crate) fn of(snapshot: &Snapshot, around: &Surroundings) -> Self {
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
            tcpi_bytes_sent: snapshot.tally.bytes_acked
                + snapshot.mishaps.bytes_retrans
                + u64::from(snapshot.unacked_text()),
            ..Self::counted(snapshot, around.now.tick())
        }
    }

    /// The fields that are counts.
    fn counted(snapshot: &Snapshot, now: Tick) -> Self {
        let Snapshot { tally, mishaps, .. } = snapshot;
        let limited = |limit| snapshot.limited(limit).as_micros() as u64;
        let (window, buffer) = (limited(Limit::Window), limited(Limit::Buffer));
        Self {
            tcpi_total_retrans: mishaps.total_retrans,
            tcpi_delivered: tally.delivered,
            tcpi_rcv_mss: u32::from(tally.rcv_mss),
            tcpi_last_data_sent: now.millis_since(tally.last_data_sent),
            tcpi_last_data_recv: now.millis_since(tally.last_data_recv),
            tcpi_last_ack_recv: now.millis_since(tally.last_ack_recv),
            tcpi_bytes_acked: tally.bytes_acked,
            tcpi_bytes_received: tally.bytes_received,
            tcpi_bytes_retrans: mishaps.bytes_retrans,
            tcpi_segs_out: tally.segs_out,
            tcpi_segs_in: tally.segs_in,
            tcpi_data_segs_out: tally.data_segs_out,
            tcpi_data_segs_in: tally.data_segs_in,
            tcpi_busy_time: limited(Limit::Network) + window + buffer,
            tcpi_rwnd_limited: window,
            tcpi_sndbuf_limited: buffer,
            tcpi_min_rtt: tally.min_rtt().map_or(u32::MAX, micros),
            tcpi_dsack_dups: mishaps.dsack_dups,
            tcpi_reord_seen: mishaps.reorderings,
            tcpi_total_rto: mishaps.timeouts,
            tcpi_total_rto_recoveries: mishaps.recoveries,
            tcpi_total_rto_time: mishaps.millis,
            ..Self::default()
        }
    }
}

fn options(snapshot: &Snapshot) -> u32 {
    // Before the peer answered, they are only offered.
    if snapshot.state == State::SynSent {
        return 0;
    }
    let scaled = snapshot.scales.is_some();
    u32::from(snapshot.timestamps)
        | u32::from(snapshot.sack) << 1
        | u32::from(scaled) << 2
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
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// What stands for "no threshold yet": Linux' `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;
