//! Who is to wake a worker that sleeps: nobody while it is awake, and one of many once it is not.
//!
//! # Why no wake-up is lost
//!
//! Two threads, two places: the queue, and the flag `sleeping`. Each side writes one and then
//! reads the other (Dekker's pattern):
//!
//! ```text
//! task                          worker
//!   queue.push(command)           sleeping = true          (announce)
//!   fence(SeqCst)                 fence(SeqCst)
//!   if sleeping: write eventfd    if queue is empty: ppoll
//! ```
//!
//! Release and acquire would let both reads come before both writes, each side seeing nothing and
//! the worker sleeping on a full queue. The two SeqCst fences have one order: whichever is second
//! sees what the other side wrote before its own. So either the task sees `sleeping` and writes
//! the descriptor, or the worker sees the command and does not sleep.
//!
//! `tests/interleavings.rs` compiles this file against loom's atomics and tries all interleavings.

use super::atomic::{AtomicBool, Ordering, fence};

/// Whether a worker sleeps.
#[derive(Debug)]
pub(super) struct SleepFlag {
    sleeping: AtomicBool,
}

impl SleepFlag {
    /// Of a worker that is awake.
    pub(super) fn new() -> Self {
        Self { sleeping: AtomicBool::new(false) }
    }

    /// Something was put where the worker looks. Returns whether the caller is to wake it.
    pub(super) fn claim_wake_up(&self) -> bool {
        fence(Ordering::SeqCst);
        // The load keeps the line shared while the worker runs; the exchange elects one.
        let (won, lost) = (Ordering::AcqRel, Ordering::Relaxed);
        self.sleeping.load(lost) && self.sleeping.compare_exchange(true, false, won, lost).is_ok()
    }

    /// The worker is about to sleep. It must look once more after this.
    pub(super) fn announce(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The worker is awake. A caller that was told to wake it just before does so all the same.
    pub(super) fn retract(&self) {
        // A store would do, since nothing comes between an exchange and what it read; loom does not
        // hold to that, and needs to be told that this comes after. It costs nothing beside a sleep.
        self.sleeping.swap(false, Ordering::AcqRel);
    }
}
