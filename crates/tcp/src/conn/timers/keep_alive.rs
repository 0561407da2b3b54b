//! Silence of a peer that owes nothing: keep-alive probes (RFC 9293 3.8.4), and the end of FIN-WAIT-2
//! where nobody waits for its FIN.

use core::time::Duration;

use crate::Context;
use crate::conn::{Connection, Flags, State};
use crate::verdict::CloseReason;

impl Connection {
    /// Something arrived from the peer: it lives.
    pub(in crate::conn) fn heard(&mut self, cx: &Context) {
        self.sender.on_heard();
        if self.flags.has(Flags::KEEP_ALIVE) {
            self.heard_while_watched(cx);
        }
    }

    /// The peer was heard, whose silence is probed: the probing begins anew.
    #[inline(never)]
    fn heard_while_watched(&mut self, cx: &Context) {
        if self.may_be_probed() {
            self.keep_alive_probes = 0;
            self.timers.life = cx.now + self.keepalive_time(&cx.tunables);
        }
    }

    /// Probes the connection when it is silent (`SO_KEEPALIVE`).
    pub fn start_keep_alive(&mut self, cx: &Context) {
        self.flags.set(Flags::KEEP_ALIVE);
        if self.may_be_probed() {
            self.timers.life = cx.now + self.keepalive_time(&cx.tunables);
        }
    }

    /// Whether keep-alive, if it is on, watches this state: somebody waits for what the peer may still
    /// say, and no FIN of ours asks already. That goes for FIN-WAIT-2, too, where nothing else would find
    /// out that the peer is gone; without an owner that state has a time-out of its own.
    pub(in crate::conn) fn may_be_probed(&self) -> bool {
        match self.state {
            State::Established | State::CloseWait => true,
            State::FinWait2 => !self.flags.has(Flags::ORPHAN),
            _ => false,
        }
    }

    /// FIN-WAIT-2 without an owner ends by itself; with one it is silent until the peer speaks.
    #[inline(never)]
    pub(in crate::conn) fn start_fin_wait_2(&mut self, cx: &Context) {
        if self.flags.has(Flags::ORPHAN) {
            self.timers.life = cx.now + self.fin_timeout(&cx.tunables);
        } else if self.flags.has(Flags::KEEP_ALIVE) {
            self.timers.life = cx.now + self.keepalive_time(&cx.tunables);
        }
    }

    /// RFC 9293 3.8.4: a segment that the peer must answer.
    pub(super) fn probe_liveness(&mut self, cx: &mut Context) {
        if self.rto_is_armed() {
            // Retransmission or window probing is already asking.
            self.timers.life = cx.now + self.keepalive_time(&cx.tunables);
            return;
        }
        let given_up = match self.patience(&cx.tunables) {
            Some(limit) => self.keep_alive_probes > 0 && self.silence(cx) >= limit,
            None => self.keep_alive_probes >= self.keepalive_probes(&cx.tunables),
        };
        if given_up {
            cx.counters.abort_on_timeout += 1;
            self.end(cx, CloseReason::TimedOut);
            return;
        }
        self.keep_alive_probes = self.keep_alive_probes.saturating_add(1);
        self.sender.set_keep_alive(true);
        cx.counters.keep_alives += 1;
        self.timers.life = cx.now + self.keepalive_interval(&cx.tunables);
    }

    /// The time since the peer was last heard.
    fn silence(&self, cx: &Context) -> Duration {
        let (now, tally) = (cx.tick, &self.stats.tally);
        let since = [tally.last_data_recv, tally.last_ack_recv].map(|at| now.millis_since(at));
        Duration::from_millis(since.into_iter().min().map_or(0, u64::from))
    }

    /// The time that the connection may be silent became another one.
    pub(in crate::conn) fn restart_keep_alive(&mut self, cx: &Context) {
        let is_watched = self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed();
        if is_watched && self.keep_alive_probes == 0 {
            let left = self.keepalive_time(&cx.tunables).saturating_sub(self.silence(cx));
            self.timers.life = cx.now + left;
        }
    }
}
