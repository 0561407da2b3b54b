//! A worker without a thread: a task of another runtime polls it, and waits for it.

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::task;
use std::time::Duration;

use super::{Activity, BatchBlock, Port, Worker, WorkerError};
use crate::Stop;
use crate::device::Device;
use crate::sys::Interest;

/// Result of polling a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum PollResult {
    /// More work is left, after other tasks have had their turn.
    Busy,
    /// Nothing is left to do until one of these.
    Waiting(PollInterest),
    /// The worker was stopped.
    Ended,
}

/// Conditions that a worker waits for, in addition to its [`Waker`](crate::Waker).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollInterest {
    /// State of the device to wait for. The worker has seen everything from before the poll, so
    /// edges suffice.
    pub interest: Interest,
    /// Longest wait, if there is a limit.
    pub timeout: Option<Duration>,
}

impl<D: Device, P: Port> Worker<D, P> {
    /// Runs at most this many turns. The worker's [`Waker`](crate::Waker) wakes `task`, which is
    /// the same at each call. The code that sets `until` must wake it, too.
    pub fn poll(
        &mut self,
        task: &task::Waker,
        until: &Stop,
        turns: usize,
    ) -> Result<PollResult, WorkerError> {
        self.waker.set_task(task);
        self.waker.retract();
        for _ in 0..turns {
            if until.is_set() {
                return Ok(PollResult::Ended);
            }
            if self.turn()? == Activity::Idle
                && let Some(wait) = self.begin_wait(until)?
            {
                return Ok(PollResult::Waiting(wait));
            }
        }
        Ok(PollResult::Busy)
    }

    /// Handles an error of the device. An error means that the device is lost.
    pub fn on_device_error(&mut self) -> Result<(), WorkerError> {
        let result = self.device.on_poll_error();
        result.map_err(|error| Self::lost(&self.device, error))
    }

    /// Announces a sleep and returns its conditions, unless there is work left.
    fn begin_wait(&mut self, until: &Stop) -> Result<Option<PollInterest>, WorkerError> {
        self.waker.announce();
        // Commands queued before the announcement have not woken the worker.
        let now = self.clock.now();
        self.shard.set_now(now);
        if self.drain(now) == Activity::Busy {
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
            Some(BatchBlock::DeviceFull) => Interest::ReadWrite,
            _ => Interest::Read,
        };
        Ok(Some(PollInterest { interest, timeout }))
    }
}

#[cfg(target_os = "linux")]
impl<D: Device, P> AsFd for Worker<D, P> {
    /// Returns the device's descriptor. The device must not be replaced while the worker is polled.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
