//! A request to end, that any thread or a signal handler can make and every worker sees.

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

/// Ends workers. Once set it stays set. Clones are the same request: a flag for those who run, and
/// something that wakes those who sleep.
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
    /// A stop that is not set: an error if the system has no descriptor.
    pub fn new() -> io::Result<Self> {
        let (flag, sleepers) = (Arc::default(), Sleepers::new()?);
        Ok(Self { shared: Arc::new(Shared { flag, sleepers }) })
    }

    /// Whether it was set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.shared.flag.load(Ordering::Acquire)
    }

    /// Sets it and wakes who waits. Does nothing more if it was set.
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

    /// Whether that worker may sleep: it is woken when this is set, and it was not yet.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn wakes(&self, waker: &crate::Waker) -> bool {
        self.shared.sleepers.add(waker);
        !self.is_set()
    }

    /// The flag, for a signal handler that sets it and then writes to [`Stop::writer`].
    #[cfg(all(target_os = "linux", feature = "signals"))]
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.flag)
    }

    /// The end of the pipe that wakes the sleepers.
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

/// Sets a [`Stop`] however its scope ends.
pub(crate) struct StopOnDrop<'s>(pub(crate) &'s Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}
