//! Substitutes for the system calls on systems other than Linux. Packets come from a program and go
//! to it, no descriptor reports them, and a worker sleeps until its [`Waker`](crate::Waker) or a
//! deadline wakes it.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Placeholder for a descriptor to wait for. Nothing is waited for, so any type is one.
pub trait AsFd {}

impl<T: ?Sized> AsFd for T {}

/// An event that ends a sleep. If it is raised while no thread sleeps, it ends the next sleep.
#[derive(Default, Debug)]
pub(crate) struct Event {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    /// Creates an event that is not raised. It never fails; on Linux there may be no descriptor
    /// left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Raises the event: it ends the current sleep, or the next.
    pub(crate) fn signal(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps until the event is raised, or `timeout` has passed (`None`: no limit).
    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        match timeout {
            None => drop(self.changed.wait_while(is_set, |is_set| !*is_set)),
            Some(timeout) => {
                drop(self.changed.wait_timeout_while(is_set, timeout, |is_set| !*is_set));
            }
        }
    }

    /// Resets the event, so that the next sleep waits until it is raised again.
    pub(crate) fn clear(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// Conditions of the device that a worker waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Data can be read.
    Read,
    /// Data can be read, or written.
    ReadWrite,
}

/// Does nothing: threads are not pinned on this system.
pub(crate) fn pin_to(_processor: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Memory that the allocator keeps.
pub(crate) mod allocator {
    /// Does nothing: only Linux's allocator has to be asked to return memory.
    pub(crate) fn release() {}
}
