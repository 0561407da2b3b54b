//! The next segment to send, judged without changing anything.

use whimbrel_base::{Instant, cold_path};

use crate::conn::State;
use crate::conn::tcb::Tcb;
use crate::send::{PacedText, SendRange};

impl Tcb {
    /// True if there is something to send now.
    pub(in crate::conn) fn wants_transmit(&self, max_text: u32) -> bool {
        self.syn_is_next() || self.judge_transmit(max_text).is_some()
    }

    /// True if what is to be sent next is a SYN, or SYN-ACK in a simultaneous open.
    #[inline]
    pub(in crate::conn) fn syn_is_next(&self) -> bool {
        self.sender.syn_is_due() && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// True if there may be something to send: whatever [`Connection::wants_transmit`] finds is
    /// found here by a few comparisons, for asking after each call. What windows or Nagle's
    /// algorithm hold back is found as well; [`Connection::poll_transmit`] judges that, once.
    #[inline]
    pub(in crate::conn) fn may_transmit(&self) -> bool {
        !matches!(self.state, State::Closed | State::TimeWait)
            && (self.receiver.ack_pending() || self.may_send())
    }

    /// True if there may be something to send other than acknowledgments that are owed.
    // Out of line: after each call it is asked, and mostly the answer is no.
    #[inline(never)]
    fn may_send(&self) -> bool {
        self.sender.may_be_due(self.queue(), PacedText::Waits) || self.owes_window_update()
    }

    /// Time at which text may leave again that waits for it.
    pub(in crate::conn) fn paced_until(&self) -> Instant {
        self.queue().map_or(Instant::ZERO, |queue| queue.pacer.next())
    }

    /// Ends the wait of text for its time, if that has come.
    pub(in crate::conn) fn end_pacing_wait(&mut self, now: Instant) {
        if self.paced_until() <= now {
            self.sender.end_pacing_wait();
        }
    }

    /// True if there may be more to send after a segment that has announced the window: there is no
    /// news of that; and if text waits for its time.
    #[inline]
    pub(in crate::conn) fn may_transmit_more(&self) -> bool {
        self.receiver.ack_pending() || self.sender.may_be_due(self.queue(), PacedText::Counts)
    }

    /// Returns the next segment to send, if that is no SYN.
    pub(in crate::conn) fn judge_transmit(&self, max_text: u32) -> Option<NextSegment> {
        if matches!(self.state, State::Closed | State::TimeWait) {
            cold_path();
            return None;
        }
        if self.sender.has_syn() {
            cold_path();
            if self.state == State::SynSent {
                return None;
            }
            let early = self.is_early();
            if let Some(range) = self.sender.judge_behind_syn(self.queue(), max_text, early) {
                return Some(NextSegment::Stream(range));
            }
        } else if let Some(range) = self.sender.judge_due(self.queue(), max_text) {
            return Some(NextSegment::Stream(range));
        }
        if self.sender.keep_alive_is_due() {
            cold_path();
            return Some(NextSegment::KeepAlive);
        }
        (self.receiver.ack_pending() || self.owes_window_update()).then_some(NextSegment::Ack)
    }

    /// True if reading freed so much that the peer should hear of it without waiting for an
    /// acknowledgment to carry the news.
    #[inline]
    fn owes_window_update(&self) -> bool {
        self.receiver.window_update_possible() && self.judge_update()
    }

    fn judge_update(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
            && self.receiver.window_update_pending(&self.window_bounds())
    }
}

/// The segment that the connection would send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::conn) enum NextSegment {
    /// Text, FIN, or a probe of a closed window.
    Stream(SendRange),
    /// An old number, so that the peer must answer.
    KeepAlive,
    /// An acknowledgment, and the window with it, without text.
    Ack,
}
