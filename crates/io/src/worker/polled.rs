//! A worker without a thread: a task of somebody's runtime polls it, and waits for it.

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::task;
use std::time::Duration;

use super::{Activity, BatchBlock, Port, Worker, WorkerError};
use crate::Stop;
use crate::device::Device;
use crate::sys::Interest;

/// How far a worker came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Polled {
    /// There is more to do, once others had their turn.
    Busy,
    /// There is nothing to do until one of these.
    Waiting(PollInterest),
    /// It was asked to end.
    Ended,
}

/// What a worker waits for, beside being woken by its [`Waker`](crate::Waker).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollInterest {
    /// Whether its device is to be readable, or writable again, too. What came before the poll began it
    /// has seen: edges are enough.
    pub interest: Interest,
    /// How long, at most.
    pub timeout: Option<Duration>,
}

impl<D: Device, P: Port> Worker<D, P> {
    /// Does what is to be done, in at most so many turns; `task` is woken by the worker's
    /// [`Waker`](crate::Waker), and is the same each time. Whoever sets `until` wakes it, too.
    pub fn poll(
        &mut self,
        task: &task::Waker,
        until: &Stop,
        turns: usize,
    ) -> Result<Polled, WorkerError> {
        self.waker.set_task(task);
        self.waker.retract();
        for _ in 0..turns {
            if until.is_set() {
                return Ok(Polled::Ended);
            }
            if self.turn()? == Activity::Idle
                && let Some(wait) = self.begin_to_wait(until)?
            {
                return Ok(Polled::Waiting(wait));
            }
        }
        Ok(Polled::Busy)
    }

    /// The device reported an error. An error if it is lost.
    pub fn on_device_error(&mut self) -> Result<(), WorkerError> {
        let goes_on = self.device.on_poll_error();
        goes_on.map_err(|error| Self::lost(&self.device, error))
    }

    /// Announces its sleep, and says until when it is, unless there is something to do.
    fn begin_to_wait(&mut self, until: &Stop) -> Result<Option<PollInterest>, WorkerError> {
        self.waker.announce();
        // What was put into the port's queue before the announcement woke nobody.
        let now = self.clock.now();
        self.shard.tell_time(now);
        if self.port.drain(now, &mut self.shard) == Activity::Busy {
            self.waker.retract();
            self.finish_turn(now)?;
            return Ok(None);
        }
        let timeout = self.next_deadline().map(|deadline| self.clock.until(deadline));
        if until.is_set() || timeout == Some(Duration::ZERO) {
            self.waker.retract();
            return Ok(None);
        }
        let interest = match self.stuck {
            Some(BatchBlock::UntilWritable) => Interest::ReadWrite,
            _ => Interest::Read,
        };
        Ok(Some(PollInterest { interest, timeout }))
    }
}

#[cfg(target_os = "linux")]
impl<D: Device, P> AsFd for Worker<D, P> {
    /// The device's, which another may take the place of while the worker is polled.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
