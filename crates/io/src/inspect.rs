//! Calls on a shard's thread from other threads, between two bursts.
//!
//! A worker makes one of these calls a turn, so that many callers delay no packet by more than one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::SegQueue;
use whimbrel_stack::Shard;

use crate::Waker;
use crate::tap::TapSlot;

/// A call on a shard. It must do a bounded amount of work, because no packet is processed meanwhile.
pub type Inspection = Box<dyn FnOnce(&mut Shard) + Send>;

/// A call that attaches a capture to a shard, or detaches it.
pub type CaptureCall = Box<dyn FnOnce(&mut TapSlot<'_>) + Send>;

/// Access to a shard from other threads.
pub trait Inspect: Send + Sync {
    /// Queues a call on the shard's thread. If the shard has ended, or ends first, the call is dropped.
    fn inspect(&self, call: Inspection);

    /// Queues a call on the captures of the shard's frames, as [`Inspect::inspect`] does. By default the call
    /// is dropped: such a shard shows no frames.
    fn capture(&self, call: CaptureCall) {
        drop(call);
    }
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

/// A call of another thread.
pub(crate) enum Call {
    Shard(Inspection),
    Captures(CaptureCall),
}

impl Call {
    /// Makes the call.
    pub(crate) fn make(self, shard: &mut Shard, mut slot: TapSlot<'_>) {
        match self {
            Self::Shard(call) => call(shard),
            Self::Captures(call) => call(&mut slot),
        }
    }
}

#[derive(Default, Debug)]
struct Queue {
    calls: SegQueue<Call>,
    /// True if there may be calls: a worker reads only this while there are none.
    has_calls: AtomicBool,
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
        self.queue(Call::Shard(call));
    }

    fn capture(&self, call: CaptureCall) {
        self.queue(Call::Captures(call));
    }
}

impl Inspector {
    fn queue(&self, call: Call) {
        self.queue.calls.push(call);
        self.queue.has_calls.store(true, Ordering::Release);
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
        self.queue.has_calls.load(Ordering::Acquire)
    }

    /// Takes the call that has waited longest.
    #[inline]
    pub(crate) fn next(&self) -> Option<Call> {
        if self.queue.has_calls.load(Ordering::Acquire) { self.queue.next() } else { None }
    }
}

impl Default for Inspections {
    /// Creates those of a worker without callers.
    fn default() -> Self {
        Self { queue: Arc::default() }
    }
}

impl Drop for Inspections {
    fn drop(&mut self) {
        self.queue.has_ended.store(true, Ordering::SeqCst);
        self.queue.clear();
    }
}

impl Queue {
    #[cold]
    fn next(&self) -> Option<Call> {
        let call = self.calls.pop();
        if call.is_some() || !self.has_calls.swap(false, Ordering::AcqRel) {
            return call;
        }
        // A call that was queued before the flag fell is seen now; one queued later raises it again.
        let late = self.calls.pop();
        if late.is_some() {
            self.has_calls.store(true, Ordering::Release);
        }
        late
    }

    fn clear(&self) {
        while self.calls.pop().is_some() {}
    }
}
