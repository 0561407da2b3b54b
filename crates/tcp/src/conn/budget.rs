//! The account of a connection's memory.

use crate::Context;
use crate::budget::Budget;
use crate::conn::Buffers;

impl Buffers {
    /// True if the account may say something else than what is held, and it matters. The memory
    /// that a small text pins is ignored, unless the text is beyond a gap.
    #[inline]
    pub(super) fn may_differ(&self) -> bool {
        (self.send.text.len() + self.recv.unread()) | self.accounted > Budget::ALLOWANCE
    }

    /// Brings the account in line with what is held.
    #[inline(never)]
    pub(super) fn account(&mut self, cx: &mut Context) {
        let sent = self.send.text.len() as usize + self.send.flight.memory();
        let pinned = sent + self.recv.pinned();
        let beyond = pinned.saturating_sub(Budget::ALLOWANCE as usize) as u32;
        let before = core::mem::replace(&mut self.accounted, beyond);
        cx.pool.budget.move_text(before, beyond, &mut cx.env.counters);
    }

    /// Takes all of it out of the account, and returns what the account had.
    #[inline]
    pub(crate) fn take_accounted(&mut self) -> u32 {
        let accounted = self.accounted;
        if accounted > 0 {
            self.accounted = 0;
        }
        accounted
    }
}
