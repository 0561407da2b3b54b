//! The timers of connections: a queue of those that most never live to see, and a wheel.
//!
//! A short connection changes its mind about its deadline four or five times, from one
//! retransmission time-out to the next and to delayed acknowledgments, and is over before any of them
//! comes. So a deadline that lies far enough ahead does not enter the wheel at once: its connection is
//! *looked at* a constant time later, and entered then if it still waits for something. Constant
//! time-outs are a queue: 16 bytes and a few instructions to enter, nothing to leave, and while it
//! stands there each deadline that lies behind that look is followed for nothing.
//!
//! Either way `ConnectionSlot::timer.at` says when the connection is attended to, never later than its deadline.

use alloc::collections::VecDeque;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::tcp_host::connections::{ConnectionSlot, Connections};
use crate::wheel::Wheel;

/// The timers of a shard's connections, at most one each.
#[derive(Debug)]
pub(crate) struct Timers {
    wheel: Wheel,
    /// Connections to be looked at, the first due in front. A place whose timer was disarmed or went
    /// into the wheel stays until its time.
    checks: VecDeque<DeferredCheck>,
    /// Number of them that are armed still.
    awaiting_check: usize,
}

/// When a connection is looked at.
#[derive(Clone, Copy, Debug)]
struct DeferredCheck {
    at: Instant,
    index: u32,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { wheel: Wheel::new(Instant::ZERO), checks: VecDeque::new(), awaiting_check: 0 }
    }

    /// Returns the number armed.
    pub(crate) fn len(&self) -> usize {
        self.wheel.len() + self.awaiting_check
    }

    /// Has a connection looked at a constant time later, if it is not armed and its `deadline` lies beyond
    /// that. Returns whether that is so: otherwise its timer is to be armed.
    #[inline]
    pub(crate) fn defer(
        &mut self,
        slot: &mut ConnectionSlot,
        index: u32,
        deadline: Instant,
        now: Instant,
    ) -> bool {
        let check_at = now + FIRST_CHECK;
        let defers =
            slot.timer.at == Instant::NEVER && (check_at..Instant::NEVER).contains(&deadline);
        if defers {
            slot.timer.at = check_at;
            self.checks.push_back(DeferredCheck { at: check_at, index });
            self.awaiting_check += 1;
        }
        defers
    }

    /// Arms the timer of a connection for its `deadline`, which is earlier than what it was armed for,
    /// if it was.
    #[inline]
    pub(crate) fn arm(
        &mut self,
        connections: &mut Connections,
        index: u32,
        deadline: Instant,
        now: Instant,
    ) {
        let Some(slot) = connections.0.get_mut(index) else { return };
        if self.defer(slot, index, deadline, now) {
            return;
        }
        self.awaiting_check -= usize::from(slot.awaits_check());
        self.wheel.arm(connections, index, deadline);
    }

    /// Disarms the timer of a connection, if it is armed.
    #[inline]
    pub(crate) fn disarm(&mut self, connections: &mut Connections, index: u32) {
        let Some(slot) = connections.0.get_mut(index) else { return };
        if !slot.timer.is_armed() {
            return self.disarm_check(slot);
        }
        self.wheel.disarm(connections, index);
    }

    /// Disarms a timer that is not on the wheel.
    #[inline]
    pub(crate) fn disarm_check(&mut self, slot: &mut ConnectionSlot) {
        self.awaiting_check -= usize::from(slot.timer.at != Instant::NEVER);
        slot.timer.at = Instant::NEVER;
    }

    /// Disarms and returns a connection whose timer is due at `now`; to be called until `None`. Each
    /// that was looked at, cascaded or fired takes one from `budget`.
    pub(crate) fn pop_due(
        &mut self,
        connections: &mut Connections,
        now: Instant,
        budget: &mut usize,
    ) -> Option<u32> {
        while *budget > 0
            && let Some(check) = self.checks.pop_front_if(|check| check.at <= now)
        {
            *budget -= 1;
            // Its timer may have been disarmed since, or the place may be another connection's.
            let slot = connections.0.get_mut(check.index);
            let Some(slot) = slot.filter(|slot| slot.timer.at == check.at && slot.awaits_check())
            else {
                continue;
            };
            self.awaiting_check -= 1;
            // Only now is the deadline asked for: all that it was meanwhile cost nothing.
            let deadline = slot.connection.next_deadline();
            if deadline <= now {
                slot.timer.at = Instant::NEVER;
                return Some(check.index);
            }
            slot.timer.at = deadline;
            if deadline != Instant::NEVER {
                self.wheel.arm(connections, check.index, deadline);
            }
        }
        self.wheel.pop_due(connections, now, budget)
    }

    /// When [`Timers::pop_due`] must be called at the latest; it may find nothing due then.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let check = self.checks.front().filter(|_| self.awaiting_check > 0).map(|check| check.at);
        Instant::earliest([check, self.wheel.next_deadline()])
    }
}

impl ConnectionSlot {
    /// True if its timer stands in the queue and not in the wheel.
    fn awaits_check(&self) -> bool {
        self.timer.at != Instant::NEVER && !self.timer.is_armed()
    }
}

/// Less than an acknowledgment is delayed, which is the shortest of what is armed in each connection:
/// what comes behind it need not be armed earlier. Longer than short connections last on a near path;
/// on a far one the look costs as much as it saves.
const FIRST_CHECK: Duration = Duration::from_millis(32);
