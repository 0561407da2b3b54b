//! State of a shard's worker, so that no request goes to one that has ended.
//!
//! # Why no request is lost
//!
//! The task and the ending worker each write one place and then read the other's:
//!
//! ```text
//! task                          worker
//!   queue.push(request)           stage = ENDED            (end)
//!   fence(SeqCst)                 fence(SeqCst)
//!   if ENDED: refuse all          refuse all that is in the queue
//! ```
//!
//! The second fence sees what the other side wrote. Either the task sees that the worker has ended, or
//! the worker's last look into the queue sees the request. If both look, one of them takes the request
//! out.
//!
//! `tests/interleavings.rs` compiles this file against loom's atomics and tests all interleavings.

use super::atomic::{AtomicU8, Ordering, fence};

/// State of a worker.
#[derive(Debug)]
pub(super) struct WorkerState(AtomicU8);

impl WorkerState {
    /// Creates the state of a running worker.
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(RUNNING))
    }

    /// True if it has ended, as far as is known without a fence.
    pub(super) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDED
    }

    /// True if the worker may miss what was just queued. The caller then takes out and refuses
    /// everything queued.
    pub(super) fn has_ended_since(&self) -> bool {
        fence(Ordering::SeqCst);
        self.has_ended()
    }

    /// Records that the stack itself is no longer held.
    pub(super) fn close(&self) {
        // After the end nothing is left to close.
        let (won, lost) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.0.compare_exchange(RUNNING, CLOSING, won, lost);
    }

    /// True if the stack is no longer held and the worker has not ended yet.
    pub(super) fn is_closing(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CLOSING
    }

    /// Records the end: the worker looks once more, to refuse what is queued.
    pub(super) fn end(&self) {
        self.0.store(ENDED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

const RUNNING: u8 = 0;
const CLOSING: u8 = 1;
const ENDED: u8 = 2;
