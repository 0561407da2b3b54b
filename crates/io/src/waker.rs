//! Waking a sleeping worker, at almost no cost if it is awake.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock, atomic};
use std::task;

use crate::sys::Event;
use sleep_flag::SleepFlag;

mod sleep_flag;

/// Wakes one worker. Clones wake the same one. `sleep_flag.rs` explains why no wake-up is lost.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sleep_flag: SleepFlag,
    event: Event,
    /// Task that polls the worker, if it has no thread.
    task: OnceLock<task::Waker>,
}

impl Waker {
    /// Creates the waker of a worker that does not run yet.
    pub fn new() -> io::Result<Self> {
        let (sleep_flag, task) = (SleepFlag::new(), OnceLock::new());
        let shared = Shared { sleep_flag, event: Event::new()?, task };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Wakes the worker; call it after queueing something for the worker's port. It costs a system call
    /// only if the worker sleeps on its own thread, and only for one of many callers. After the
    /// worker's end it has no effect.
    pub fn wake(&self) {
        if self.shared.sleep_flag.claim_wake_up() {
            match self.shared.task.get() {
                Some(task) => task.wake_by_ref(),
                None => self.shared.event.signal(),
            }
        }
    }

    /// Sets the task that polls the worker, from its first sleep to its end.
    pub(crate) fn set_task(&self, task: &task::Waker) {
        self.shared.task.get_or_init(|| task.clone());
    }

    /// Announces a sleep of the worker, which must check its queue once more after this.
    pub(crate) fn announce(&self) {
        self.shared.sleep_flag.announce();
    }

    /// Records that the worker is awake. A caller elected just before still writes the descriptor,
    /// which ends the next sleep early once.
    pub(crate) fn retract(&self) {
        self.shared.sleep_flag.retract();
    }

    /// Makes the descriptor unreadable until the next wake-up.
    pub(crate) fn clear(&self) {
        self.shared.event.clear();
    }

    /// Sleeps until a wake-up or until `timeout` has passed (`None`: no limit).
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn wait(&self, timeout: Option<std::time::Duration>) {
        self.shared.event.wait(timeout);
        self.clear();
    }

    /// True if it wakes the same worker.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Waker {
    /// Readable after a wake-up.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

#[cfg(test)]
mod tests;
