//! The text of a sender and the state of its transmission.

use whimbrel_recovery::cc::{CcState, Control, Window};
use whimbrel_recovery::flight::Flight;
use whimbrel_recovery::{Pacer, Recovery};

use super::SendBuffer;

/// The half of a sender that a connection has only while something waits to be acknowledged.
// In this order: a pointer to it is one to its text, which is asked for at each step.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SendQueue {
    /// The stream from SND.UNA on.
    pub text: SendBuffer,
    /// The part of it that was sent.
    pub flight: Flight,
    /// The state of loss recovery.
    pub recovery: Recovery,
    /// The state of congestion control other than its window.
    pub cc: CcState,
    /// When text may leave next.
    pub pacer: Pacer,
}

impl SendQueue {
    /// Each part for itself, and the algorithm with the window that it sets.
    #[inline]
    pub fn parts<'a>(
        &'a mut self,
        window: &'a mut Window,
    ) -> (&'a mut Flight, &'a mut Recovery, Control<'a>) {
        let control = Control { window, state: &mut self.cc };
        (&mut self.flight, &mut self.recovery, control)
    }

    /// The algorithm with the window that it sets.
    #[inline]
    pub fn control<'a>(&'a mut self, window: &'a mut Window) -> Control<'a> {
        Control { window, state: &mut self.cc }
    }

    /// Notes for samples of the delivery rate that all was sent, in segments of `mss` bytes: unless `cwnd` is full,
    /// the application limits the sender.
    #[inline(never)]
    pub fn note_all_sent(&mut self, cwnd: u32, mss: u16) {
        // draft-ietf-ccwg-bbr, CheckIfApplicationLimited: "if (NoUnsentData() && C.pending_transmissions == 0 &&
        // C.inflight < C.cwnd && C.lost_out <= C.retrans_out)"
        if self.flight.is_sampled()
            && !self.flight.has_lost()
            && self.recovery.pipe(&self.flight, u32::from(mss)) < cwnd
        {
            self.flight.note_app_limited();
        }
    }

    /// Clears everything, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        self.text.clear();
        self.end();
    }

    /// Its connection needs it no more: of what was sent nothing is left, or a FIN.
    #[inline]
    pub fn end(&mut self) {
        self.flight.clear();
        self.recovery.forget();
        self.cc.reset();
        self.pacer = Pacer::default();
    }

    /// True if nothing is missing, or may have been, and nothing is sampled.
    #[inline]
    pub const fn is_quiet(&self) -> bool {
        self.recovery.is_none() && self.flight.is_plain()
    }

    /// True if nothing is in it that must be kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && (self.is_quiet() || self.is_settled()) && !self.cc.must_stay()
    }

    /// True if of what was missing nothing must be kept.
    #[inline(never)]
    fn is_settled(&self) -> bool {
        !self.flight.has_lost() && !self.recovery.remembers()
    }
}
