//! The timers of a connection, and what happens when one runs out.
//!
//! Three deadlines serve every purpose, because those that share one exclude each other:
//!
//! | deadline | purpose | while | when it runs out |
//! |---|---|---|---|
//! | sender | `Retransmission` | something is not acknowledged | what is old is lost, and its first segment goes again |
//! | | `LossProbe` | something is not acknowledged, and nothing is missing | send new text, or the last segment again |
//! | | `Reordering` | something arrived that was sent later than what is missing | judge whether that is lost |
//! | | `Persist` | the peer's window keeps text back | send a probe |
//! | | `SynAgain` | our SYN was answered for an old connection, which our reset ends | send the SYN again |
//! | | `Forget` | all is acknowledged, and a loss may still turn out to have been none | forget what was before it |
//! | acknowledgment | `DelayedAck` | text was received and not acknowledged | send an acknowledgment |
//! | life | `KeepAlive` | the application asked for it, and nobody closed but the peer | send a probe |
//! | | `FinWait2` | FIN-WAIT-2, and the application let go | end |
//!
//! Whoever tried in vain too often or too long ends the connection; see [`Connection::gives_up`].

use core::time::Duration;

use whimbrel_base::Instant;

use super::{Connection, Flags, State};
use crate::recovery::{Path, Recovery};
use crate::send::SendTimer;
use crate::verdict::CloseReason;
use crate::{Context, Tunables};

/// Three deadlines, [`Instant::NEVER`] while they do not run.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    sender: Instant,
    ack: Instant,
    life: Instant,
}

/// What a deadline is for, when it runs out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// The peer did not answer what was sent.
    Sender(SendTimer),
    /// What was received is to be acknowledged (RFC 9293 3.8.6.3).
    DelayedAck,
    /// The peer was silent for long (RFC 9293 3.8.4).
    KeepAlive,
    /// Nobody waits for the FIN that the peer does not send.
    FinWait2,
}

impl Default for Timers {
    fn default() -> Self {
        Self { sender: Instant::NEVER, ack: Instant::NEVER, life: Instant::NEVER }
    }
}

impl Timers {
    /// The earliest of the three, [`Instant::NEVER`] if none runs.
    #[inline]
    pub fn next(&self) -> Instant {
        self.sender.min(self.ack).min(self.life)
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

    pub(super) fn stop_sender(&mut self) {
        self.sender = Instant::NEVER;
    }

    pub(super) fn stop_life(&mut self) {
        self.life = Instant::NEVER;
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::default();
    }
}

/// Whether the deadline `at` ran out; it is then stopped.
fn take_due(at: &mut Instant, now: Instant) -> bool {
    let due = *at <= now;
    if due {
        *at = Instant::NEVER;
    }
    due
}

impl Connection {
    /// When [`Connection::on_deadline`] must be called, [`Instant::NEVER`] if nothing runs.
    #[inline]
    pub fn next_deadline(&self) -> Instant {
        self.timers.next()
    }

    /// Time passed: whatever is due happens.
    pub fn on_deadline(&mut self, cx: &mut Context) {
        if take_due(&mut self.timers.ack, cx.now) {
            self.on_timer(cx, Purpose::DelayedAck);
        }
        if take_due(&mut self.timers.sender, cx.now) {
            self.on_timer(cx, Purpose::Sender(self.sender.timer()));
        }
        if take_due(&mut self.timers.life, cx.now)
            && let Some(purpose) = self.purpose_of_life()
        {
            self.on_timer(cx, purpose);
        }
        self.note_limit(cx);
        self.settle(cx);
    }

    /// The table's last column.
    fn on_timer(&mut self, cx: &mut Context, purpose: Purpose) {
        match purpose {
            Purpose::DelayedAck => {
                cx.counters.delayed_acks += 1;
                self.receiver.owe_ack();
            }
            Purpose::Sender(SendTimer::Retransmission) => {
                if self.counts_as_attempt(cx) {
                    cx.counters.timeouts += 1;
                    self.believe_too_big(cx);
                    let path = self.path(cx);
                    let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                    self.sender.on_retransmission_timeout(&path, queue);
                }
            }
            Purpose::Sender(SendTimer::Persist) => {
                if self.counts_as_attempt(cx) {
                    self.sender.on_persist_timeout();
                }
            }
            Purpose::Sender(SendTimer::SynAgain) => {
                let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                self.sender.on_syn_again(queue);
            }
            Purpose::Sender(SendTimer::Reordering) => {
                let path = self.path(cx);
                let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                self.sender.on_reordering_timeout(cx, &path, queue);
                self.rearm_retransmission(cx);
            }
            Purpose::Sender(SendTimer::LossProbe) => self.on_probe_timeout(cx),
            Purpose::Sender(SendTimer::Forget) => {
                let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                self.sender.on_forget(queue);
            }
            Purpose::KeepAlive => self.probe_liveness(cx),
            Purpose::FinWait2 => {
                cx.counters.abort_on_linger += 1;
                self.end(cx, CloseReason::TimedOut);
            }
        }
    }

    /// What the last deadline is for, in the state that the connection is in by now.
    fn purpose_of_life(&self) -> Option<Purpose> {
        match self.state {
            State::FinWait2 if self.flags.has(Flags::ORPHAN) => Some(Purpose::FinWait2),
            _ if self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed() => {
                Some(Purpose::KeepAlive)
            }
            _ => None,
        }
    }

    /// RFC 6298 5.1 to 5.3: runs while something is unacknowledged, or while a closed window
    /// keeps something from being sent.
    pub(super) fn rearm_retransmission(&mut self, cx: &Context) {
        self.rearm_acknowledged(cx);
    }

    /// The same where something new was acknowledged.
    // Always: what it compares has just been changed there.
    #[inline(always)]
    pub(super) fn rearm_acknowledged(&mut self, cx: &Context) {
        if self.sender.is_stalled(self.queue()) {
            return self.rearm_stalled(cx);
        }
        self.sender.stop_persist();
        self.time_flight(cx);
    }

    /// The same where only the peer's window keeps something from being sent.
    #[inline(never)]
    fn rearm_stalled(&mut self, cx: &Context) {
        let due = self.retransmission_due(cx);
        if self.sender.is_persisting() {
            // RFC 9293 3.8.6.1: probing goes on, at growing intervals, whatever arrives.
            self.timers.sender = self.timers.sender.min(due);
        } else {
            // RFC 9293 3.8.6.1: the first probe goes "when a zero window has existed for the
            // retransmission timeout period (SHLD-29)", not when what was acknowledged would
            // have been sent again.
            self.sender.start_persist();
            self.stats.tally.waits_since = cx.tick;
            self.timers.sender = due;
        }
    }

    /// Sets the sender's timer for what is in flight now. RFC 8985 8: the reordering timer, the probe's and
    /// the retransmission timer "are mutually exclusive".
    #[inline(always)]
    fn time_flight(&mut self, cx: &Context) {
        let (timer, due) = match self.is_quiet() {
            true if self.sender.is_idle() => (SendTimer::Retransmission, Instant::NEVER),
            true => self.flight_due(cx),
            false => self.recovery_due(cx),
        };
        self.sender.set_timer(timer);
        self.timers.sender = due;
    }

    /// What is missing, or may have been, decides.
    #[inline(never)]
    fn recovery_due(&self, cx: &Context) -> (SendTimer, Instant) {
        let recovery = self.queue().map(|queue| &queue.recovery);
        if self.sender.is_idle() {
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
    pub(super) fn retime(&mut self, cx: &Context) {
        let recovery = self.buffers.as_deref().map(|buffers| &buffers.send.recovery);
        let reordering = recovery.is_some_and(|recovery| recovery.reordering_due().is_some());
        let is_probe = matches!(self.sender.timer(), SendTimer::Reordering | SendTimer::LossProbe);
        if !self.sender.is_idle()
            && (reordering || is_probe && self.probe_due(cx, cx.now).is_none())
        {
            self.time_flight(cx);
        }
    }

    /// When the end of what is in flight is asked for, if it was sent `at` (RFC 8985 7.2).
    #[inline]
    fn probe_due(&self, cx: &Context, at: Instant) -> Option<Instant> {
        let queue = self.queue().filter(|_| !self.sender.has_syn())?;
        let may_probe = queue.recovery.may_probe(&queue.flight);
        may_probe.then(|| self.probe_wait(cx)).flatten().map(|wait| at.after_micros(wait))
    }

    /// PTO (RFC 8985 7.2), microseconds, if there is text or a FIN behind it to ask for, and SACK to tell.
    #[inline(always)]
    fn probe_wait(&self, cx: &Context) -> Option<u64> {
        let flight = &self.queue()?.flight;
        let asks = cx.tunables.loss_probe && self.flags.has(Flags::SACK);
        if !asks || flight.end() <= flight.una() {
            return None;
        }
        let Some(srtt) = self.sender.rtt().srtt_micros() else {
            // "when there is no SRTT estimate available, the PTO SHOULD be 1 second."
            return Some(FIRST_PROBE_MICROS);
        };
        // "when the FlightSize is one segment, the sender MAY inflate the PTO by TLP.max_ack_delay": as
        // much as the retransmission timer allows for that. So does every flight whose acknowledgment
        // RFC 9293 3.8.6.3 lets a receiver delay: one of less than two full segments.
        let may_be_delayed = self.sender.seq().in_flight() < 2 * u32::from(self.sender.mss());
        let allowed = if may_be_delayed { cx.tunables.min_rto.get() } else { LEAST_PROBE_MICROS };
        Some(2 * u64::from(srtt) + u64::from(allowed))
    }

    /// The end of what is in flight may be lost, unless more was sent since.
    fn on_probe_timeout(&mut self, cx: &Context) {
        let sent = self.queue().and_then(|queue| queue.flight.last_sent());
        let due = sent.and_then(|at| self.probe_due(cx, at));
        let expiry = self.queue().and_then(|queue| queue.flight.first_sent());
        let expiry = expiry.map(|at| self.sender.rtt().due(at, &cx.tunables));
        match due.map(|due| expiry.map_or(due, |expiry| due.min(expiry))) {
            // "The sender SHOULD start or restart a loss probe PTO timer after transmitting new data".
            Some(due) if due > cx.now => {
                self.sender.set_timer(SendTimer::LossProbe);
                self.timers.sender = due;
            }
            Some(_) => {
                self.sender.on_probe_timeout();
            }
            None => self.time_flight(cx),
        }
    }

    /// What recovery asks of this connection.
    fn path(&self, cx: &Context) -> Path {
        self.sender.path(cx.now, self.flags.has(Flags::SACK), self.stats.tally.min_rtt_micros())
    }

    /// Whether the sender's timer asks the peer for something.
    pub(super) fn rto_is_armed(&self) -> bool {
        self.timers.sender != Instant::NEVER && self.sender.timer() != SendTimer::Forget
    }

    /// Starts the timer if something is out and it does not run yet (RFC 6298 5.1).
    pub(super) fn arm_retransmission(&mut self, cx: &Context) {
        let is_first = self.timers.sender == Instant::NEVER
            && self.sender.attempts() == 0
            && self.is_quiet()
            && self.stats.apart.is_none()
            && !self.sender.is_persisting()
            && !self.sender.has_syn();
        if !is_first {
            return self.arm_again(cx);
        }
        // Nearly each flight of a short connection: nothing is called.
        self.stats.tally.waits_since = cx.tick;
        let wait = self.sender.rtt().rto_micros(&cx.tunables);
        let (timer, wait) = match self.probe_wait(cx) {
            Some(probe) => (SendTimer::LossProbe, wait.min(probe)),
            None => (SendTimer::Retransmission, wait),
        };
        self.sender.set_timer(timer);
        self.timers.sender = cx.now.after_micros(wait);
    }

    /// The same for a SYN or SYN-ACK.
    #[inline]
    pub(super) fn arm_for_syn(&mut self, cx: &Context) {
        if !self.rto_is_armed() {
            if self.sender.attempts() == 0 {
                self.stats.tally.waits_since = cx.tick;
            }
            self.timers.sender = self.retransmission_due(cx);
        }
    }

    #[inline(never)]
    fn arm_again(&mut self, cx: &Context) {
        if self.rto_is_armed() {
            if self.sender.timer() == SendTimer::LossProbe {
                // A short flight is given longer than one that grew since.
                let due = self.probe_due(cx, cx.now).unwrap_or(self.timers.sender);
                self.timers.sender = self.timers.sender.min(due);
            }
            return;
        }
        // What a loss probe asks for waits since before that.
        if self.sender.attempts() == 0 && self.is_quiet() {
            self.stats.tally.waits_since = cx.tick;
        }
        if self.sender.is_persisting() || self.sender.has_syn() {
            self.timers.sender = self.retransmission_due(cx);
        } else {
            self.time_flight(cx);
        }
    }

    /// Whether recovery remembers nothing.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.queue().is_none_or(|queue| queue.recovery.is_none())
    }

    /// The segment at SND.UNA went again without a time-out: its acknowledgment has as long as any.
    pub(super) fn restart_retransmission(&mut self, cx: &Context) {
        if self.sender.timer() == SendTimer::Retransmission {
            self.timers.sender = self.retransmission_due(cx);
        }
    }

    /// When what was sent last is sent again.
    #[inline]
    fn retransmission_due(&self, cx: &Context) -> Instant {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let limited = self.sender.attempts() > 0 && !cx.tunables.user_timeout.is_zero();
        if opening || limited || self.overrides().is_some() {
            return cx.now + self.retransmission_wait(cx);
        }
        self.sender.rtt().due(cx.now, &cx.tunables)
    }

    /// How long what was sent last may go unanswered: a SYN by its schedule, anything else by the
    /// path's round trips.
    #[inline(never)]
    fn retransmission_wait(&self, cx: &Context) -> Duration {
        let wait = match self.state {
            State::SynReceived if self.is_early() => {
                // As the SYN cache does: the schedule of a tunable is for SYNs alone.
                let doubled = cx.tunables.initial_rto * (1 << self.sender.attempts().min(16));
                doubled.min(cx.tunables.max_rto.into())
            }
            State::SynSent | State::SynReceived => {
                cx.tunables.syn_retry.wait(self.sender.attempts(), &cx.tunables)
            }
            _ => self.sender.rtt().rto(&cx.tunables),
        };
        match self.user_timeout(&cx.tunables) {
            // So that it is noticed when it is over, not up to a minute later.
            Some(limit)
                if self.sender.attempts() > 0
                    || self.sender.is_persisting()
                    || self.limits_first_syn(&cx.tunables) =>
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
    pub(super) fn on_challenged(&mut self, cx: &mut Context) {
        cx.counters.syn_challenged += 1;
        let challenges = &mut self.stats.tally.challenges;
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
            self.sender.plan_syn_again();
        }
    }

    /// The time since anything was acknowledged, or since something began to wait for it.
    fn waited(&self, cx: &Context) -> Duration {
        let millis = cx.tick.millis_since(self.stats.tally.waits_since);
        Duration::from_millis(u64::from(millis))
    }

    /// The sender's timer ran out, and nobody answered. Returns whether it is to try again: otherwise the
    /// connection is over.
    fn counts_as_attempt(&mut self, cx: &mut Context) -> bool {
        self.sender.count_attempt();
        let over = self.gives_up(cx) || self.is_abandoned_stall(cx);
        if over {
            cx.counters.abort_on_timeout += 1;
            self.end(cx, CloseReason::TimedOut);
        }
        !over
    }

    /// Whether RFC 9293 3.8.3's R1 was just reached: the internet layer is to look for another way.
    pub fn doubts_path(&self, tunables: &Tunables) -> bool {
        self.sender.is_due_after(tunables.doubt_after)
    }

    /// RFC 9293 3.8.3's R2: a number of attempts, or the time that the application set instead
    /// (RFC 5482 3). The first time-out never ends a connection that is there.
    fn gives_up(&self, cx: &Context) -> bool {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let asked = self.sender.attempts() > 1
            || self.sender.is_persisting()
            || self.limits_first_syn(&cx.tunables);
        match self.user_timeout(&cx.tunables) {
            Some(limit) if asked && self.waited(cx) >= limit => true,
            Some(_) if !opening => false,
            _ => self.sender.attempts() > self.attempt_limit(cx),
        }
    }

    /// Whether nobody owns the connection any more and its peer, which answers, keeps its window
    /// closed: a stranger could make us hold text for ever (RFC 9293 3.8.6.1 has it stay open, and
    /// warns of that). As Linux: after the retransmissions that such a connection is given, once
    /// their interval does not grow any more.
    fn is_abandoned_stall(&self, cx: &Context) -> bool {
        self.flags.has(Flags::ORPHAN)
            && self.sender.is_persisting()
            && self.sender.rtt().back_offs() >= cx.tunables.orphan_retries
            && self.sender.rtt().rto_micros(&cx.tunables) >= u64::from(cx.tunables.max_rto.get())
    }

    fn attempt_limit(&self, cx: &Context) -> u8 {
        match self.state {
            State::SynReceived if self.is_early() => self.synack_retries(&cx.tunables),
            State::SynSent | State::SynReceived => self.syn_retries(&cx.tunables),
            // RFC 9293 3.8.6.1: "As long as the receiving TCP peer continues to send acknowledgments
            // in response to the probe segments, the sending TCP peer MUST allow the connection to
            // stay open (MUST-37)": `attempts` is reset by every answer.
            _ if self.flags.has(Flags::ORPHAN) => cx.tunables.orphan_retries,
            _ => self.retries(&cx.tunables),
        }
    }

    /// Something arrived from the peer: it lives.
    pub(super) fn heard(&mut self, cx: &Context) {
        self.sender.on_heard();
        if self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed() {
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
    pub(super) fn may_be_probed(&self) -> bool {
        match self.state {
            State::Established | State::CloseWait => true,
            State::FinWait2 => !self.flags.has(Flags::ORPHAN),
            _ => false,
        }
    }

    /// FIN-WAIT-2 without an owner ends by itself; with one it is silent until the peer speaks.
    pub(super) fn start_fin_wait_2(&mut self, cx: &Context) {
        if self.flags.has(Flags::ORPHAN) {
            self.timers.life = cx.now + self.fin_timeout(&cx.tunables);
        } else if self.flags.has(Flags::KEEP_ALIVE) {
            self.timers.life = cx.now + self.keepalive_time(&cx.tunables);
        }
    }

    /// RFC 9293 3.8.4: a segment that the peer must answer.
    fn probe_liveness(&mut self, cx: &mut Context) {
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
    pub(super) fn restart_keep_alive(&mut self, cx: &Context) {
        let is_watched = self.flags.has(Flags::KEEP_ALIVE) && self.may_be_probed();
        if is_watched && self.keep_alive_probes == 0 {
            let left = self.keepalive_time(&cx.tunables).saturating_sub(self.silence(cx));
            self.timers.life = cx.now + left;
        }
    }
}

/// RFC 8985 7.2: without an estimate of the round trip.
const FIRST_PROBE_MICROS: u64 = 1_000_000;
/// What a probe waits beyond two round trips, for timers and threads that are late: as Linux.
const LEAST_PROBE_MICROS: u32 = 2_000;
/// What is left of a user time-out is at least this.
const LEAST_WAIT: Duration = Duration::from_millis(1);
