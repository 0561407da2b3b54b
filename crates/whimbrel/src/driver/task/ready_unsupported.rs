//! Where no descriptor tells of packets: their device wakes the worker.

use std::io;
use std::task::Context;

use whimbrel_io::{PollInterest, StackWorker, WorkerError};

use crate::stack_port::StackPort;

/// What tells that a worker's device is ready: nothing has to be looked at, so each of these has the answer of
/// a descriptor that never says anything.
pub(super) struct DeviceReady;

impl DeviceReady {
    pub(super) fn new(_: &StackWorker<StackPort>) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn clear(
        &mut self,
        _: &mut StackWorker<StackPort>,
        _: &mut Context<'_>,
    ) -> Result<(), WorkerError> {
        Ok(())
    }

    pub(super) fn follow(&mut self, _: &StackWorker<StackPort>) -> io::Result<bool> {
        Ok(false)
    }

    pub(super) fn is_writable(
        &mut self,
        _: PollInterest,
        _: &StackWorker<StackPort>,
        _: &mut Context<'_>,
    ) -> io::Result<bool> {
        Ok(false)
    }
}
