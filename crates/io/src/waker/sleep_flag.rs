//! The election of one thread to wake a worker: none while it is awake, one of many while it
//! sleeps.
//!
//! # Why no wake-up is lost
//!
//! There are two threads and two variables: the queue, and the flag `sleeping`. Each thread writes
//! one and then reads the other (Dekker's pattern):
//!
//! ```text
//! task                          worker
//! queue.push(command)           sleeping = true          (announce)
//! fence(SeqCst)                 fence(SeqCst)
//! if sleeping: write eventfd    if queue is empty: ppoll
//! ```
//!
//! With release and acquire both reads could come before both writes: neither thread would see the
//! other's write, and the worker would sleep on a full queue. The two SeqCst fences have one order,
//! and the second thread sees what the first wrote before its fence. So either the task sees
//! `sleeping` and writes the descriptor, or the worker sees the command and does not sleep.
//!
//! `tests/interleavings.rs` compiles this file against loom's atomics and tries all interleavings.

use super::atomic::{AtomicBool, Ordering, fence};

/// True while the worker sleeps.
#[derive(Debug)]
pub(super) struct SleepFlag {
    sleeping: AtomicBool,
}

impl SleepFlag {
    /// Creates the flag of a worker that is awake.
    pub(super) fn new() -> Self {
        Self { sleeping: AtomicBool::new(false) }
    }

    /// Returns whether the caller must wake the worker, after it has queued something.
    pub(super) fn claim_wake_up(&self) -> bool {
        fence(Ordering::SeqCst);
        // The load keeps the line shared while the worker runs; the exchange elects one.
        let (won, lost) = (Ordering::AcqRel, Ordering::Relaxed);
        self.sleeping.load(lost) && self.sleeping.compare_exchange(true, false, won, lost).is_ok()
    }

    /// Announces a sleep. The worker must check its queue once more after this.
    pub(super) fn announce(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Records that the worker is awake. A caller elected just before this still wakes it.
    pub(super) fn retract(&self) {
        // A store would suffice, because nothing comes between an exchange and what it read. loom
        // does not model that, and needs the swap to see that this comes after. The cost is nothing
        // compared with a sleep.
        self.sleeping.swap(false, Ordering::AcqRel);
    }
}
