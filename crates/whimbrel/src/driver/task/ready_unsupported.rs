//! Readiness on systems without descriptors, where the device wakes the worker.

use std::io;
use std::task::Context;

use whimbrel_io::{PollInterest, StackWorker, WorkerError};

use crate::stack_port::StackPort;

/// Readiness of a worker's device. Each method answers as for a descriptor without events.
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
