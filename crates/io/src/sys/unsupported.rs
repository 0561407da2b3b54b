//! What stands for the system calls where the system is not Linux: packets come from a program and go to it,
//! no descriptor tells of them, and a worker sleeps until its [`Waker`](crate::Waker) or a deadline wakes it.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What could be waited for by a descriptor: nothing is, so that anything may be.
pub trait AsFd {}

impl<T: ?Sized> AsFd for T {}

/// Ends a sleep. Raised while nobody sleeps, it ends the next one.
#[derive(Default, Debug)]
pub(crate) struct Event {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    /// One that was not raised. It never fails, where Linux may have no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Raises it: the sleep that is under way ends, or else the next.
    pub(crate) fn signal(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps until it is raised, or `timeout` is over (`None`: for ever).
    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        match timeout {
            None => drop(self.changed.wait_while(is_set, |is_set| !*is_set)),
            Some(timeout) => {
                drop(self.changed.wait_timeout_while(is_set, timeout, |is_set| !*is_set));
            }
        }
    }

    /// Has the next sleep wait for another time that it is raised.
    pub(crate) fn clear(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// What a worker waits for of its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// That there is something to be read.
    Read,
    /// That there is something to be read, or room to write.
    ReadWrite,
}

/// Has the calling thread stay on one processor, which is not asked of this system.
pub(crate) fn pin_to(_processor: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Memory that the allocator keeps for itself.
pub(crate) mod allocator {
    /// Linux' allocator is asked to give back what it keeps; others do so by themselves.
    pub(crate) fn release() {}
}
