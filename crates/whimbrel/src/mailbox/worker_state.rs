//! Whether a shard's worker still serves, so that nothing is asked of one that has ended.
//!
//! # Why no request is lost
//!
//! Who asks and the worker that ends write one place each and then read the other's:
//!
//! ```text
//! task                          worker
//!   queue.push(request)           stage = ENDED            (end)
//!   fence(SeqCst)                 fence(SeqCst)
//!   if ENDED: refuse all          refuse all that is in the queue
//! ```
//!
//! Whichever fence is second sees what the other side wrote: either the task sees that the worker has
//! ended, or the worker's last look into the queue sees the request. Both may look; what is in the
//! queue is taken out by one of them.
//!
//! `tests/interleavings.rs` compiles this file against loom's atomics and tries all interleavings.

use super::atomic::{AtomicU8, Ordering, fence};

/// How far a worker is.
#[derive(Debug)]
pub(super) struct WorkerState(AtomicU8);

impl WorkerState {
    /// The state of a worker that serves.
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(RUNNING))
    }

    /// Whether it has ended, as far as is known without asking.
    pub(super) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDED
    }

    /// Something was put where the worker looks. Returns whether it may not look any more: then the
    /// caller is to take out and refuse what is there.
    pub(super) fn has_ended_since(&self) -> bool {
        fence(Ordering::SeqCst);
        self.has_ended()
    }

    /// Nobody holds the stack itself any more.
    pub(super) fn close(&self) {
        // After the end nothing is left to close.
        let (won, lost) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.0.compare_exchange(RUNNING, CLOSING, won, lost);
    }

    /// Whether nobody holds the stack any more, and the worker has not ended yet.
    pub(super) fn is_closing(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CLOSING
    }

    /// The worker looks no more, but once after this, to refuse what is there.
    pub(super) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

const RUNNING: u8 = 0;
const CLOSING: u8 = 1;
const ENDED: u8 = 2;
