//! `struct tcp_info` by Linux' field names, filled from what the stack knows at one moment.
//!
//! Linux counts in segments what the stack counts in octets: such fields are the octets in full
//! segments, rounded as said at each. A field of Linux' that the stack has no true value for is
//! not there, and [`TcpInfo::field`] does not know its name.

use core::time::Duration;

use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_tcp::recovery::CaState;
use whimbrel_tcp::table::Listener;

use crate::state::{self, number_of};

macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What `TCP_INFO` tells.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct TcpInfo { $($(#[$doc])* pub $field: u32,)* }

        impl TcpInfo {
            /// The names of its fields.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field),)*];

            /// A field by its name in C.
            pub fn field(&self, name: &str) -> Option<u32> {
                match name {
                    $(stringify!($field) => Some(self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

tcp_info! {
    /// The state, by Linux' numbers ([`state::NUMBERS`]).
    tcpi_state,
    /// What loss recovery is doing: 0 open, 1 disorder, 3 recovery, 4 loss.
    tcpi_ca_state,
    /// Unanswered retransmission time-outs in a row.
    tcpi_retransmits,
    /// Unanswered probes of a closed window, or of a silent peer, in a row.
    tcpi_probes,
    /// How many time-outs doubled RTO.
    tcpi_backoff,
    /// What was negotiated ([`TcpInfo::OPTIONS`]).
    tcpi_options,
    /// The scale of the peer's windows.
    tcpi_snd_wscale,
    /// The scale of ours.
    tcpi_rcv_wscale,
    /// RTO, microseconds.
    tcpi_rto,
    /// Octets of text in a full segment.
    tcpi_snd_mss,
    /// Numbers sent and not acknowledged, in full segments, rounded up; at a listener the
    /// connections that wait.
    tcpi_unacked,
    /// SRTT, microseconds; 0 before the first measurement.
    tcpi_rtt,
    /// RTTVAR, microseconds.
    tcpi_rttvar,
    /// ssthresh in full segments; 0x7fffffff before the first loss.
    tcpi_snd_ssthresh,
    /// cwnd in full segments.
    tcpi_snd_cwnd,
    /// The MSS that we announced, less our options in each segment.
    tcpi_advmss,
    /// How many duplicates mean a loss.
    tcpi_reordering,
    /// Octets of text that were never sent.
    tcpi_notsent_bytes,
    /// The peer's window, octets.
    tcpi_snd_wnd,
    /// Our window, octets.
    tcpi_rcv_wnd,
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

    /// Of a listener.
    pub(crate) fn of_listener(listener: &Listener) -> Self {
        Self {
            tcpi_state: u32::from(state::LISTEN),
            tcpi_unacked: listener.waiting() as u32,
            ..Self::default()
        }
    }

    /// Of a connection.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
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
            tcpi_rtt: snapshot.srtt.map_or(0, micros),
            tcpi_rttvar: micros(snapshot.rttvar),
            tcpi_snd_ssthresh: if infinite { INFINITE } else { snapshot.ssthresh / mss },
            tcpi_snd_cwnd: snapshot.cwnd / mss,
            tcpi_advmss: advmss(snapshot),
            tcpi_reordering: 3,
            tcpi_notsent_bytes: snapshot.unsent,
            tcpi_snd_wnd: snapshot.snd.wnd.get(),
            tcpi_rcv_wnd: snapshot.rcv.wnd(),
        }
    }
}

fn options(snapshot: &Snapshot) -> u32 {
    // Before the peer answered, they are only offered.
    if snapshot.state == State::SynSent {
        return 0;
    }
    let scaled = snapshot.scales.is_some();
    u32::from(snapshot.timestamps) | u32::from(snapshot.sack) << 1 | u32::from(scaled) << 2
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

/// Linux' `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;
