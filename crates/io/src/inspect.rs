//! Calls on a shard's thread from other threads, between two bursts.
//!
//! A worker makes one of these calls a turn, so that many callers delay no packet by more than one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::SegQueue;
use whimbrel_stack::Shard;

use crate::Waker;

/// A call on a shard. It must do a bounded amount of work, because no packet is processed meanwhile.
pub type Inspection = Box<dyn FnOnce(&mut Shard) + Send>;

/// Access to a shard from other threads.
pub trait Inspect: Send + Sync {
    /// Queues a call on the shard's thread. If the shard has ended, or ends first, the call is dropped.
    fn inspect(&self, call: Inspection);
}

/// The callers' side of a worker's calls. Clones share one queue.
#[derive(Clone, Debug)]
pub struct Inspector {
    queue: Arc<Queue>,
    waker: Waker,
}

/// The worker's side: the calls that wait.
#[derive(Debug)]
pub struct Inspections {
    queue: Arc<Queue>,
}

#[derive(Default, Debug)]
struct Queue {
    calls: SegQueue<Inspection>,
    has_ended: AtomicBool,
}

impl Inspector {
    /// Creates both sides for the worker of `waker`.
    pub fn new(waker: Waker) -> (Self, Inspections) {
        let queue = Arc::<Queue>::default();
        (Self { queue: Arc::clone(&queue), waker }, Inspections { queue })
    }
}

impl Inspect for Inspector {
    fn inspect(&self, call: Inspection) {
        self.queue.calls.push(call);
        self.waker.wake();
        // The worker may have ended between.
        if self.queue.has_ended.load(Ordering::SeqCst) {
            self.queue.clear();
        }
    }
}

impl Inspections {
    /// True if a call waits.
    #[cfg(target_os = "linux")]
    pub(crate) fn are_waiting(&self) -> bool {
        !self.queue.calls.is_empty()
    }

    /// Makes the call that has waited longest. Returns false if none waits.
    pub(crate) fn run(&self, shard: &mut Shard) -> bool {
        self.queue.calls.pop().map(|call| call(shard)).is_some()
    }
}

impl Drop for Inspections {
    fn drop(&mut self) {
        self.queue.has_ended.store(true, Ordering::SeqCst);
        self.queue.clear();
    }
}

impl Queue {
    fn clear(&self) {
        while self.calls.pop().is_some() {}
    }
}
