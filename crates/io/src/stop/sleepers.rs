//! A pipe that is written and never read: it stays readable, so any number of workers wait on the one
//! descriptor.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::{Interest, PollFd, ppoll};

/// The threads that sleep until a [`Stop`](super::Stop) is set.
#[derive(Debug)]
pub(super) struct Sleepers {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Sleepers {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }

    /// Wakes all, once, so the pipe cannot fill.
    pub(super) fn wake(&self) {
        // If the pipe has no room for one byte, it is readable already.
        let _ = (&self.writer).write(&[1]);
    }

    /// Sleeps until they are woken, or a signal arrives.
    pub(super) fn wait(&self) -> io::Result<()> {
        ppoll(&mut [PollFd::new(self, Interest::Read)], None).map(|_| ())
    }

    #[cfg(feature = "signals")]
    pub(super) fn writer(&self) -> io::Result<PipeWriter> {
        self.writer.try_clone()
    }
}

impl AsFd for Sleepers {
    /// Becomes readable once they were woken.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
