//! The first failure of a program, which ends the test.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Place for the first failure of a world.
#[derive(Default, Debug)]
pub(super) struct FailureSlot(Mutex<Slot>);

#[derive(Default, Debug)]
struct Slot {
    failure: Option<Failure>,
    task: Option<Waker>,
}

/// Failure of a program.
#[derive(Debug)]
pub(super) enum Failure {
    /// It panicked.
    Panic(Box<dyn Any + Send>),
    /// It ended with an error.
    Error(String),
}

impl FailureSlot {
    /// Stores a failure, unless there is one, and wakes the test.
    pub(super) fn put(&self, failure: Failure) {
        let task = {
            let mut slot = self.lock();
            slot.failure.get_or_insert(failure);
            slot.task.take()
        };
        task.into_iter().for_each(Waker::wake);
    }

    /// Panics with the failure, if there is one; otherwise it will wake the task.
    pub(super) fn check(&self, cx: &mut Context<'_>) {
        let failure = {
            let mut slot = self.lock();
            slot.task = Some(cx.waker().clone());
            slot.failure.take()
        };
        match failure {
            None => {}
            Some(Failure::Panic(payload)) => resume_unwind(payload),
            Some(Failure::Error(text)) => panic!("{text}"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
