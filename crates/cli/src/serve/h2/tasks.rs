//! The futures that a connection begins: one for each of its streams.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;

use hyper::rt::Executor;

/// Those of one connection. They are polled together: there are few, and most have little to do.
#[derive(Clone, Default)]
pub(super) struct Tasks(Rc<RefCell<Vec<Task>>>);

type Task = Pin<Box<dyn Future<Output = ()>>>;

impl Tasks {
    /// Whether all are over.
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Moves each on, and those that they begin.
    pub(super) fn poll(&self, cx: &mut Context<'_>) {
        let mut waiting = Vec::new();
        loop {
            let fresh = self.0.take();
            if fresh.is_empty() {
                break;
            }
            for mut task in fresh {
                if task.as_mut().poll(cx).is_pending() {
                    waiting.push(task);
                }
            }
        }
        *self.0.borrow_mut() = waiting;
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        self.0.borrow_mut().push(Box::pin(future));
    }
}
