//! Readiness of a device, through the runtime's own polling of descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use whimbrel_io::{PollInterest, StackWorker, WorkerError, poll};

use crate::stack_port::StackPort;

/// Readiness of a worker's device.
pub(super) struct DeviceReady {
    readable: Watch,
    /// Set while the device is blocked.
    writable: Option<AsyncFd<OwnedFd>>,
}

/// A watched descriptor of the device.
struct Watch {
    /// Number of the descriptor, which the device may replace.
    number: i32,
    ready: AsyncFd<OwnedFd>,
}

impl DeviceReady {
    pub(super) fn new(worker: &StackWorker<StackPort>) -> io::Result<Self> {
        Ok(Self { readable: Watch::new(worker)?, writable: None })
    }

    /// Clears readable readiness, so that every later event is seen. The worker handles an error of the
    /// device.
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

    /// True if the device replaced its descriptor, which is then watched.
    pub(super) fn follow(&mut self, worker: &StackWorker<StackPort>) -> io::Result<bool> {
        let has_moved = self.readable.number != worker.as_fd().as_raw_fd();
        if has_moved {
            self.readable = Watch::new(worker)?;
        }
        Ok(has_moved)
    }

    /// True if a blocked device takes more. Otherwise this will wake the task.
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

    /// Clears the readiness. Returns true if the device has failed or hung up, which remains set.
    fn clear(&self, cx: &mut Context<'_>) -> io::Result<bool> {
        while let Poll::Ready(ready) = self.ready.poll_read_ready(cx) {
            let mut ready = ready?;
            if ready.ready().is_read_closed() {
                return Ok(true);
            }
            ready.clear_ready();
        }
        // Writability was not requested; an error alone counts as closed for writing.
        Ok(self.ready.poll_write_ready(cx)?.is_ready())
    }
}

/// Watches a copy: the original may be closed, and its number reused, before this is dropped.
#[expect(deprecated, reason = "its replacement is unsafe, for descriptors without an owner")]
fn watch(worker: &StackWorker<StackPort>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(worker.as_fd().try_clone_to_owned()?, interest)
}
