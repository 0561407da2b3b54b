//! Text and windows where the memory of a shard is short.

use core::ops::ControlFlow;

use whimbrel_base::cold_path;
use whimbrel_wire::WindowSize;

use crate::Context;
use crate::budget::Budget;
use crate::conn::Flags;
use crate::conn::tcb::Tcb;
use crate::recv::Text;
use crate::verdict::{Continue, Done, DropReason, Verdict};

impl Tcb {
    /// The connection begins while memory is short. Its window is what the SYN announces; where
    /// that said more, it stays (RFC 9293 3.8.6).
    pub(in crate::conn) fn begin_memory_limited(&mut self, cx: &Context) {
        if cx.pool.budget.is_full() {
            cold_path();
            self.flags.set(Flags::MEMORY_LIMITED);
        }
    }

    /// Memory is short, and our SYN-ACK announced no more than this.
    pub(in crate::conn) fn narrow(&mut self, window: WindowSize) {
        self.flags.set(Flags::MEMORY_LIMITED);
        self.receiver.set_first_window(window);
    }

    /// The application reads or writes: where memory is short no longer, there is room again.
    #[inline]
    pub(in crate::conn) fn update_memory_limit(&mut self, cx: &Context) {
        if self.is_memory_limited() && !cx.pool.budget.is_full() {
            cold_path();
            self.flags.clear(Flags::MEMORY_LIMITED);
        }
    }

    /// Text arrives `ahead` bytes beyond RCV.NXT while memory is short, in segments of `size`. Returns how
    /// much of it is taken. What is held stays, named or not: RFC 2018 8 has it that "the data receiver is
    /// permitted to discard data in its queue that has not been acknowledged to the data sender, even if the
    /// data has already been reported in a SACK option", and that "discarding of SACKed packets is
    /// discouraged". Nor does the right edge move.
    #[cold]
    pub(in crate::conn) fn process_under_pressure(
        &mut self,
        cx: &mut Context,
        text: Text,
        ahead: u32,
        size: u32,
    ) -> ControlFlow<Verdict, Text> {
        if ahead > 0 {
            // RFC 5681 3.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-
            // order segment arrives."
            self.receiver.owe_duplicate();
            return Done(Verdict::Drop(DropReason::MemoryBudget));
        }
        let most = self.share_under_pressure(cx);
        // Windows that were announced before would hold more than the budget. An application
        // that reads has room. Otherwise this text is lost, as on a path that is full, and comes again.
        let unread = self.unread();
        let held = if unread == 0 { 0 } else { self.held_under_pressure(cx) };
        let room = most.saturating_sub(held);
        if text.take <= room {
            return Continue(text);
        }
        // Of several segments those that fit: a part of one would be followed by parts. Only where nothing is
        // unread a part is taken, so that there is something to read at any time.
        let take = match room - room % size.max(1) {
            0 if unread == 0 => room,
            whole => whole,
        };
        if take == 0 {
            // Silence would look like a path that drops segments of this size (RFC 4821 7.7).
            self.receiver.owe_duplicate();
            return Done(Verdict::Drop(DropReason::MemoryBudget));
        }
        cx.counters.mem_clipped += 1;
        Continue(Text { take, ..text })
    }

    /// The part of the bytes that may be held which is taken: what text pins, and where each connection has its window
    /// and no more, the text itself.
    fn held_under_pressure(&self, cx: &Context) -> u32 {
        match self.buffers.as_deref() {
            Some(buffers) if !cx.pool.budget.is_full() => buffers.recv.pinned() as u32,
            _ => self.unread(),
        }
    }

    /// The number of bytes may be held while memory is short.
    fn share_under_pressure(&mut self, cx: &mut Context) -> u32 {
        let falls_behind = self.falls_behind(cx);
        if falls_behind {
            self.give_up_growth(cx);
        }
        let budget = &cx.pool.budget;
        if budget.is_full() {
            self.flags.set(Flags::MEMORY_LIMITED);
            return self.memory_limited_window();
        }
        if falls_behind {
            return budget.least_share().min(self.memory_limited_window()).max(Budget::LEAST);
        }
        budget.share(self.counts.bytes_received().saturating_sub(self.unread().into()))
    }

    /// True if the application leaves text unread for longer than one that is about to read it.
    pub(in crate::conn) fn falls_behind(&self, cx: &Context) -> bool {
        let buffers = self.buffers.as_deref().filter(|buffers| buffers.recv.unread() > 0);
        buffers.is_some_and(|it| cx.tick.millis_since(it.unread_since) > SLOW_MILLIS)
    }
}

/// Milliseconds for which text may be unread before its reader counts as slow: more than a scheduler
/// takes, and less than it takes a fast peer to fill a window beyond its floor.
const SLOW_MILLIS: u32 = 100;
