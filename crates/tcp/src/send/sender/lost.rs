//! Silence and loss: what the sender does when its timer runs out, and when the path carries less than
//! was thought.

use whimbrel_recovery::Path;

use super::{Flags, SendQueue, SendTimer, Sender};
use crate::Env;

impl Sender {
    /// The peer did not answer what was sent or probed until the timer ran out.
    pub const fn count_attempt(&mut self) {
        self.attempts.count_one();
    }

    /// The peer was heard. While its window is closed, only silence counts against it
    /// (RFC 9293 3.8.6.1).
    #[inline]
    pub fn on_heard(&mut self) {
        self.attempts.on_heard();
    }

    /// The last acknowledgment came again, while something is in flight.
    #[inline]
    pub const fn on_answer(&mut self) {
        self.attempts.on_answer();
    }

    /// True if the last acknowledgment came again since it came, or since the retransmission timer ran out: the peer got
    /// what was sent, and did not take it.
    pub const fn is_answered(&self) -> bool {
        self.attempts.is_answered()
    }

    /// The timer ran out, and what was sent is taken for lost ([`SendTimer::Retransmission`]).
    pub fn on_retransmission_timeout(&mut self, path: &Path, queue: Option<&mut SendQueue>) {
        self.rtt.back_off();
        self.attempts.await_answer();
        match queue {
            Some(queue) if queue.flight.end() > queue.flight.una() && !self.has_syn() => {
                let (flight, recovery, mut control) = queue.parts(&mut self.window);
                recovery.on_timeout(flight, &mut control, path, self.attempts.count);
                self.flags.note_reduced();
            }
            queue => self.go_back(queue),
        }
        if self.attempts.count > 1 && self.seq.wnd.get() == 0 && !self.flags.has(Flags::SYN) {
            // RFC 9293 3.8.6: "If the window shrinks to zero, the TCP implementation MUST probe it
            // in the standard way (described below) (MUST-35)." What was in flight counts as
            // unsent until the window opens; of it the probe is made. The first time it is sent
            // again all the same (RFC 7323 2.4).
            self.attempts.timer = SendTimer::Persist;
            self.flags.set(Flags::PROBE);
            return;
        }
        // RFC 6298 5.4: "Retransmit the earliest segment that has not been acknowledged by the
        // TCP receiver". What follows it is sent again as the windows admit.
        self.flags.set(Flags::RETRANSMIT);
    }

    /// The timer ran out while the window is closed ([`SendTimer::Persist`]): it is to be probed.
    pub fn on_persist_timeout(&mut self) {
        self.rtt.back_off();
        self.flags.set(Flags::PROBE);
    }

    /// The timer ran out after our reset went ([`SendTimer::SynAgain`]): the SYN follows it.
    pub fn on_syn_again(&mut self, queue: Option<&mut SendQueue>) {
        self.attempts.timer = SendTimer::Retransmission;
        self.go_back(queue);
    }

    /// The timer ran out, and what is missing may be lost by now ([`SendTimer::Reordering`]).
    pub fn on_reordering_timeout(
        &mut self,
        cx: &mut Env,
        path: &Path,
        queue: Option<&mut SendQueue>,
    ) {
        let Some(queue) = queue else { return };
        let (flight, recovery, mut control) = queue.parts(&mut self.window);
        let events = recovery.on_reordering_timeout(flight, &mut control, path);
        self.flags.note_recovery(&events);
        cx.counters.count_recovery(events);
    }

    /// The timer ran out, and the end of what was sent is to be asked for ([`SendTimer::LossProbe`]).
    pub const fn on_probe_timeout(&mut self) {
        self.flags.set(Flags::LOSS_PROBE);
    }

    /// True if a loss probe may ask for our FIN, alone in flight: no time-out did.
    #[inline]
    pub const fn may_probe_fin(&self) -> bool {
        self.flags.has(Flags::FIN_SENT) && self.attempts.count == 0
    }

    /// All is acknowledged, and nothing of it will be taken back ([`SendTimer::Forget`]).
    pub fn on_forget(&mut self, queue: Option<&mut SendQueue>) {
        if let Some(queue) = queue {
            queue.recovery.forget();
        }
    }

    /// From now on the timer is for this. A loss probe that was due is not, as something was heard.
    pub const fn set_timer(&mut self, timer: SendTimer) {
        self.attempts.timer = timer;
        self.flags.clear(Flags::LOSS_PROBE);
    }

    /// Our SYN is acknowledged, and the peer's window is not what keeps anything from being sent.
    pub const fn stop_persist(&mut self) {
        self.attempts.timer = SendTimer::Retransmission;
        self.flags.clear(Flags::PROBE);
    }

    /// Nothing is in flight, or kept back: nothing is waited for.
    pub const fn stop_timer(&mut self) {
        self.attempts.timer = SendTimer::Retransmission;
        self.flags.clear(Flags::PROBES);
    }

    /// The SYN is to go again when the timer runs out, without a loss.
    pub const fn plan_syn_again(&mut self) {
        self.attempts.set_timer(SendTimer::SynAgain);
    }

    /// The segment at SND.UNA is to be sent again.
    pub const fn retransmit(&mut self) {
        self.flags.set(Flags::RETRANSMIT);
    }

    /// Everything in flight counts as unsent, and goes again from SND.UNA on. The small segment that
    /// Nagle's algorithm would wait for is part of it.
    pub fn go_back(&mut self, queue: Option<&mut SendQueue>) {
        self.seq.nxt = self.seq.una;
        if let Some(queue) = queue {
            queue.small_end = queue.flight.una();
            queue.flight.forget_all();
            queue.recovery.forget();
        }
    }

    /// Text that our SYN brought did not arrive. It goes again, and says nothing of congestion.
    pub fn on_syn_text_refused(&mut self, queue: Option<&mut SendQueue>) {
        self.go_back(queue);
        self.rtt.stop_timing();
    }

    /// From now on segments have at most `mss` bytes of text, which is another size than before.
    ///
    /// The window has room for one of them at least, as after a loss (RFC 5681 3.1: "LW, which equals 1 full-sized
    /// segment"): with less, none could leave.
    pub fn set_mss(&mut self, mss: u16) {
        self.mss = mss;
        self.window.cwnd = self.window.cwnd.max(mss.into());
        self.acked_size = self.acked_size.min(mss);
    }

    /// The path carried at most `mss` bytes of text in a segment. What exceeds that never arrived.
    /// Returns whether there may be such: segments that together fit were not too big.
    pub fn on_path_mtu(&mut self, mss: u16, queue: Option<&mut SendQueue>) -> bool {
        let is_too_big = self.unacknowledged() > u32::from(mss);
        if is_too_big
            && !self.flags.has(Flags::SYN)
            && let Some(queue) = queue
        {
            // The loss says nothing of congestion: cwnd stays.
            queue.recovery.on_path_mtu(&mut queue.flight, mss);
            if queue.flight.has_lost() {
                self.flags.set(Flags::RETRANSMIT);
            }
        }
        is_too_big
    }

    /// True if what is sent next is sent after so many attempts, be it our SYN or text.
    pub const fn is_due_after(&self, attempts: u8) -> bool {
        (self.flags.has(Flags::RETRANSMIT) || self.flags.has(Flags::SYN))
            && self.attempts.count == attempts
    }

    /// True if the peer's window may keep what is unsent from being sent, by a few comparisons.
    #[inline(always)]
    pub fn may_be_stalled(&self) -> bool {
        // What is in flight will be acknowledged. A full segment that is admitted, or what there is of it,
        // waits for nothing but a cork.
        self.is_persisting()
            || self.is_idle()
                && (self.seq.wnd.get() < u32::from(self.mss) || self.flags.has(Flags::CORK))
    }

    /// True if it does so, of a sender that [may be stalled](Sender::may_be_stalled).
    #[inline(never)]
    pub fn waits_for_window(&self, queue: Option<&SendQueue>) -> bool {
        // What is lost waits for the window, too, if it was sent again in vain.
        self.has_lost(queue) && self.is_persisting() && self.seq.wnd.get() == 0
            || self.has_unsent(queue) && !self.admits_text(queue, u32::from(self.mss))
    }
}
