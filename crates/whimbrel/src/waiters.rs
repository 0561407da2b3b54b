//! Tasks that wait for one event, which wakes all of them.
//!
//! As with tokio's types, only the latest of several *polling* tasks is woken. Tasks that *await* a
//! future have a place in the queue, each with a ticket, and leave when the future is dropped.
//!
//! Callers wake and drop the returned wakers after unlocking. Both run the executor's code, and
//! dropping the last waker of a task can drop the task and its streams.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use tokio::sync::oneshot;

/// Waiting tasks: 24 bytes, and more only while tasks await.
#[derive(Default, Debug)]
pub(crate) struct Waiters {
    latest: Option<Waker>,
    line: Option<Box<Line>>,
}

#[derive(Default, Debug)]
struct Line {
    next: u32,
    /// A woken task keeps its place until it leaves, so that no ticket has two owners.
    places: Vec<(Ticket, Option<Waker>)>,
}

/// A place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u32);

impl Waiters {
    /// Registers a polling task in place of the last one. Returns the replaced waker.
    #[must_use]
    pub(crate) fn register(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.latest {
            Some(latest) if latest.will_wake(waker) => None,
            _ => self.latest.replace(waker.clone()),
        }
    }

    /// Registers an awaiting task, or updates its waker. Returns the replaced waker.
    #[must_use]
    pub(crate) fn line_up(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) -> Option<Waker> {
        let line = self.line.get_or_insert_default();
        let place = ticket.and_then(|own| line.places.iter_mut().find(|(one, _)| *one == own));
        match place {
            Some((_, Some(before))) if before.will_wake(waker) => None,
            Some((_, before)) => before.replace(waker.clone()),
            None => {
                let own = Ticket(line.next);
                line.next = line.next.wrapping_add(1);
                line.places.push((own, Some(waker.clone())));
                *ticket = Some(own);
                None
            }
        }
    }

    /// Removes the task with this ticket.
    #[must_use]
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let line = self.line.as_mut()?;
        let at = line.places.iter().position(|(one, _)| *one == ticket)?;
        let (_, waker) = line.places.swap_remove(at);
        if line.places.is_empty() {
            self.line = None;
        }
        waker
    }

    /// Returns the wakers of all waiting tasks, for the caller to wake.
    pub(crate) fn take_all(&mut self, out: &mut Vec<Waker>) {
        out.extend(self.latest.take());
        if let Some(line) = &mut self.line {
            out.extend(line.places.iter_mut().filter_map(|(_, waker)| waker.take()));
        }
    }
}

/// Wakes all and drops the wakers. The caller must hold no lock.
pub(crate) fn wake_all(wakers: &mut Vec<Waker>) {
    for waker in wakers.drain(..) {
        guarded(|| waker.wake());
    }
}

/// Calls `wake`, which runs the wakers of tasks. A waker that panics harms its own task, not the stack:
/// the panic hook has reported it.
pub(crate) fn guarded(wake: impl FnOnce()) {
    let _panic = catch_unwind(AssertUnwindSafe(wake));
}

/// Sends `value` to the task that awaits it; returns true if the task still does.
pub(crate) fn deliver<T>(to: oneshot::Sender<T>, value: T) -> bool {
    // The value is there before the task is woken.
    let mut is_awaited = true;
    guarded(|| is_awaited = to.send(value).is_ok());
    is_awaited
}

const _: () = assert!(size_of::<Waiters>() == 24);

#[cfg(test)]
mod tests;
