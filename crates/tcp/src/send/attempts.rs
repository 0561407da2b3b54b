//! The sender's timer: what it is for, and how often it ran out in vain.

/// The purpose of the sender's timer, and the attempts that it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    /// The action of the timer when it runs out.
    pub(super) timer: SendTimer,
    /// The number of times that it ran out in a row: retransmissions without progress, or unanswered probes of a closed
    /// window.
    pub(super) count: u8,
    /// True if the last acknowledgment came again since it came, or since the timer ran out: what was sent reaches the
    /// peer.
    is_answered: bool,
}

impl Attempts {
    /// None, of a timer that waits for acknowledgments.
    pub(super) const fn new() -> Self {
        Self { timer: SendTimer::Retransmission, count: 0, is_answered: false }
    }

    /// The action of the timer when it runs out.
    #[inline]
    pub(super) const fn timer(&self) -> SendTimer {
        self.timer
    }

    /// The number of times that it ran out in a row.
    #[inline]
    pub(super) const fn count(&self) -> u8 {
        self.count
    }

    /// True if a closed window is being probed.
    #[inline]
    pub(super) fn is_persisting(&self) -> bool {
        matches!(self.timer, SendTimer::Persist)
    }

    /// Counts one more that had no answer.
    pub(super) const fn count_one(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Something new is acknowledged.
    #[inline(always)]
    pub(super) const fn on_progress(&mut self) {
        (self.count, self.is_answered) = (0, false);
    }

    /// The last acknowledgment came again, while something is in flight.
    pub(super) const fn on_answer(&mut self) {
        self.is_answered = true;
    }

    /// True if the last acknowledgment came again since it came, or since the timer ran out.
    pub(super) const fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// All that was sent is about to be sent again.
    pub(super) const fn await_answer(&mut self) {
        self.is_answered = false;
    }

    /// The peer was heard. While its window is closed, only silence counts against it
    /// (RFC 9293 3.8.6.1).
    #[inline]
    pub(super) fn on_heard(&mut self) {
        if self.is_persisting() {
            self.count = 0;
        }
    }

    /// From now on the timer is for this.
    #[inline]
    pub(super) const fn set_timer(&mut self, timer: SendTimer) {
        self.timer = timer;
    }
}

/// The action of the sender's timer when it runs out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendTimer {
    /// All that was sent counts as lost, and its first segment goes again (RFC 6298 5.4).
    Retransmission,
    /// The peer's closed window is probed (RFC 9293 3.8.6.1).
    Persist,
    /// The SYN goes again, and nothing counts as lost: our reset went ahead of it.
    SynAgain,
    /// Segments sent before one that arrived are judged again (RFC 8985 6.2).
    Reordering,
    /// The end of what was sent is asked for (RFC 8985 7).
    LossProbe,
    /// All is acknowledged, and what was remembered of it is out of date.
    Forget,
}
