//! A request to end, that any thread or a signal handler can make and every worker sees.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::{Interest, PollFd, ppoll};

/// Ends workers. Once set it stays set. Clones are the same request.
///
/// A flag for those who run, and a pipe that is written and never read for those who sleep: it
/// stays readable, so any number of workers wait on the one descriptor.
#[derive(Clone, Debug)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    flag: Arc<AtomicBool>,
    reader: PipeReader,
    writer: PipeWriter,
}

impl Stop {
    /// A stop that is not set: an error if the system has no descriptor.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { shared: Arc::new(Shared { flag: Arc::default(), reader, writer }) })
    }

    /// Whether it was set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.shared.flag.load(Ordering::Acquire)
    }

    /// Sets it and wakes who waits. Does nothing more if it was set, so the pipe cannot fill.
    pub fn set(&self) {
        if !self.shared.flag.swap(true, Ordering::AcqRel) {
            // A pipe with room for one octet takes it; if not, somebody wrote there already.
            let _ = (&self.shared.writer).write(&[1]);
        }
    }

    /// Sleeps until it is set.
    pub fn wait(&self) -> io::Result<()> {
        while !self.is_set() {
            ppoll(&mut [PollFd::new(self, Interest::Read)], None)?;
        }
        Ok(())
    }

    /// The flag, for a signal handler that sets it and then writes to [`Stop::writer`].
    #[cfg(feature = "signals")]
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.flag)
    }

    /// The end of the pipe that wakes the sleepers.
    #[cfg(feature = "signals")]
    pub(crate) fn writer(&self) -> io::Result<PipeWriter> {
        self.shared.writer.try_clone()
    }
}

impl AsFd for Stop {
    /// Readable once it is set.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.reader.as_fd()
    }
}

/// Sets a [`Stop`] however its scope ends.
pub(crate) struct StopOnDrop<'s>(pub(crate) &'s Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}
