//! A shard as a task of the runtime, which polls its device, its deadlines and its port.
//!
//! A task that writes wakes the shard's task, which tokio runs next on the same thread: no system call
//! and no other thread. A shard that woke many tasks lets them run first, because each of them would
//! otherwise cause its own burst: with 16 echoes at a time that took 3.7 us of processors each, and 2.2
//! so.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};
use whimbrel_io::{PollInterest, PollResult, StackWorker, WorkerError};

use crate::clock::{self, TimeSource};
use crate::shutdown::Shutdown;
use crate::stack_port::StackPort;
use ready::DeviceReady;

#[cfg_attr(not(target_os = "linux"), path = "task/ready_unsupported.rs")]
mod ready;

/// A shard as a task.
pub(crate) struct ShardTask {
    worker: StackWorker<StackPort>,
    shutdown: Arc<Shutdown>,
    ready: DeviceReady,
    sleep: Pin<Box<Sleep>>,
    /// Deadline of `sleep`, while it is armed.
    armed: Option<Instant>,
    /// Time that the worker follows.
    time: TimeSource,
    /// Number of tasks woken in the last run.
    woken: usize,
    has_ended: bool,
}

impl ShardTask {
    /// Spawns the shards on the current runtime.
    pub(crate) fn spawn_all(
        workers: Vec<StackWorker<StackPort>>,
        shutdown: &Arc<Shutdown>,
        time: TimeSource,
    ) -> io::Result<()> {
        let tasks: io::Result<Vec<_>> =
            workers.into_iter().map(|worker| Self::new(worker, shutdown, time)).collect();
        for task in tasks? {
            tokio::spawn(task);
        }
        Ok(())
    }

    fn new(
        worker: StackWorker<StackPort>,
        shutdown: &Arc<Shutdown>,
        time: TimeSource,
    ) -> io::Result<Self> {
        Ok(Self {
            ready: DeviceReady::new(&worker)?,
            worker,
            shutdown: Arc::clone(shutdown),
            sleep: Box::pin(sleep_until(Instant::now())),
            armed: None,
            time,
            woken: 0,
            has_ended: false,
        })
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Result<PollResult, WorkerError> {
        loop {
            // From here on every event is seen.
            self.ready.clear(&mut self.worker, cx)?;
            let polled = self.worker.poll(cx.waker(), self.shutdown.stop(), TURNS)?;
            self.woken += self.worker.port_mut().take_woken();
            if self.ready.follow(&self.worker).map_err(WorkerError::Wait)? {
                continue;
            }
            let PollResult::Waiting(wait) = polled else { return Ok(polled) };
            let is_over = self.is_over(wait, cx).map_err(WorkerError::Wait)?;
            if !is_over {
                return Ok(polled);
            }
        }
    }

    /// True if the awaited event has happened. Otherwise it will wake the task.
    fn is_over(&mut self, wait: PollInterest, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.ready.is_writable(wait, &self.worker, cx)? {
            return Ok(true);
        }
        let Some(timeout) = wait.timeout else { return Ok(false) };
        let until = Instant::now() + timeout;
        // A timer armed too early wakes the task once in vain, which costs less than moving it.
        if self.armed.is_none_or(|armed| until < armed) {
            self.sleep.as_mut().reset(until);
            self.armed = Some(until);
        }
        if self.sleep.as_mut().poll(cx).is_ready() {
            self.armed = None;
            self.check_time()?;
            return Ok(true);
        }
        Ok(false)
    }
}

impl ShardTask {
    /// Fails if the sleep that ended did not last: under a paused clock the shard would spin until the
    /// machine's clock reaches its deadline.
    fn check_time(&self) -> io::Result<()> {
        if self.time == TimeSource::Machine && clock::is_paused() {
            return Err(io::Error::other(
                "tokio's clock was paused, and its wire has a descriptor",
            ));
        }
        Ok(())
    }
}

impl Future for ShardTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Each of many woken tasks is about to use the shard: one burst for all.
        if std::mem::take(&mut this.woken) > 1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match this.run(cx) {
            Ok(PollResult::Waiting(_)) => return Poll::Pending,
            Ok(PollResult::Busy) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Ok(PollResult::Ended) => {}
            Err(error) => this.shutdown.fail(error.to_string()),
        }
        this.has_ended = true;
        Poll::Ready(())
    }
}

impl Drop for ShardTask {
    /// Lets the port report the reason to all tasks; after a panic the port has its own reason.
    fn drop(&mut self) {
        if !self.has_ended && !std::thread::panicking() {
            self.shutdown.fail("the runtime that ran it was shut down".into());
        }
    }
}

/// Turns before other tasks run.
const TURNS: usize = 8;
