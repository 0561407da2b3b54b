//! The timers of a connection, and what happens when one runs out.
//!
//! Three deadlines serve every purpose, because those that share one exclude each other:
//!
//! | deadline | purpose | while | when it runs out |
//! |---|---|---|---|
//! | sender | `Retransmission` | something is not acknowledged | what is old is lost, and its first segment goes again |
//! | | `LossProbe` | something is not acknowledged, and nothing is missing | send new text, or the last segment again, be it FIN alone |
//! | | `Reordering` | something arrived that was sent later than what is missing | judge whether that is lost |
//! | | `Persist` | the peer's window keeps text back | send a probe |
//! | | `SynAgain` | our SYN was answered for an old connection, which our reset ends | send the SYN again |
//! | | `Forget` | all is acknowledged, and a loss may still turn out to have been none | forget what was before it |
//! | acknowledgment | `DelayedAck` | text was received and not acknowledged | send an acknowledgment |
//! | life | `KeepAlive` | the application asked for it, and none but the peer closed | send a probe |
//! | | `FinWait2` | FIN-WAIT-2, and the application closed | end |
//!
//! A connection ends that tried in vain too often or too long.

use core::time::Duration;

use whimbrel_base::Instant;

use crate::Context;
use crate::conn::{Connection, Flags, PathFinding, State};
use crate::send::SendTimer;
use crate::verdict::CloseReason;

/// Three deadlines, [`Instant::NEVER`] while they do not run.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    pub(super) sender: Instant,
    pub(super) ack: Instant,
    pub(super) life: Instant,
}

/// The news that deadlines bring which ran out, for those who know of more than one connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimerFinding {
    /// True if nothing answered our SYN, which goes again.
    pub syn_repeated: bool,
    /// The MTU of the path by a report that is believed from now on, bytes of an IP packet.
    pub path_lowered: Option<u16>,
    /// A finding of probes about the path (RFC 4821).
    pub path_found: Option<PathFinding>,
    /// True if RFC 9293 3.8.3's R1 was just reached: the internet layer is to look for another way.
    pub path_doubted: bool,
}

/// The purpose of a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerPurpose {
    /// The peer did not answer what was sent.
    Sender(SendTimer),
    /// Acknowledge received text (RFC 9293 3.8.6.3).
    DelayedAck,
    /// The peer was silent for long (RFC 9293 3.8.4).
    KeepAlive,
    /// Give up waiting for the FIN that the peer does not send, because the application closed.
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

    /// True if an acknowledgment is being delayed.
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

/// True if the deadline `at` ran out; it is then stopped.
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
        self.transfer.timers.next()
    }

    /// The deadlines that run, the sender's first, with their purposes.
    pub fn deadlines(&self) -> [Option<(TimerPurpose, Instant)>; 3] {
        let timers = &self.transfer.timers;
        let running = |at: Instant, purpose| (at != Instant::NEVER).then_some((purpose, at));
        [
            running(timers.sender, TimerPurpose::Sender(self.transfer.tcb.sender.timer())),
            running(timers.ack, TimerPurpose::DelayedAck),
            self.purpose_of_life().and_then(|purpose| running(timers.life, purpose)),
        ]
    }

    /// The number of times in a row that the deadline of this purpose ran out without an answer.
    pub fn unanswered(&self, purpose: TimerPurpose) -> u8 {
        match purpose {
            TimerPurpose::KeepAlive => self.transfer.tcb.keep_alive_probes,
            TimerPurpose::Sender(_) => self.transfer.tcb.sender.attempts(),
            TimerPurpose::DelayedAck | TimerPurpose::FinWait2 => 0,
        }
    }

    /// Time passed: whatever is due happens. Returns what that tells of path and peer.
    pub fn on_deadline(&mut self, cx: &mut Context) -> TimerFinding {
        let mut finding = TimerFinding::default();
        // Each is stopped before what follows from it, which may arm it again.
        if take_due(&mut self.transfer.timers.ack, cx.now) {
            self.on_timer(cx, TimerPurpose::DelayedAck, &mut finding);
        }
        if take_due(&mut self.transfer.timers.sender, cx.now) {
            let timer = self.transfer.tcb.sender.timer();
            self.on_timer(cx, TimerPurpose::Sender(timer), &mut finding);
        }
        if take_due(&mut self.transfer.timers.life, cx.now)
            && let Some(purpose) = self.purpose_of_life()
        {
            self.on_timer(cx, purpose, &mut finding);
        }
        self.transfer.tcb.note_limit(cx);
        self.transfer.tcb.account_buffers(cx);
        if self.transfer.tcb.counts.has_record() {
            finding.path_found = self.transfer.take_path_finding();
        }
        finding.path_doubted = self.transfer.tcb.sender.is_due_after(cx.tunables.doubt_after);
        finding
    }

    /// The table's last column.
    fn on_timer(&mut self, cx: &mut Context, purpose: TimerPurpose, finding: &mut TimerFinding) {
        match purpose {
            TimerPurpose::DelayedAck => {
                cx.counters.delayed_acks += 1;
                self.transfer.tcb.receiver.owe_ack();
            }
            TimerPurpose::Sender(SendTimer::Retransmission) => {
                if self.counts_as_attempt(cx) {
                    cx.counters.timeouts += 1;
                    self.transfer.count_timeout(cx);
                    finding.syn_repeated = self.transfer.tcb.state == State::SynSent;
                    finding.path_lowered = self.apply_pmtu_report(cx);
                    if finding.path_lowered.is_none() {
                        self.transfer.suspect_path_mtu(cx);
                    }
                    let path = self.transfer.path(cx);
                    let queue =
                        self.transfer.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                    self.transfer.tcb.sender.on_retransmission_timeout(&path, queue);
                }
            }
            TimerPurpose::Sender(SendTimer::Persist) => {
                if self.counts_as_attempt(cx) {
                    self.transfer.tcb.sender.on_persist_timeout();
                }
            }
            TimerPurpose::Sender(SendTimer::SynAgain) => {
                let queue =
                    self.transfer.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                self.transfer.tcb.sender.on_syn_again(queue);
            }
            TimerPurpose::Sender(SendTimer::Reordering) => {
                let path = self.transfer.path(cx);
                let queue =
                    self.transfer.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                self.transfer.tcb.sender.on_reordering_timeout(cx, &path, queue);
                self.transfer.follow_mtu_search(cx);
                // RFC 8985 8: while this timer ran, the retransmission timer did not.
                self.transfer.rearm_retransmission(cx);
            }
            TimerPurpose::Sender(SendTimer::LossProbe) => self.transfer.on_probe_timeout(cx),
            TimerPurpose::Sender(SendTimer::Forget) => {
                let queue =
                    self.transfer.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
                self.transfer.tcb.sender.on_forget(queue);
            }
            TimerPurpose::KeepAlive => {
                if self.transfer.probe_liveness(cx) {
                    self.time_out(cx);
                }
            }
            TimerPurpose::FinWait2 => {
                cx.counters.abort_on_linger += 1;
                self.end(cx, CloseReason::TimedOut);
            }
        }
    }

    /// The purpose of the last deadline, in the state that the connection is in by now.
    fn purpose_of_life(&self) -> Option<TimerPurpose> {
        match self.transfer.tcb.state {
            State::FinWait2 if self.transfer.tcb.flags.has(Flags::ORPHAN) => {
                Some(TimerPurpose::FinWait2)
            }
            _ if self.transfer.tcb.flags.has(Flags::KEEP_ALIVE)
                && self.transfer.tcb.may_be_probed() =>
            {
                Some(TimerPurpose::KeepAlive)
            }
            _ => None,
        }
    }

    /// The sender's timer ran out, and the peer did not answer. Returns whether it is to try again: otherwise the
    /// connection is over.
    fn counts_as_attempt(&mut self, cx: &mut Context) -> bool {
        self.transfer.tcb.sender.count_attempt();
        let over = self.transfer.gives_up(cx) || self.transfer.is_abandoned_stall(cx);
        if over {
            self.time_out(cx);
        }
        !over
    }

    /// The peer is gone for all that is known.
    fn time_out(&mut self, cx: &mut Context) {
        cx.counters.abort_on_timeout += 1;
        self.end(cx, CloseReason::TimedOut);
    }
}
