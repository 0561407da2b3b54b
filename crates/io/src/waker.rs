//! Wakes a worker that sleeps, and costs next to nothing if it does not.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock, atomic};
use std::task;

use crate::sys::Event;
use sleep_flag::SleepFlag;

mod sleep_flag;

/// Wakes one worker. Clones wake the same one. Why no wake-up is lost stands in `sleep_flag.rs`.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sleep_flag: SleepFlag,
    event: Event,
    /// The task that polls the worker, if no thread runs it.
    task: OnceLock<task::Waker>,
}

impl Waker {
    /// For a worker not yet running.
    pub fn new() -> io::Result<Self> {
        let (sleep_flag, task) = (SleepFlag::new(), OnceLock::new());
        let shared = Shared { sleep_flag, event: Event::new()?, task };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Call it after putting something where the worker's port looks. A system call only if the
    /// worker sleeps on a thread of its own, and then by one of many callers. After the worker's end it
    /// does nothing.
    pub fn wake(&self) {
        if self.shared.sleep_flag.claim_wake_up() {
            match self.shared.task.get() {
                Some(task) => task.wake_by_ref(),
                None => self.shared.event.signal(),
            }
        }
    }

    /// The worker is polled by `task`, from its first sleep to its end.
    pub(crate) fn set_task(&self, task: &task::Waker) {
        self.shared.task.get_or_init(|| task.clone());
    }

    /// The worker is about to sleep. It must look into its queue once more after this.
    pub(crate) fn announce(&self) {
        self.shared.sleep_flag.announce();
    }

    /// The worker is awake. A task that was elected just before writes the descriptor all the
    /// same, which ends the next sleep early once.
    pub(crate) fn retract(&self) {
        self.shared.sleep_flag.retract();
    }

    /// Makes the descriptor unreadable until the next wake-up.
    pub(crate) fn clear(&self) {
        self.shared.event.clear();
    }

    /// Sleeps until it is woken, or `timeout` is over (`None`: for ever).
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn wait(&self, timeout: Option<std::time::Duration>) {
        self.shared.event.wait(timeout);
        self.clear();
    }

    /// Whether it wakes the same worker.
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
