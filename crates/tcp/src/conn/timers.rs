//! The timers of a connection, and what happens when one runs out.
//!
//! Three deadlines serve every purpose, because each of them excludes the others that share it:
//! retransmission and window probing; delayed acknowledgment; keep-alive and FIN-WAIT-2.

use core::time::Duration;

use whimbrel_base::Instant;

use super::{Connection, Flags, State};
use crate::verdict::CloseReason;
use crate::{Context, Tunables};

/// Three deadlines, [`Instant::NEVER`] while they do not run.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    retransmission: Instant,
    ack: Instant,
    life: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Self { retransmission: Instant::NEVER, ack: Instant::NEVER, life: Instant::NEVER }
    }
}

impl Timers {
    /// The earliest.
    #[inline]
    pub fn next(&self) -> Instant {
        self.retransmission.min(self.ack).min(self.life)
    }

    /// Whether retransmission or window probing is on its way.
    pub(super) fn asks_again(&self) -> bool {
        self.retransmission != Instant::NEVER
    }

    /// An acknowledgment is due at the latest after `delay`.
    pub(super) fn delay_ack(&mut self, now: Instant, delay: Duration) {
        self.ack = self.ack.min(now + delay);
    }

    /// Whether an acknowledgment is being delayed.
    pub(super) fn delays_ack(&self) -> bool {
        self.ack != Instant::NEVER
    }

    pub(super) fn stop_ack(&mut self) {
        self.ack = Instant::NEVER;
    }

    pub(super) fn stop_retransmission(&mut self) {
        self.retransmission = Instant::NEVER;
    }

    pub(super) fn stop_life(&mut self) {
        self.life = Instant::NEVER;
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::default();
    }
}

impl Connection {
    /// When [`Connection::on_deadline`] must be called, [`Instant::NEVER`] if nothing runs.
    #[inline]
    pub fn next_deadline(&self) -> Instant {
        self.timers.next()
    }

    /// Time passed: whatever is due happens.
    pub fn on_deadline(&mut self, cx: &mut Context<'_>) {
        if self.timers.ack <= cx.now {
            self.timers.stop_ack();
            self.receiver.owe_ack();
            cx.counters.delayed_acks += 1;
        }
        if self.timers.retransmission <= cx.now {
            self.timers.stop_retransmission();
            if self.flags.take(Flags::ASK_AGAIN) {
                self.snd.nxt = self.snd.una;
            } else {
                self.on_retransmission_timeout(cx);
            }
        }
        if self.timers.life <= cx.now {
            self.timers.life = Instant::NEVER;
            self.on_life_timeout(cx);
        }
        self.note_limit(cx);
        self.settle(cx);
    }

    /// RFC 6298 5.1 to 5.3: runs while something is unacknowledged, or while a closed window
    /// keeps something from being sent.
    pub(super) fn rearm_retransmission(&mut self, cx: &Context<'_>) {
        if self.is_stalled() {
            let due = self.retransmission_due(cx);
            if self.flags.has(Flags::PERSIST) {
                // RFC 9293 3.8.6.1: probing goes on, at growing intervals, whatever arrives.
                self.timers.retransmission = self.timers.retransmission.min(due);
            } else {
                // RFC 9293 3.8.6.1: the first probe goes "when a zero window has existed for the
                // retransmission timeout period (SHLD-29)", not when what was acknowledged would
                // have been sent again.
                self.flags.set(Flags::PERSIST);
                self.ledger.tally.waits_since = cx.tick;
                self.timers.retransmission = due;
            }
            return;
        }
        self.timers.retransmission =
            if self.snd.una == self.snd.max { Instant::NEVER } else { self.retransmission_due(cx) };
        self.flags.clear(Flags::PERSIST);
        self.flags.clear(Flags::PROBE);
    }

    /// Starts the timer if something is out and it does not run yet (RFC 6298 5.1).
    pub(super) fn arm_retransmission(&mut self, cx: &Context<'_>) {
        if self.timers.retransmission == Instant::NEVER {
            if self.attempts == 0 {
                self.ledger.tally.waits_since = cx.tick;
            }
            self.timers.retransmission = self.retransmission_due(cx);
        }
    }

    /// When what was sent last is sent again.
    #[inline]
    fn retransmission_due(&self, cx: &Context<'_>) -> Instant {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if opening || self.particulars().is_some() {
            return cx.now + self.retransmission_wait(cx);
        }
        self.rtt.due(cx.now, cx.tunables)
    }

    /// How long what was sent last may go unanswered: a SYN by its schedule, anything else by the
    /// path's round trips.
    #[inline(never)]
    fn retransmission_wait(&self, cx: &Context<'_>) -> Duration {
        let wait = match self.state {
            State::SynReceived if self.is_early() => {
                // As the SYN cache does: the schedule of a tunable is for SYNs alone.
                let doubled = cx.tunables.initial_rto * (1 << self.attempts.min(16));
                doubled.min(cx.tunables.max_rto.into())
            }
            State::SynSent | State::SynReceived => {
                cx.tunables.syn_retry.wait(self.attempts, cx.tunables)
            }
            _ => self.rtt.rto(cx.tunables),
        };
        match self.user_timeout(cx.tunables) {
            // So that it is noticed when it is over, not up to a minute later.
            Some(limit)
                if self.attempts > 0
                    || self.flags.has(Flags::PERSIST)
                    || self.limits_first_syn(cx.tunables) =>
            {
                wait.min(limit.saturating_sub(self.waited(cx)).max(LEAST_WAIT))
            }
            _ => wait,
        }
    }

    /// SYN-SENT: what came acknowledges something else than our SYN. The peer has an old connection
    /// of the same ends, or its TIME-WAIT; our reset, which is sent for this, can end that
    /// (RFC 9293 3.5.2, RFC 5961 4.2). One round trip later it has: the SYN goes out again then,
    /// once for each attempt, and not only after a time-out.
    pub(super) fn on_challenged(&mut self, cx: &mut Context<'_>) {
        cx.counters.syn_challenged += 1;
        let challenges = &mut self.ledger.tally.challenges;
        let first = *challenges == 0;
        *challenges = challenges.saturating_add(1);
        if !first || !self.timers.asks_again() || !cx.tunables.syn_after_challenge {
            return;
        }
        let due = self.timers.retransmission;
        let trip = self.retransmission_wait(cx).saturating_sub(due.since(cx.now));
        let again = cx.now + trip.max(LEAST_WAIT);
        if again < due {
            self.timers.retransmission = again;
            self.flags.set(Flags::ASK_AGAIN);
        }
    }

    /// The time since anything was acknowledged, or since something began to wait for it.
    fn waited(&self, cx: &Context<'_>) -> Duration {
        let millis = cx.tick.millis_since(self.ledger.tally.waits_since);
        Duration::from_millis(u64::from(millis))
    }

    fn on_retransmission_timeout(&mut self, cx: &mut Context<'_>) {
        self.attempts = self.attempts.saturating_add(1);
        if self.gives_up(cx) || self.is_abandoned_stall(cx) {
            cx.counters.abort_on_timeout += 1;
            self.end(cx, CloseReason::TimedOut);
            return;
        }
        self.rtt.back_off();
        if self.flags.has(Flags::PERSIST) {
            self.flags.set(Flags::PROBE);
            return;
        }
        cx.counters.timeouts += 1;
        self.believe_too_big(cx);
        let flight = self.flight();
        self.recovery.on_timeout(&mut self.cc, self.attempts, flight);
        self.snd.nxt = self.snd.una;
        // The small segment that Nagle's algorithm would wait for counts as lost, too.
        self.small_end = self.snd.una;
        if self.attempts > 1 && self.snd.wnd.get() == 0 && !self.flags.has(Flags::SYN) {
            // RFC 9293 3.8.6: "If the window shrinks to zero, the TCP implementation MUST probe it
            // in the standard way (described below) (MUST-35)." What was in flight counts as
            // unsent until the window opens; of it the probe is made. The first time it is sent
            // again all the same (RFC 7323 2.4).
            self.flags.set(Flags::PERSIST);
            self.flags.set(Flags::PROBE);
            return;
        }
        // RFC 6298 5.4: "Retransmit the earliest segment that has not been acknowledged by the
        // TCP receiver". What follows it is sent again as the windows admit.
        self.flags.set(Flags::RETRANSMIT);
    }

    /// Whether RFC 9293 3.8.3's R1 was just reached: the internet layer is to look for another way.
    pub fn doubts_path(&self, tunables: &Tunables) -> bool {
        let due = self.flags.has(Flags::RETRANSMIT) || self.flags.has(Flags::SYN);
        due && self.attempts == tunables.doubt_after
    }

    /// RFC 9293 3.8.3's R2: a number of attempts, or the time that the application set instead
    /// (RFC 5482 3). The first time-out never ends a connection that is there.
    fn gives_up(&self, cx: &Context<'_>) -> bool {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let asked = self.attempts > 1
            || self.flags.has(Flags::PERSIST)
            || self.limits_first_syn(cx.tunables);
        match self.user_timeout(cx.tunables) {
            Some(limit) if asked && self.waited(cx) >= limit => true,
            Some(_) if !opening => false,
            _ => self.attempts > self.attempt_limit(cx),
        }
    }

    /// Whether nobody owns the connection any more and its peer, which answers, keeps its window
    /// closed: a stranger could make us hold text for ever (RFC 9293 3.8.6.1 has it stay open, and
    /// warns of that). As Linux: after the retransmissions that such a connection is given, once
    /// their interval does not grow any more.
    fn is_abandoned_stall(&self, cx: &Context<'_>) -> bool {
        self.flags.has(Flags::ORPHAN)
            && self.flags.has(Flags::PERSIST)
            && self.rtt.back_offs() >= cx.tunables.orphan_retries
            && self.rtt.rto_micros(cx.tunables) >= u64::from(cx.tunables.max_rto.get())
    }

    fn attempt_limit(&self, cx: &Context<'_>) -> u8 {
        match self.state {
            State::SynReceived if self.is_early() => self.synack_retries(cx.tunables),
            State::SynSent | State::SynReceived => self.syn_retries(cx.tunables),
            // RFC 9293 3.8.6.1: "As long as the receiving TCP peer continues to send acknowledgments
            // in response to the probe segments, the sending TCP peer MUST allow the connection to
            // stay open (MUST-37)": `attempts` is reset by every answer.
            _ if self.flags.has(Flags::ORPHAN) => cx.tunables.orphan_retries,
            _ => self.retries(cx.tunables),
        }
    }

    /// Something arrived from the peer: it lives.
    pub(super) fn heard(&mut self, cx: &Context<'_>) {
        if self.flags.has(Flags::PERSIST) {
            // The peer answers probes; only silence counts against it (RFC 9293 3.8.6.1).
            self.attempts = 0;
        }
        if self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed() {
            self.keep_alive_probes = 0;
            self.timers.life = cx.now + self.keepalive_time(cx.tunables);
        }
    }

    /// Probes the connection when it is silent (`SO_KEEPALIVE`).
    pub fn start_keep_alive(&mut self, cx: &Context<'_>) {
        self.flags.set(Flags::KEEP_ALIVE);
        if self.may_be_probed() {
            self.timers.life = cx.now + self.keepalive_time(cx.tunables);
        }
    }

    /// Whether keep-alive, if it is on, watches this state: somebody waits for what the peer may still
    /// say, and no FIN of ours asks already. That goes for FIN-WAIT-2, too, where nothing else would find
    /// out that the peer is gone; without an owner that state has a time-out of its own.
    pub(super) fn may_be_probed(&self) -> bool {
        match self.state {
            State::Established | State::CloseWait => true,
            State::FinWait2 => !self.flags.has(Flags::ORPHAN),
            _ => false,
        }
    }

    /// FIN-WAIT-2 without an owner ends by itself; with one it is silent until the peer speaks.
    pub(super) fn start_fin_wait_2(&mut self, cx: &Context<'_>) {
        if self.flags.has(Flags::ORPHAN) {
            self.timers.life = cx.now + self.fin_timeout(cx.tunables);
        } else if self.flags.has(Flags::KEEP_ALIVE) {
            self.timers.life = cx.now + self.keepalive_time(cx.tunables);
        }
    }

    fn on_life_timeout(&mut self, cx: &mut Context<'_>) {
        match self.state {
            State::FinWait2 if self.flags.has(Flags::ORPHAN) => {
                cx.counters.abort_on_linger += 1;
                self.end(cx, CloseReason::TimedOut);
            }
            _ if self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed() => {
                self.probe_liveness(cx);
            }
            _ => {}
        }
    }

    /// RFC 9293 3.8.4: a segment that the peer must answer.
    fn probe_liveness(&mut self, cx: &mut Context<'_>) {
        if self.timers.asks_again() {
            // Retransmission or window probing is already asking.
            self.timers.life = cx.now + self.keepalive_time(cx.tunables);
            return;
        }
        let given_up = match self.user_timeout(cx.tunables) {
            Some(limit) => self.keep_alive_probes > 0 && self.silence(cx) >= limit,
            None => self.keep_alive_probes >= self.keepalive_probes(cx.tunables),
        };
        if given_up {
            cx.counters.abort_on_timeout += 1;
            self.end(cx, CloseReason::TimedOut);
            return;
        }
        self.keep_alive_probes = self.keep_alive_probes.saturating_add(1);
        self.flags.set(Flags::KEEP_ALIVE_NOW);
        cx.counters.keep_alives += 1;
        self.timers.life = cx.now + self.keepalive_interval(cx.tunables);
    }

    /// The time since the peer was last heard.
    fn silence(&self, cx: &Context<'_>) -> Duration {
        let (now, tally) = (cx.tick, &self.ledger.tally);
        let since = [tally.last_data_recv, tally.last_ack_recv].map(|at| now.millis_since(at));
        Duration::from_millis(since.into_iter().min().map_or(0, u64::from))
    }

    /// The time that the connection may be silent became another one.
    pub(super) fn restart_keep_alive(&mut self, cx: &Context<'_>) {
        let is_watched = self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed();
        if is_watched && self.keep_alive_probes == 0 {
            let left = self.keepalive_time(cx.tunables).saturating_sub(self.silence(cx));
            self.timers.life = cx.now + left;
        }
    }
}

/// What is left of a user time-out is at least this.
const LEAST_WAIT: Duration = Duration::from_millis(1);
