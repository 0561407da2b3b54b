//! Events of recovery, for its caller to count.

/// Events of one call into [`Recovery`](super::Recovery), each at most once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[must_use]
pub struct RecoveryEvents {
    /// Fast recovery began by SACK (RFC 8985).
    pub sack_recovery: bool,
    /// Fast recovery began by duplicate acknowledgments, without SACK (RFC 6582).
    pub reno_recovery: bool,
    /// A retransmission was found lost without a time-out (RFC 8985).
    pub lost_retransmit: bool,
    /// The peer discarded text that it had named in SACK (RFC 2018 8).
    pub sack_reneging: bool,
    /// A loss probe repaired a loss by itself (RFC 8985 7.4.2).
    pub loss_probe_recovery: bool,
    /// A time-out was undone: what was sent before it arrived (RFC 5682, RFC 3522).
    pub spurious_rto: bool,
    /// A fast recovery was undone, because all that was sent again came twice (RFC 3708).
    pub dsack_undo: bool,
    /// A fast recovery was undone, because an echo is of what was sent before it (RFC 3522).
    pub full_undo: bool,
}

const _: () = assert!(size_of::<RecoveryEvents>() <= 16, "it is returned in registers");
