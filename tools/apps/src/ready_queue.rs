//! The connections that are to be polled: those whose waker was woken.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that were woken and not polled since, in order.
#[derive(Default)]
pub struct ReadyQueue(Mutex<VecDeque<Ready>>);

/// Puts one connection in the queue, once until it is taken.
pub struct ReadyWaker {
    place: u32,
    /// True if it is queued already.
    is_queued: Arc<AtomicBool>,
    ready: Arc<ReadyQueue>,
}

struct Ready {
    place: u32,
    is_queued: Arc<AtomicBool>,
}

impl ReadyWaker {
    /// The waker of the connection at this place.
    pub fn new(place: u32, ready: &Arc<ReadyQueue>) -> Self {
        Self { place, is_queued: Arc::default(), ready: Arc::clone(ready) }
    }
}

impl Wake for ReadyWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            let is_queued = Arc::clone(&self.is_queued);
            self.ready.lock().push_back(Ready { place: self.place, is_queued });
        }
    }
}

impl ReadyQueue {
    /// Takes the place that was woken first. Its connection may be gone.
    pub fn next(&self) -> Option<u32> {
        let Ready { place, is_queued } = self.lock().pop_front()?;
        is_queued.store(false, Ordering::Relaxed);
        Some(place)
    }

    /// True if no connection is to be polled.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Ready>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
