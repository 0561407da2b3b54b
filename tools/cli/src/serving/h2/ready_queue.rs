//! Which connections are to be polled: a waker for each rings its bell.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

/// Bells that rang and were not answered, the first one first.
#[derive(Default)]
pub(super) struct ReadyQueue(Mutex<VecDeque<Ready>>);

/// That of one connection.
pub(super) struct ReadyWaker {
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
    /// Of the connection at this place.
    pub(super) fn new(place: u32, ready: &Arc<ReadyQueue>) -> Self {
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
    /// The place of the next bell that rings, which it does no longer. Whose it was may be gone.
    pub(super) fn next(&self) -> Option<u32> {
        let Ready { place, is_queued } = self.lock().pop_front()?;
        is_queued.store(false, Ordering::Relaxed);
        Some(place)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Ready>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
