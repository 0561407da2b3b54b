//! A stop request, set by any thread or a signal handler and seen by every worker.

use std::io;
#[cfg(all(target_os = "linux", feature = "signals"))]
use std::io::PipeWriter;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sleepers::Sleepers;

#[cfg_attr(not(target_os = "linux"), path = "stop/sleepers_unsupported.rs")]
mod sleepers;

/// Ends workers. Once set it stays set. Clones share one request: a flag for running workers, and a
/// descriptor that wakes sleeping ones.
#[derive(Clone, Debug)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    flag: Arc<AtomicBool>,
    sleepers: Sleepers,
}

impl Stop {
    /// Creates a stop that is not set. Fails if the system has no descriptor.
    pub fn new() -> io::Result<Self> {
        let (flag, sleepers) = (Arc::default(), Sleepers::new()?);
        Ok(Self { shared: Arc::new(Shared { flag, sleepers }) })
    }

    /// True if it was set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.shared.flag.load(Ordering::Acquire)
    }

    /// Sets it and wakes the sleepers. Further calls have no effect.
    pub fn set(&self) {
        if !self.shared.flag.swap(true, Ordering::AcqRel) {
            self.shared.sleepers.wake();
        }
    }

    /// Sleeps until it is set.
    pub fn wait(&self) -> io::Result<()> {
        while !self.is_set() {
            self.shared.sleepers.wait()?;
        }
        Ok(())
    }

    /// Registers a worker to be woken. True if it may sleep, because the stop is not set yet.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn wakes(&self, waker: &crate::Waker) -> bool {
        self.shared.sleepers.add(waker);
        !self.is_set()
    }

    /// Returns the flag, for a signal handler that sets it and then writes to [`Stop::writer`].
    #[cfg(all(target_os = "linux", feature = "signals"))]
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.flag)
    }

    /// Returns the end of the pipe that wakes the sleepers.
    #[cfg(all(target_os = "linux", feature = "signals"))]
    pub(crate) fn writer(&self) -> io::Result<PipeWriter> {
        self.shared.sleepers.writer()
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Stop {
    /// Readable once it is set.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.sleepers.as_fd()
    }
}

/// Sets a [`Stop`] at the end of its scope, however that ends.
pub(crate) struct StopOnDrop<'s>(pub(crate) &'s Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}
