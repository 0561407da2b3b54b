//! Counters of events: public API, under the names of Linux' MIB for events that Linux counts, too.
//!
//! Those that Linux does not count begin with `Whimbrel`. For the drops, [`DropReason`] does the
//! same with the names of Linux' `enum skb_drop_reason`.
//!
//! ```
//! let counters = whimbrel_tcp::Counters::default();
//! for (name, help, value) in counters.iter() {
//!     println!("{name} {value} # {help}");
//! }
//! for (reason, segments) in counters.drops() {
//!     println!("{} {segments} # {}", reason.name(), reason.help());
//! }
//! ```

use whimbrel_base::counters;
use whimbrel_recovery::RecoveryEvents;

use crate::DropReason;

counters! {
    /// The counters of one shard. Plain numbers, because only the shard writes them.
    pub struct Counters, with drops by DropReason;

    /// Segments received: the sum of those accepted and those dropped.
    in_segs = "TcpInSegs",
    /// Segments that a connection, half-open entry or waiting record accepted.
    accepted_segs = "WhimbrelInAccepted",
    /// Segments sent, retransmissions and resets included; a super-segment counts as its parts.
    out_segs = "TcpOutSegs",
    /// Segments that were sent again, for any reason; a super-segment counts as its parts.
    retrans_segs = "TcpRetransSegs",
    /// Segments with RST that were sent.
    out_rsts = "TcpOutRsts",
    /// Answers to segments, packets and time-outs that were not sent because 1,024 of them waited to
    /// leave.
    replies_refused = "WhimbrelRepliesRefused",
    /// Times that what is held, and kept for connections that hold little, reached 75 % of the budget.
    mem_high = "TcpExtTCPMemoryPressures",
    /// Times that it reached 90 %, from where on text out of order is refused.
    mem_tight = "WhimbrelMemoryTight",
    /// Times that it reached all of it.
    mem_full = "WhimbrelMemoryFull",
    /// Segments of whose text a part was taken, because `mem.budget` had no room for the rest.
    mem_clipped = "WhimbrelMemoryClipped",
    /// Segments received with a wrong checksum.
    in_csum_errors = "TcpInCsumErrors",
    /// Segments received that could not be parsed.
    in_errs = "TcpInErrs",
    /// Connections opened by this side.
    active_opens = "TcpActiveOpens",
    /// Connections opened by the peer and complete.
    passive_opens = "TcpPassiveOpens",
    /// Attempts to open that failed: refused, reset or timed out.
    attempt_fails = "TcpAttemptFails",
    /// Connections that a reset ended in ESTABLISHED or CLOSE-WAIT.
    estab_resets = "TcpEstabResets",
    /// Connections that ended because retransmissions went unanswered.
    abort_on_timeout = "TcpExtTCPAbortOnTimeout",
    /// Connections reset because data arrived after the application had closed.
    abort_on_data = "TcpExtTCPAbortOnData",
    /// Connections reset because the application closed with data unread.
    abort_on_close = "TcpExtTCPAbortOnClose",
    /// Connections dropped in FIN-WAIT-2 because the peer never closed.
    abort_on_linger = "TcpExtTCPAbortOnLinger",
    /// Retransmission time-outs that ran out, each repetition of one counted.
    timeouts = "TcpExtTCPTimeouts",
    /// SYNs and SYN-ACKs sent again.
    syn_retrans = "TcpExtTCPSynRetrans",
    /// Retransmissions in fast recovery (RFC 5681 3.2, RFC 8985); a super-segment counts once.
    fast_retrans = "TcpExtTCPFastRetrans",
    /// Retransmissions after a time-out; a super-segment counts once.
    slow_start_retrans = "TcpExtTCPSlowStartRetrans",
    /// Fast recoveries that SACK began (RFC 8985).
    sack_recovery = "TcpExtTCPSackRecovery",
    /// Fast recoveries that duplicate acknowledgments began, without SACK (RFC 6582).
    reno_recovery = "TcpExtTCPRenoRecovery",
    /// Times that a retransmission was found lost without a time-out (RFC 8985).
    lost_retransmit = "TcpExtTCPLostRetransmit",
    /// Connections that saw text arrive out of the order that it was sent in.
    sack_reorder = "TcpExtTCPSACKReorder",
    /// Times that a peer discarded text which it had named in SACK (RFC 2018 8).
    sack_reneging = "TcpExtTCPSACKReneging",
    /// SYNs sent again without asking for ECN, because the first was not answered (RFC 3168 6.1.1.1).
    ecn_fallbacks = "WhimbrelEcnFallbacks",
    /// Times that congestion windows were reduced because routers marked text (RFC 3168 6.1.2).
    ecn_reductions = "WhimbrelEcnReductions",
    /// Full segments that acknowledgments with ECE acknowledged, rounded up.
    delivered_ce = "TcpExtTCPDeliveredCE",
    /// Loss probes sent (RFC 8985 7).
    loss_probes = "TcpExtTCPLossProbes",
    /// Losses that a loss probe repaired by itself (RFC 8985 7.4.2).
    loss_probe_recovery = "TcpExtTCPLossProbeRecovery",
    /// Fast recoveries taken back because all that was sent again came twice (RFC 3708).
    dsack_undo = "TcpExtTCPDSACKUndo",
    /// Fast recoveries taken back because an echo tells of what was sent before (RFC 3522).
    full_undo = "TcpExtTCPFullUndo",
    /// Time-outs taken back: what was sent before them arrived (RFC 5682, RFC 3522).
    spurious_rtos = "TcpExtTCPSpuriousRTOs",
    /// Probes of a window that the peer closed (RFC 9293 3.8.6.1) that were sent.
    window_probes = "TcpExtTCPWinProbe",
    /// Keep-alive probes of silent connections (RFC 9293 3.8.4) that were sent.
    keep_alives = "TcpExtTCPKeepAlive",
    /// Acknowledgments sent because their delay ran out.
    delayed_acks = "TcpExtDelayedACKs",
    /// Challenge acknowledgments sent (RFC 5961).
    challenge_acks = "TcpExtTCPChallengeACK",
    /// Challenge acknowledgments that a connection withheld, by the limit of one in
    /// `net.ipv4.tcp_invalid_ratelimit`.
    challenge_acks_skipped = "TcpExtTCPACKSkippedChallenge",
    /// Challenge acknowledgments that a half-open entry withheld, by the same limit.
    syn_received_acks_skipped = "TcpExtTCPACKSkippedSynRecv",
    /// Acknowledgments that a record in TIME-WAIT withheld, by the same limit.
    time_wait_acks_skipped = "TcpExtTCPACKSkippedTimeWait",
    /// Pure acknowledgments of nothing new that later ones overtook: their TSval is older than TS.Recent
    /// by more than a tick and no more than RTO (RFC 7323 5.3). (Linux counts those from before RCV.NXT.)
    paws_old_acks = "TcpExtPAWSOldAck",
    /// Segments that arrived out of order and were kept.
    out_of_order = "TcpExtTCPOFOQueue",
    /// Times that a receive buffer grew, because its application read in a round trip what it held.
    recv_buffers_grown = "WhimbrelRecvBuffersGrown",
    /// Times that one did not, because 75 % of `mem.budget` were used.
    recv_buffers_held = "WhimbrelRecvBuffersHeld",
    /// Receive buffers that lost what they had grown by, because 90 % of `mem.budget` were used.
    recv_buffers_shrunk = "WhimbrelRecvBuffersShrunk",
    /// Handshakes that waited for text (`TCP_DEFER_ACCEPT`).
    defer_accept_drops = "TcpExtTCPDeferAcceptDrop",
    /// Times that a path was doubted after `net.ipv4.tcp_retries1` retransmissions.
    paths_doubted = "WhimbrelPathsDoubted",
    /// Answers to our SYNs that acknowledge something else: the peer keeps an old connection of the
    /// same ends, most often in TIME-WAIT.
    syn_challenged = "WhimbrelSynChallenged",
    /// SYNs answered from the SYN cache.
    syn_received = "WhimbrelSynReceived",
    /// SYNs and third segments dropped because an accept queue was full.
    listen_overflows = "TcpExtListenOverflows",
    /// SYNs and third segments that a listener dropped, for any reason.
    listen_drops = "TcpExtListenDrops",
    /// SYNs dropped because the SYN cache was full, where cookies are off or are no answer, and no entry could
    /// be evicted.
    syn_cache_overflows = "TcpExtTCPReqQFullDrop",
    /// SYNs answered by a cookie because the SYN cache was full. (Linux adds those that
    /// `net.ipv4.tcp_syncookies=2` answers whether it is full or not.)
    syn_cache_cookies = "TcpExtTCPReqQFullDoCookies",
    /// SYN-ACKs that were sent with a cookie for an ISN (RFC 4987 3.6), and no half-open entry.
    cookies_sent = "TcpExtSyncookiesSent",
    /// SYN cookies that came back and opened a connection.
    cookies_received = "TcpExtSyncookiesRecv",
    /// Acknowledgments that could have brought a SYN cookie back, and had none that holds: old,
    /// forged, or mangled.
    cookies_failed = "TcpExtSyncookiesFailed",
    /// SYNs of ours whose text the peer took (RFC 7413).
    fast_open_active = "TcpExtTCPFastOpenActive",
    /// SYNs of ours whose text the peer did not take: it is sent again.
    fast_open_active_fail = "TcpExtTCPFastOpenActiveFail",
    /// Connections that a SYN with a valid Fast Open cookie opened at once.
    fast_open_passive = "TcpExtTCPFastOpenPassive",
    /// Those of them whose cookie was of the key before the present one.
    fast_open_passive_alt_key = "TcpExtTCPFastOpenPassiveAltKey",
    /// SYNs with a Fast Open cookie that is not valid: the handshake is an ordinary one.
    fast_open_passive_fail = "TcpExtTCPFastOpenPassiveFail",
    /// SYNs with a Fast Open cookie, or asking for one, whose listener had as many connections in
    /// such handshakes as it may have.
    fast_open_listen_overflows = "TcpExtTCPFastOpenListenOverflow",
    /// SYNs that asked for a Fast Open cookie.
    fast_open_cookies_requested = "TcpExtTCPFastOpenCookieReqd",
    /// Times that Fast Open towards a port was given up for a while, because it went unanswered or was
    /// not taken.
    fast_open_blackholes = "TcpExtTCPFastOpenBlackhole",
    /// Half-open entries that made room for a newer one.
    syn_evictions = "WhimbrelSynEvicted",
    /// Handshakes for any destination that gave way to a newer one, the oldest first, because 4,096 waited for
    /// a verdict or for their third segment, or half-open entries or memory were used up.
    verdict_overflows = "WhimbrelVerdictOverflows",
    /// Handshakes for any destination that gave way to a newer one with the same address and port, the oldest
    /// of `max_dials_per_destination` first.
    verdict_crowded = "WhimbrelVerdictCrowded",
    /// SYNs that waited for a verdict and were given up: by the peer, after 127 s, or for a newer one.
    verdict_withdrawn = "WhimbrelVerdictWithdrawn",
    /// Half-open entries that their peer's reset ended, or ours because the accept queue was full.
    embryonic_resets = "TcpExtEmbryonicRsts",
    /// Half-open entries that were never completed.
    syn_timeouts = "WhimbrelSynTimeouts",
    /// Connections that entered TIME-WAIT. (Linux counts them as they leave it.)
    time_wait = "TcpExtTW",
    /// TIME-WAIT records ended early by a new connection.
    time_wait_recycled = "TcpExtTWRecycled",
    /// TIME-WAIT records ended early because their number reached its bound.
    time_wait_overflow = "TcpExtTCPTimeWaitOverflow",
    /// TIME-WAIT records ended by a reset.
    time_wait_killed = "WhimbrelTimeWaitResets",
    /// `connect` calls that found no port free.
    ports_exhausted = "WhimbrelPortsExhausted",
    /// SYNs in TIME-WAIT that a newer timestamp showed to be new.
    time_wait_reused_by_timestamp = "WhimbrelTimeWaitReusedByTimestamp",
    /// SYNs in TIME-WAIT that their sequence number showed to be new.
    time_wait_reused_by_sequence = "WhimbrelTimeWaitReusedBySequence",
    /// TIME-WAIT records that came back because the handshake which the SYN began was reset or timed
    /// out (RFC 1122 4.2.2.13 b).
    time_wait_returned = "WhimbrelTimeWaitReturned",
    /// SYNs in TIME-WAIT refused because their timestamp is older than the connection's last.
    time_wait_older_timestamp = "WhimbrelTimeWaitOlderTimestamp",
    /// SYNs in TIME-WAIT refused because their sequence number is not new.
    time_wait_old_sequence = "WhimbrelTimeWaitOldSequence",
    /// SYNs in TIME-WAIT refused because their sequence number is 2^31 away (RFC 1982).
    time_wait_undefined_order = "WhimbrelTimeWaitUndefinedOrder",
    /// SYNs in TIME-WAIT refused because `tw.syn` refuses them all.
    time_wait_refused_by_policy = "WhimbrelTimeWaitRefusedByPolicy",
    /// SYNs in TIME-WAIT that are new, but for a port without a listener.
    time_wait_without_listener = "WhimbrelTimeWaitWithoutListener",
    /// TIME-WAIT records of ours whose place and port `connect` took, because no other was free.
    time_wait_taken_over = "WhimbrelTimeWaitTakenOver",
    /// Destinations with more than 64 ports in use that found no map free, of 1,024: their ports are
    /// looked up one by one.
    port_maps_refused = "WhimbrelPortMapsRefused",
    /// SYNs from a port used before that had to be sent again, before which the peer was not known to
    /// be silent.
    syns_unheard = "WhimbrelSynsUnheard",
    /// ICMP errors whose quoted segment was not in flight; discarded (RFC 5927 4.1).
    icmp_out_of_window = "TcpExtOutOfWindowIcmps",
    /// ICMP errors that connections noted and outlived.
    icmp_soft_errors = "WhimbrelIcmpSoftErrors",
    /// Attempts to open that an ICMP error ended.
    icmp_aborts = "WhimbrelIcmpAborts",
    /// Connections that a lesser path MTU made use smaller segments.
    path_mtu_lowered = "WhimbrelPathMtuLowered",
    /// Times that a connection took to smaller segments, because full ones were not answered twice in a row
    /// (RFC 4821 7.7).
    path_mtu_suspected = "WhimbrelPathMtuSuspected",
    /// Probes of the path MTU that were lost, and nothing around them (RFC 4821 7.6.2).
    mtu_probe_failures = "TcpExtTCPMTUPFail",
    /// Probes of the path MTU that arrived: segments are as large from then on.
    mtu_probe_successes = "TcpExtTCPMTUPSuccess",
    /// Reports of a lesser path MTU that wait for the quoted segment to time out, because segments as
    /// large were acknowledged before (RFC 5927 7.2).
    path_mtu_held = "WhimbrelPathMtuHeld",
    /// Such reports, and suspicions of a narrower path, that were dropped because a segment as large was acknowledged.
    path_mtu_refuted = "WhimbrelPathMtuRefuted",
}

impl Counters {
    /// Counts `segs` segments that arrived as one and were dropped for `reason`.
    #[inline]
    pub fn drop_segments(&mut self, reason: DropReason, segs: u64) {
        self.dropped.add(reason as usize, segs);
    }

    /// Counts what loss recovery found.
    pub fn count_recovery(&mut self, found: RecoveryEvents) {
        self.sack_recovery += u64::from(found.sack_recovery);
        self.reno_recovery += u64::from(found.reno_recovery);
        self.lost_retransmit += u64::from(found.lost_retransmit);
        self.sack_reneging += u64::from(found.sack_reneging);
        self.loss_probe_recovery += u64::from(found.loss_probe_recovery);
        self.spurious_rtos += u64::from(found.spurious_rto);
        self.dsack_undo += u64::from(found.dsack_undo);
        self.full_undo += u64::from(found.full_undo);
    }
}
