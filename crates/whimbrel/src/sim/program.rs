//! A task of a world, such as the program of a host: its panics and errors fail the test.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use super::failure::{Failure, FailureSlot};
use super::net::Net;

/// Result of a host's program. An error fails the test.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Creates the program of a host, at each start.
pub(super) type Start = Arc<dyn Fn(Net) -> Running + Send + Sync>;
/// A program that runs.
pub(super) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A program as a task of the world.
pub(super) struct Program {
    /// Names it in errors.
    pub(super) what: String,
    pub(super) running: Running,
    pub(super) failures: Arc<FailureSlot>,
    pub(super) _counted: TaskCount,
}

/// Counts a task of the world's own until it is dropped.
#[derive(Debug)]
pub(super) struct TaskCount(Arc<AtomicUsize>);

impl TaskCount {
    pub(super) fn new(tasks: &Arc<AtomicUsize>) -> Self {
        tasks.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(tasks))
    }
}

impl Drop for TaskCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Future for Program {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.running.as_mut().poll(cx)));
        let failure = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => return Poll::Ready(()),
            Ok(Poll::Ready(Err(error))) => Failure::Error(format!("{} failed: {error}", self.what)),
            Err(payload) => Failure::Panic(payload),
        };
        self.failures.put(failure);
        Poll::Ready(())
    }
}
