//! Wakes a worker that sleeps, and costs next to nothing if it does not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::sys::EventFd;

/// Wakes one worker. Clones wake the same one.
///
/// # Why no wake-up is lost
///
/// Two threads, two places: the queue, and the flag `sleeping`. Each side writes one and then
/// reads the other (Dekker's pattern):
///
/// ```text
/// task                          worker
///   queue.push(command)           sleeping = true          (announce)
///   fence(SeqCst)                 fence(SeqCst)
///   if sleeping: write eventfd    if queue is empty: ppoll
/// ```
///
/// Release and acquire would let both reads come before both writes, each side seeing nothing and
/// the worker sleeping on a full queue. The two SeqCst fences have one order: whichever is second
/// sees what the other side wrote before its own. So either the task sees `sleeping` and writes
/// the descriptor, or the worker sees the command and does not sleep.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sleeping: AtomicBool,
    event: EventFd,
}

impl Waker {
    /// For a worker not yet running.
    pub fn new() -> io::Result<Self> {
        let shared = Shared { sleeping: AtomicBool::new(false), event: EventFd::new()? };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Call it after putting something where the worker's port looks. A system call only if the
    /// worker sleeps, and then by one of many callers. After the worker's end it does nothing.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        // The load keeps the line shared while the worker runs; the swap elects one writer.
        if self.shared.sleeping.load(Ordering::Relaxed)
            && self.shared.sleeping.swap(false, Ordering::Relaxed)
        {
            self.shared.event.signal();
        }
    }

    /// The worker is about to sleep. It must look into its queue once more after this.
    pub(crate) fn announce(&self) {
        self.shared.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The worker is awake. A task that was elected just before writes the descriptor all the
    /// same, which ends the next sleep early once.
    pub(crate) fn retract(&self) {
        self.shared.sleeping.store(false, Ordering::Relaxed);
    }

    /// Makes the descriptor unreadable until the next wake-up.
    pub(crate) fn clear(&self) {
        self.shared.event.clear();
    }
}

impl AsFd for Waker {
    /// Readable after a wake-up.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

#[cfg(test)]
mod tests;
