//! Whether a device is ready, by the runtime's own waiting for descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use whimbrel_io::{PollInterest, StackWorker, WorkerError, poll};

use crate::stack_port::StackPort;

/// What tells that a worker's device is ready.
pub(super) struct DeviceReady {
    readable: Watch,
    /// While the device takes no more.
    writable: Option<AsyncFd<OwnedFd>>,
}

/// The device's descriptor, and what tells that it is ready.
struct Watch {
    /// Its number at the device, which may go on to another.
    number: i32,
    ready: AsyncFd<OwnedFd>,
}

impl DeviceReady {
    pub(super) fn new(worker: &StackWorker<StackPort>) -> io::Result<Self> {
        Ok(Self { readable: Watch::new(worker)?, writable: None })
    }

    /// Forgets that there is something to read: whatever comes after this is heard of. If the device erred,
    /// the worker sees to that.
    pub(super) fn clear(
        &mut self,
        worker: &mut StackWorker<StackPort>,
        cx: &mut Context<'_>,
    ) -> Result<(), WorkerError> {
        if self.readable.clear(cx).map_err(WorkerError::Wait)? {
            worker.on_device_error()?;
            self.readable = Watch::new(worker).map_err(WorkerError::Wait)?;
            let _not_known_yet = self.readable.clear(cx).map_err(WorkerError::Wait)?;
        }
        Ok(())
    }

    /// Whether the device went on to another descriptor, which is looked at from now on.
    pub(super) fn follow(&mut self, worker: &StackWorker<StackPort>) -> io::Result<bool> {
        let has_moved = self.readable.number != worker.as_fd().as_raw_fd();
        if has_moved {
            self.readable = Watch::new(worker)?;
        }
        Ok(has_moved)
    }

    /// Whether the device takes more, if that is waited for. If not, the task is woken when it does.
    pub(super) fn is_writable(
        &mut self,
        wait: PollInterest,
        worker: &StackWorker<StackPort>,
        cx: &mut Context<'_>,
    ) -> io::Result<bool> {
        if wait.interest == poll::Interest::Read {
            self.writable = None;
            return Ok(false);
        }
        let writable = self.writable.insert(watch(worker, Interest::WRITABLE)?);
        Ok(writable.poll_write_ready(cx)?.is_ready())
    }
}

impl Watch {
    fn new(worker: &StackWorker<StackPort>) -> io::Result<Self> {
        let number = worker.as_fd().as_raw_fd();
        Ok(Self { number, ready: watch(worker, Interest::READABLE)? })
    }

    /// Forgets that it was ready. Returns whether it erred or hung up, which it goes on to say.
    fn clear(&self, cx: &mut Context<'_>) -> io::Result<bool> {
        while let Poll::Ready(ready) = self.ready.poll_read_ready(cx) {
            let mut ready = ready?;
            if ready.ready().is_read_closed() {
                return Ok(true);
            }
            ready.clear_ready();
        }
        // It was not asked whether it is writable; an error alone counts as being closed for writing.
        Ok(self.ready.poll_write_ready(cx)?.is_ready())
    }
}

/// Of a copy: the original may be closed, and its number another's, before this is dropped.
#[expect(deprecated, reason = "what took its place is unsafe, for descriptors that nobody owns")]
fn watch(worker: &StackWorker<StackPort>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(worker.as_fd().try_clone_to_owned()?, interest)
}
