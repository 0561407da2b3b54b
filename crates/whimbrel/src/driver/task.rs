//! A shard as a task of the runtime: its device by the runtime's own waiting for descriptors, its deadlines
//! by the runtime's timers, and its port woken as any task is.
//!
//! A task that writes wakes the shard's task, which tokio runs next on the same thread: no system call, and
//! no other thread. Where the shard woke many, it lets them have their turns first, or each of them would
//! make a burst of its own: with 16 echoes at a time that took 3.7 us of processors each, and 2.2 so.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, Sleep, sleep_until};
use whimbrel_io::{Polled, StackWorker, Wait, WorkerError, poll};

use crate::shutdown::Shutdown;
use crate::stack_port::StackPort;

/// A shard as a task.
pub(crate) struct ShardTask {
    worker: StackWorker<StackPort>,
    shutdown: Arc<Shutdown>,
    readable: Watch,
    /// While the device takes no more.
    writable: Option<AsyncFd<OwnedFd>>,
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` ends, if it is waited for.
    armed: Option<Instant>,
    /// How many tasks it woke when it ran last.
    woken: usize,
    has_ended: bool,
}

/// The device's descriptor, and what tells that it is ready.
struct Watch {
    /// Its number at the device, which may go on to another.
    number: i32,
    ready: AsyncFd<OwnedFd>,
}

impl ShardTask {
    /// Hands the shards to the runtime that this is called in.
    pub(crate) fn spawn_all(
        workers: Vec<StackWorker<StackPort>>,
        shutdown: &Arc<Shutdown>,
    ) -> io::Result<()> {
        let tasks: io::Result<Vec<_>> =
            workers.into_iter().map(|worker| Self::new(worker, shutdown)).collect();
        for task in tasks? {
            tokio::spawn(task);
        }
        Ok(())
    }

    fn new(worker: StackWorker<StackPort>, shutdown: &Arc<Shutdown>) -> io::Result<Self> {
        Ok(Self {
            readable: Watch::new(&worker)?,
            worker,
            shutdown: Arc::clone(shutdown),
            writable: None,
            sleep: Box::pin(sleep_until(Instant::now())),
            armed: None,
            woken: 0,
            has_ended: false,
        })
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Result<Polled, WorkerError> {
        loop {
            // Whatever comes after this is heard of.
            if self.readable.clear(cx).map_err(WorkerError::Wait)? {
                self.worker.on_device_error()?;
                self.readable = Watch::new(&self.worker).map_err(WorkerError::Wait)?;
                let _not_known_yet = self.readable.clear(cx).map_err(WorkerError::Wait)?;
            }
            let polled = self.worker.poll(cx.waker(), self.shutdown.stop(), TURNS)?;
            self.woken += self.worker.port_mut().take_woken();
            if self.readable.number != self.worker.as_fd().as_raw_fd() {
                self.readable = Watch::new(&self.worker).map_err(WorkerError::Wait)?;
                continue;
            }
            let Polled::Waiting(wait) = polled else { return Ok(polled) };
            let is_over = self.is_over(wait, cx).map_err(WorkerError::Wait)?;
            if !is_over {
                return Ok(polled);
            }
        }
    }

    /// Whether what is waited for is there. If not, the task is woken when it is.
    fn is_over(&mut self, wait: Wait, cx: &mut Context<'_>) -> io::Result<bool> {
        if wait.interest == poll::Interest::Read {
            self.writable = None;
        } else {
            let fresh = watch(&self.worker, Interest::WRITABLE);
            let writable = self.writable.insert(fresh?);
            if writable.poll_write_ready(cx)?.is_ready() {
                return Ok(true);
            }
        }
        let Some(timeout) = wait.timeout else { return Ok(false) };
        let until = Instant::now() + timeout;
        // One that is armed too early wakes the task once for nothing, and costs less than moving it.
        if self.armed.is_none_or(|armed| until < armed) {
            self.sleep.as_mut().reset(until);
            self.armed = Some(until);
        }
        if self.sleep.as_mut().poll(cx).is_ready() {
            self.armed = None;
            return Ok(true);
        }
        Ok(false)
    }
}

impl Future for ShardTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Of many that it woke each is about to want something of it: one burst for all.
        if std::mem::take(&mut this.woken) > 1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match this.run(cx) {
            Ok(Polled::Waiting(_)) => return Poll::Pending,
            Ok(Polled::Busy) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Ok(Polled::Ended) => {}
            Err(error) => this.shutdown.fail(error.to_string()),
        }
        this.has_ended = true;
        Poll::Ready(())
    }
}

impl Drop for ShardTask {
    /// Its port tells everybody why; after a panic that is another reason, which it gives itself.
    fn drop(&mut self) {
        if !self.has_ended && !std::thread::panicking() {
            self.shutdown.fail("the runtime that ran it was shut down".into());
        }
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

/// Turns before other tasks have theirs.
const TURNS: usize = 8;
