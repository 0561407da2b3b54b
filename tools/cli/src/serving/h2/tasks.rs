//! The futures that a connection begins: one for each of its streams.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use hyper::rt::Executor;

/// Tasks of one connection. Only woken ones are polled: else a peer with a hundred open streams would
/// cause a poll of each for every frame.
#[derive(Clone)]
pub(super) struct Tasks {
    waiting: Rc<RefCell<Vec<Task>>>,
    /// Wakes the task that drives the connection.
    connection: Waker,
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<TaskWaker>,
    waker: Waker,
}

struct TaskWaker {
    is_woken: AtomicBool,
    connection: Waker,
}

impl Tasks {
    /// None yet, of the connection that this wakes.
    pub(super) fn new(connection: Waker) -> Self {
        Self { waiting: Rc::default(), connection }
    }

    /// True if all have finished.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Number of running tasks.
    pub(super) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Moves on those that were woken, and those that they begin.
    pub(super) fn poll(&self) {
        let mut tasks = self.waiting.take();
        loop {
            tasks.retain_mut(|task| !task.is_over());
            let mut begun = self.waiting.take();
            if begun.is_empty() {
                break;
            }
            tasks.append(&mut begun);
        }
        *self.waiting.borrow_mut() = tasks;
    }
}

impl Task {
    /// Polls the task; true if it has finished.
    fn is_over(&mut self) -> bool {
        self.woken.is_woken.swap(false, Ordering::Relaxed)
            && self.future.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready()
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Relaxed);
        self.connection.wake_by_ref();
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        let is_woken = AtomicBool::new(true);
        let woken = Arc::new(TaskWaker { is_woken, connection: self.connection.clone() });
        let waker = Waker::from(Arc::clone(&woken));
        self.waiting.borrow_mut().push(Task { future: Box::pin(future), woken, waker });
    }
}

#[cfg(test)]
#[path = "tasks/tests.rs"]
mod tests;
