//! Sleepers on systems without descriptors to wait for: an event for a thread that waits only for
//! the stop, and the wakers of the workers.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::Waker;
use crate::sys::Event;

/// The threads that sleep until a [`Stop`](super::Stop) is set.
#[derive(Debug)]
pub(super) struct Sleepers {
    event: Event,
    workers: Mutex<Vec<Waker>>,
}

impl Sleepers {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { event: Event::new()?, workers: Mutex::default() })
    }

    /// Adds a worker that is about to sleep, if it is not listed yet.
    pub(super) fn add(&self, waker: &Waker) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if !workers.iter().any(|known| known.is(waker)) {
            workers.push(waker.clone());
        }
    }

    /// Wakes all, now and from now on.
    pub(super) fn wake(&self) {
        self.event.signal();
        for worker in &*self.workers.lock().unwrap_or_else(PoisonError::into_inner) {
            worker.wake();
        }
    }

    /// Sleeps until they are woken.
    pub(super) fn wait(&self) -> io::Result<()> {
        self.event.wait(None);
        Ok(())
    }
}
