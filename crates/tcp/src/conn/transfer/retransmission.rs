//! When the sender's deadline is: retransmission (RFC 6298 5), probes of a closed window, and what recovery
//! waits for, whichever is first.

use core::time::Duration;

use whimbrel_base::{Instant, cold_path};
use whimbrel_recovery::Recovery;

use crate::Context;
use crate::conn::State;
use crate::conn::transfer::Transfer;
use crate::send::SendTimer;

impl Transfer {
    /// The end of what is in flight may be lost, unless more was sent since.
    pub(in crate::conn) fn on_probe_timeout(&mut self, cx: &Context) {
        let Some(sent) = self.tcb.queue().and_then(|queue| queue.flight.last_sent()) else {
            return self.on_fin_probe_timeout(cx);
        };
        let due = self.probe_due(cx, sent);
        let expiry = self.tcb.queue().and_then(|queue| queue.flight.first_sent());
        let expiry = expiry.map(|at| self.tcb.sender.rtt().due(at, &cx.tunables));
        match due.map(|due| expiry.map_or(due, |expiry| due.min(expiry))) {
            // "The sender SHOULD start or restart a loss probe PTO timer after transmitting new data".
            Some(due) if due > cx.now => {
                self.tcb.sender.set_timer(SendTimer::LossProbe);
                self.timers.sender = due;
            }
            Some(_) => {
                self.tcb.sender.on_probe_timeout();
            }
            None => self.time_flight(cx),
        }
    }

    /// FIN alone is in flight, behind which nothing was sent.
    fn on_fin_probe_timeout(&mut self, cx: &Context) {
        match self.probe_due(cx, cx.now) {
            Some(_) => self.tcb.sender.on_probe_timeout(),
            None => self.time_flight(cx),
        }
    }

    /// RFC 6298 5.1 to 5.3: runs while something is unacknowledged, or while a closed window
    /// keeps something from being sent.
    pub(in crate::conn) fn rearm_retransmission(&mut self, cx: &Context) {
        self.rearm_acknowledged(cx);
    }

    /// Arms the timer where something new was acknowledged.
    // Always: what it compares has just been changed there.
    #[inline(always)]
    pub(in crate::conn) fn rearm_acknowledged(&mut self, cx: &Context) {
        if self.tcb.sender.may_be_stalled() {
            return self.rearm_maybe_stalled(cx);
        }
        if self.tcb.sender.is_idle() && self.is_quiet() {
            self.tcb.sender.stop_timer();
            self.timers.stop_sender();
            return;
        }
        self.rearm_flight(cx);
    }

    /// Arms the timer while something is in flight, or may still turn out to be missing.
    // Out of line: of a short connection nothing is by then.
    #[inline(never)]
    fn rearm_flight(&mut self, cx: &Context) {
        self.tcb.sender.stop_persist();
        self.time_flight(cx);
    }

    /// Arms the timer for a connection whose peer's window may keep text back.
    #[inline(never)]
    fn rearm_maybe_stalled(&mut self, cx: &Context) {
        if self.tcb.sender.waits_for_window(self.tcb.queue()) {
            return self.rearm_stalled(cx);
        }
        self.rearm_flight(cx);
    }

    /// Arms the timer where only the peer's window keeps something from being sent.
    #[inline(never)]
    fn rearm_stalled(&mut self, cx: &Context) {
        let due = self.retransmission_due(cx);
        if self.tcb.sender.is_persisting() {
            // RFC 9293 3.8.6.1: probing goes on, at growing intervals, whatever arrives.
            self.timers.sender = self.timers.sender.min(due);
        } else {
            // RFC 9293 3.8.6.1: the first probe goes "when a zero window has existed for the
            // retransmission timeout period (SHLD-29)", not when what was acknowledged would
            // have been sent again.
            self.tcb.sender.set_timer(SendTimer::Persist);
            self.tcb.counts.waits_since = cx.tick;
            self.timers.sender = due;
        }
    }

    /// Sets the sender's timer for what is in flight now. RFC 8985 8: the reordering timer, the probe's and
    /// the retransmission timer "are mutually exclusive".
    #[inline(always)]
    fn time_flight(&mut self, cx: &Context) {
        let (timer, due) = match self.is_quiet() {
            true if self.tcb.sender.is_idle() => (SendTimer::Retransmission, Instant::NEVER),
            true => self.flight_due(cx),
            false => self.recovery_due(cx),
        };
        self.tcb.sender.set_timer(timer);
        self.timers.sender = due;
    }

    /// The timer and its deadline where something is missing, or may have been.
    #[inline(never)]
    fn recovery_due(&self, cx: &Context) -> (SendTimer, Instant) {
        let recovery = self.tcb.queue().map(|queue| &queue.recovery);
        if self.tcb.sender.is_idle() {
            return match recovery.is_some_and(Recovery::remembers) {
                true => (SendTimer::Forget, self.retransmission_due(cx)),
                false => (SendTimer::Retransmission, Instant::NEVER),
            };
        }
        match recovery.and_then(Recovery::reordering_due) {
            Some(due) => (SendTimer::Reordering, due),
            None => self.flight_due(cx),
        }
    }

    /// The probe's or the retransmission timer, whichever is first.
    #[inline]
    fn flight_due(&self, cx: &Context) -> (SendTimer, Instant) {
        let due = self.retransmission_due(cx);
        match self.probe_due(cx, cx.now) {
            // RFC 8985 7.2: "if the time at which an RTO would fire (...) is sooner than the computed
            // time for the PTO, then the sender schedules a TLP to be sent at that RTO time."
            Some(probe) => (SendTimer::LossProbe, probe.min(due)),
            None => (SendTimer::Retransmission, due),
        }
    }

    /// Something is missing, or not any more, though nothing new was acknowledged.
    pub(in crate::conn) fn retime(&mut self, cx: &Context) {
        let recovery = self.tcb.buffers.as_deref().map(|buffers| &buffers.send.recovery);
        let reordering = recovery.is_some_and(|recovery| recovery.reordering_due().is_some());
        let is_probe =
            matches!(self.tcb.sender.timer(), SendTimer::Reordering | SendTimer::LossProbe);
        if !self.tcb.sender.is_idle()
            && (reordering || is_probe && self.probe_due(cx, cx.now).is_none())
        {
            self.time_flight(cx);
        }
    }

    /// True if the sender's timer asks the peer for something.
    pub(in crate::conn) fn rto_is_armed(&self) -> bool {
        self.timers.sender != Instant::NEVER && self.tcb.sender.timer() != SendTimer::Forget
    }

    /// Starts the timer if something is out and it does not run yet (RFC 6298 5.1).
    pub(in crate::conn) fn arm_retransmission(&mut self, cx: &Context) {
        let is_first = self.timers.sender == Instant::NEVER
            && self.tcb.sender.attempts() == 0
            && self.is_quiet()
            && !self.tcb.counts.has_record()
            && !self.tcb.sender.is_persisting()
            && !self.tcb.sender.has_syn();
        if !is_first {
            return self.arm_again(cx);
        }
        // Nearly each flight of a short connection: nothing is called.
        self.tcb.counts.waits_since = cx.tick;
        let wait = self.tcb.sender.rtt().rto_micros(&cx.tunables);
        let (timer, wait) = match self.probe_wait(cx) {
            Some(probe) => (SendTimer::LossProbe, wait.min(probe)),
            None => (SendTimer::Retransmission, wait),
        };
        self.tcb.sender.set_timer(timer);
        self.timers.sender = cx.now.after_micros(wait);
    }

    /// Starts the timer for a SYN or SYN-ACK.
    #[inline]
    pub(in crate::conn) fn arm_for_syn(&mut self, cx: &Context) {
        if !self.rto_is_armed() {
            if self.tcb.sender.attempts() == 0 {
                self.tcb.counts.waits_since = cx.tick;
            }
            self.timers.sender = self.retransmission_due(cx);
        }
    }

    #[inline(never)]
    fn arm_again(&mut self, cx: &Context) {
        if self.rto_is_armed() {
            if self.tcb.sender.timer() == SendTimer::LossProbe {
                // A short flight is given longer than one that grew since.
                let due = self.probe_due(cx, cx.now).unwrap_or(self.timers.sender);
                self.timers.sender = self.timers.sender.min(due);
            }
            return;
        }
        // What a loss probe asks for waits since before that.
        if self.tcb.sender.attempts() == 0 && self.is_quiet() {
            self.tcb.counts.waits_since = cx.tick;
        }
        if self.tcb.sender.is_persisting() || self.tcb.sender.has_syn() {
            self.timers.sender = self.retransmission_due(cx);
        } else {
            self.time_flight(cx);
        }
    }

    /// True if recovery remembers nothing.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.tcb.queue().is_none_or(|queue| queue.recovery.is_none())
    }

    /// The segment at SND.UNA went again without a time-out: its acknowledgment has as long as any.
    pub(in crate::conn) fn restart_retransmission(&mut self, cx: &Context) {
        if self.tcb.sender.timer() == SendTimer::Retransmission {
            self.timers.sender = self.retransmission_due(cx);
        }
    }

    /// When what was sent last is sent again.
    #[inline]
    fn retransmission_due(&self, cx: &Context) -> Instant {
        let opening = matches!(self.tcb.state, State::SynSent | State::SynReceived);
        let limited = self.tcb.sender.attempts() > 0 && !cx.tunables.user_timeout.is_zero();
        if opening || limited || self.tcb.cold().overrides().is_some() {
            return cx.now + self.retransmission_wait(cx);
        }
        self.tcb.sender.rtt().due(cx.now, &cx.tunables)
    }

    /// The time for which what was sent last may go unanswered: a SYN by its schedule, anything else by the
    /// path's round trips.
    #[inline(never)]
    fn retransmission_wait(&self, cx: &Context) -> Duration {
        let wait = match self.tcb.state {
            State::SynReceived if self.tcb.is_early() => {
                cold_path();
                // As the SYN cache does: the schedule of a tunable is for SYNs alone.
                let doubled = Duration::from(cx.tunables.initial_rto)
                    * (1 << self.tcb.sender.attempts().min(16));
                doubled.min(cx.tunables.max_rto.into())
            }
            State::SynSent | State::SynReceived => {
                cx.tunables.syn_retry.wait(self.tcb.sender.attempts(), &cx.tunables)
            }
            _ => self.tcb.sender.rtt().rto(&cx.tunables),
        };
        if self.tcb.sender.attempts() > 0
            || self.tcb.sender.is_persisting()
            || self.tcb.limits_first_syn(&cx.tunables)
        {
            return self.limited_wait(cx, wait);
        }
        wait
    }

    /// The time for which to wait, `wait` at most: no longer than the peer has time to answer, so that the end of that
    /// is noticed then, not up to a minute later.
    #[inline(never)]
    fn limited_wait(&self, cx: &Context, wait: Duration) -> Duration {
        match self.tcb.user_timeout(&cx.tunables) {
            Some(limit) => wait.min(limit.saturating_sub(self.waited(cx)).max(LEAST_WAIT)),
            None => wait,
        }
    }

    /// SYN-SENT: what came acknowledges something else than our SYN. The peer has an old connection
    /// of the same ends, or its TIME-WAIT; our reset, which is sent for this, can end that
    /// (RFC 9293 3.5.2, RFC 5961 4.2). One round trip later it has: the SYN goes out again then,
    /// once for each attempt, and not only after a time-out.
    pub(in crate::conn) fn on_challenged(&mut self, cx: &mut Context) {
        cx.counters.syn_challenged += 1;
        let challenges = &mut self.tcb.counts.stats_mut().syn_challenges;
        let first = *challenges == 0;
        *challenges = challenges.saturating_add(1);
        if !first || !self.rto_is_armed() || !cx.tunables.syn_after_challenge {
            return;
        }
        let due = self.timers.sender;
        let trip = self.retransmission_wait(cx).saturating_sub(due.since(cx.now));
        let again = cx.now + trip.max(LEAST_WAIT);
        if again < due {
            self.timers.sender = again;
            self.tcb.sender.plan_syn_again();
        }
    }
}

/// The least rest of a user time-out.
const LEAST_WAIT: Duration = Duration::from_millis(1);
