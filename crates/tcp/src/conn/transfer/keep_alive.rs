//! Silence of a peer that owes nothing: keep-alive probes (RFC 9293 3.8.4), and the end of FIN-WAIT-2
//! where no application waits for its FIN.

use core::time::Duration;

use crate::Context;
use crate::conn::transfer::Transfer;
use crate::conn::{Flags, KeepAlive};

impl Transfer {
    /// Our SYN is acknowledged.
    pub(in crate::conn) fn complete_early(&mut self, cx: &mut Context) {
        self.tcb.flags.clear(Flags::EARLY);
        cx.counters.passive_opens += 1;
        if self.tcb.flags.has(Flags::KEEP_ALIVE) {
            self.set_keep_alive(cx, KeepAlive::On);
        }
    }

    /// Probes the connection when it is silent, or stops to.
    pub(in crate::conn) fn set_keep_alive(&mut self, cx: &Context, keep_alive: KeepAlive) {
        match keep_alive {
            KeepAlive::On => self.start_keep_alive(cx),
            KeepAlive::Off => {
                self.tcb.flags.clear(Flags::KEEP_ALIVE);
                self.tcb.sender.set_keep_alive(false);
                self.tcb.keep_alive_probes = 0;
                if self.tcb.may_be_probed() {
                    self.timers.stop_life();
                }
            }
        }
    }

    /// Something arrived from the peer: it lives.
    pub(in crate::conn) fn heard(&mut self, cx: &Context) {
        self.tcb.sender.on_heard();
        if self.tcb.flags.has(Flags::KEEP_ALIVE) {
            self.heard_while_watched(cx);
        }
    }

    /// The peer was heard, whose silence is probed: the probing begins anew.
    #[inline(never)]
    fn heard_while_watched(&mut self, cx: &Context) {
        if self.tcb.may_be_probed() {
            self.tcb.keep_alive_probes = 0;
            self.timers.life = cx.now + self.tcb.cold().keepalive_time(&cx.tunables);
        }
    }

    /// Probes the connection when it is silent (`SO_KEEPALIVE`).
    pub(in crate::conn) fn start_keep_alive(&mut self, cx: &Context) {
        self.tcb.flags.set(Flags::KEEP_ALIVE);
        if self.tcb.may_be_probed() {
            self.timers.life = cx.now + self.tcb.cold().keepalive_time(&cx.tunables);
        }
    }

    /// FIN-WAIT-2 without an owner ends by itself; with one it is silent until the peer speaks.
    #[inline(never)]
    pub(in crate::conn) fn start_fin_wait_2(&mut self, cx: &Context) {
        if self.tcb.flags.has(Flags::ORPHAN) {
            self.timers.life = cx.now + self.tcb.cold().fin_timeout(&cx.tunables);
        } else if self.tcb.flags.has(Flags::KEEP_ALIVE) {
            self.timers.life = cx.now + self.tcb.cold().keepalive_time(&cx.tunables);
        }
    }

    /// Asks for a segment that the peer must answer (RFC 9293 3.8.4). Returns true if it left so many
    /// unanswered that it counts as gone.
    pub(in crate::conn) fn probe_liveness(&mut self, cx: &mut Context) -> bool {
        if self.rto_is_armed() {
            // Retransmission or window probing is already asking.
            self.timers.life = cx.now + self.tcb.cold().keepalive_time(&cx.tunables);
            return false;
        }
        let is_gone = match self.tcb.patience(&cx.tunables) {
            Some(limit) => self.tcb.keep_alive_probes > 0 && self.silence(cx) >= limit,
            None => self.tcb.keep_alive_probes >= self.tcb.cold().keepalive_probes(&cx.tunables),
        };
        if is_gone {
            return true;
        }
        self.tcb.keep_alive_probes = self.tcb.keep_alive_probes.saturating_add(1);
        self.tcb.sender.set_keep_alive(true);
        cx.counters.keep_alives += 1;
        self.timers.life = cx.now + self.tcb.cold().keepalive_interval(&cx.tunables);
        false
    }

    /// The time since the peer was last heard.
    fn silence(&self, cx: &Context) -> Duration {
        let counts = &self.tcb.counts;
        let since =
            [counts.last_data_recv, counts.last_ack_recv].map(|at| cx.tick.millis_since(at));
        Duration::from_millis(since.into_iter().min().map_or(0, u64::from))
    }

    /// The time that the connection may be silent became another one.
    pub(in crate::conn) fn restart_keep_alive(&mut self, cx: &Context) {
        let is_watched = self.tcb.flags.has(Flags::KEEP_ALIVE) && self.tcb.may_be_probed();
        if is_watched && self.tcb.keep_alive_probes == 0 {
            let left =
                self.tcb.cold().keepalive_time(&cx.tunables).saturating_sub(self.silence(cx));
            self.timers.life = cx.now + left;
        }
    }
}
