//! The end of patience: R1 and R2 of RFC 9293 3.8.3, and the user time-out.

use core::time::Duration;

use crate::conn::transfer::Transfer;
use crate::conn::{Flags, State};
use crate::{Context, Tunables};

impl Transfer {
    /// Counts that the retransmission timer ran out. A sender without a window probes, and times out from nothing.
    pub(in crate::conn) fn count_timeout(&mut self, cx: &Context) {
        let sender = &self.tcb.sender;
        if sender.seq().wnd.get() > 0 || sender.has_syn() {
            let attempt = sender.attempts();
            self.tcb.cold_mut().info_counts.on_timeout(attempt, cx.tick);
        }
    }

    /// RFC 9293 3.8.3's R2: a number of attempts, or the time that the application set instead
    /// (RFC 5482 3). The first time-out never ends a connection that is there.
    pub(in crate::conn) fn gives_up(&self, cx: &Context) -> bool {
        let opening = matches!(self.tcb.state, State::SynSent | State::SynReceived);
        let asked = self.tcb.sender.attempts() > 1
            || self.tcb.sender.is_persisting()
            || self.tcb.limits_first_syn(&cx.tunables);
        match self.tcb.user_timeout(&cx.tunables) {
            Some(limit) if asked && self.waited(cx) >= limit => true,
            Some(_) if !opening => false,
            _ => {
                self.tcb.sender.attempts() > self.attempt_limit(cx) || self.is_abandoned_silence(cx)
            }
        }
    }

    /// True if no application owns the connection any more, and its peer acknowledged nothing for as long as its
    /// retransmissions would take from the least RTO on. By their number alone one with an RTO of a minute
    /// would be held for nine. As Linux, which makes a time of the number: 6.18 ends an orphan after
    /// 107 s at an RTO of 0.2 s, and after 143 s at one of 20 s.
    fn is_abandoned_silence(&self, cx: &Context) -> bool {
        self.tcb.flags.has(Flags::ORPHAN)
            && !self.tcb.sender.is_persisting()
            && self.tcb.sender.attempts() > 1
            && self.waited(cx) >= orphan_time(&cx.tunables)
    }

    /// True if no application owns the connection any more and its peer, which answers, keeps its window
    /// closed: a stranger could make us hold text for ever (RFC 9293 3.8.6.1 has it stay open, and
    /// warns of that). As Linux: after the retransmissions that such a connection is given, once
    /// their interval does not grow any more.
    pub(in crate::conn) fn is_abandoned_stall(&self, cx: &Context) -> bool {
        self.tcb.flags.has(Flags::ORPHAN)
            && self.tcb.sender.is_persisting()
            && self.tcb.sender.rtt().back_offs() >= cx.tunables.orphan_retries
            && self.tcb.sender.rtt().rto_micros(&cx.tunables)
                >= u64::from(cx.tunables.max_rto.get())
    }

    fn attempt_limit(&self, cx: &Context) -> u8 {
        match self.tcb.state {
            State::SynReceived if self.tcb.is_early() => {
                self.tcb.cold().synack_retries(&cx.tunables)
            }
            State::SynSent | State::SynReceived => self.tcb.cold().syn_retries(&cx.tunables),
            // RFC 9293 3.8.6.1: "As long as the receiving TCP peer continues to send acknowledgments
            // in response to the probe segments, the sending TCP peer MUST allow the connection to
            // stay open (MUST-37)": `attempts` is reset by every answer.
            _ if self.tcb.flags.has(Flags::ORPHAN) => cx.tunables.orphan_retries,
            _ => self.tcb.cold().retries(&cx.tunables),
        }
    }

    /// The time since anything was acknowledged, or since something began to wait for it.
    pub(in crate::conn) fn waited(&self, cx: &Context) -> Duration {
        let millis = cx.tick.millis_since(self.tcb.counts.waits_since);
        Duration::from_millis(u64::from(millis))
    }
}

/// The time for which the retransmissions of an orphan take if the first is due after Linux' least RTO, or after ours
/// where that is more.
fn orphan_time(tunables: &Tunables) -> Duration {
    let first = u64::from(tunables.min_rto.get()).max(LINUX_MIN_RTO_MICROS);
    let most = u64::from(tunables.max_rto.get());
    let waits = (0..=tunables.orphan_retries).map(|doublings| (first << doublings).min(most));
    Duration::from_micros(waits.sum())
}

/// The RTO with which Linux computes `net.ipv4.tcp_orphan_retries` (TCP_RTO_MIN): by a profile's least RTO of 30 ms
/// a slow path would have a few retransmissions only.
const LINUX_MIN_RTO_MICROS: u64 = 200_000;
