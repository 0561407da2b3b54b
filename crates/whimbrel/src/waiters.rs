//! Tasks that wait for one thing: to be woken, all of them, when it happens.
//!
//! As with tokio's types, of the tasks that *poll* only the latest is woken; those that *await* a
//! future stand in line, each with a ticket, and leave the line when the future is dropped.
//!
//! Wakers come out of here to be woken and dropped by the caller, after it unlocked: both run code
//! of the executor's, and dropping the last waker of a task can drop the task, and its streams.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use tokio::sync::oneshot;

/// Who waits. 24 octets, and nothing more unless somebody awaits.
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

/// A place in the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u32);

impl Waiters {
    /// The task of `waker` polled: it alone of those that poll is woken. Returns the one before.
    #[must_use]
    pub(crate) fn register(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.latest {
            Some(latest) if latest.will_wake(waker) => None,
            _ => self.latest.replace(waker.clone()),
        }
    }

    /// The task of `waker` awaits, from now on or still. Returns the waker that it had before.
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

    /// Who had this ticket awaits no more.
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

    /// It happened: all who wait, for the caller to wake.
    pub(crate) fn take_all(&mut self, out: &mut Vec<Waker>) {
        out.extend(self.latest.take());
        if let Some(line) = &mut self.line {
            out.extend(line.places.iter_mut().filter_map(|(_, waker)| waker.take()));
        }
    }
}

/// Wakes and drops. Nothing must be locked.
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
