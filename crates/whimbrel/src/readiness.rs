//! Tasks that await what a stream or a socket is ready for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{Interest, Ready};
use tokio::task::coop::poll_proceed;
use tokio::task::yield_now;

use crate::waiters::{Ticket, Waiters};

/// What a cell's lock guards, seen by a task that waits.
pub(crate) trait Awaited {
    /// What of `interest` is the case.
    fn readiness(&self, interest: Interest) -> Ready;

    /// Who waits to read, and who waits to write.
    fn lines(&mut self) -> (&mut Waiters, &mut Waiters);
}

/// Locks what a cell guards. Nothing that can panic happens under the lock but an executor's cloning of a
/// waker, which leaves the state whole.
pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Somebody who waits, in line until it is dropped.
#[derive(Debug)]
pub(crate) struct Readiness<'a, S: Awaited> {
    state: &'a Mutex<S>,
    interest: Interest,
    reader: Option<Ticket>,
    writer: Option<Ticket>,
}

impl<'a, S: Awaited> Readiness<'a, S> {
    /// Of a task that waits for any of what `interest` names.
    pub(crate) const fn new(state: &'a Mutex<S>, interest: Interest) -> Self {
        Self { state, interest, reader: None, writer: None }
    }

    /// Calls `f` if that is so now, else fails with `WouldBlock`.
    pub(crate) fn try_io<R>(self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let ready = !lock(self.state).readiness(self.interest).is_empty();
        if ready { f() } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Calls `f` when that is so, and again as long as it fails with `WouldBlock`.
    pub(crate) async fn async_io<R>(self, mut f: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        loop {
            Self::new(self.state, self.interest).await;
            match f() {
                // Not at once: an `f` that did not look would keep this thread from all other tasks.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => yield_now().await,
                result => return result,
            }
        }
    }
}

impl<S: Awaited> Future for Readiness<'_, S> {
    type Output = Ready;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ready> {
        let coop = ready!(poll_proceed(cx));
        let mut replaced: [Option<Waker>; 2] = [None, None];
        let mut state = lock(self.state);
        let ready = state.readiness(self.interest);
        if ready.is_empty() {
            let (readers, writers) = state.lines();
            // An error wakes both, so either line will do.
            if self.interest != Interest::WRITABLE {
                replaced[0] = readers.line_up(&mut self.reader, cx.waker());
            }
            if self.interest.is_writable() {
                replaced[1] = writers.line_up(&mut self.writer, cx.waker());
            }
        }
        drop(state);
        drop(replaced);
        if ready.is_empty() {
            return Poll::Pending;
        }
        coop.made_progress();
        Poll::Ready(ready)
    }
}

impl<S: Awaited> Drop for Readiness<'_, S> {
    fn drop(&mut self) {
        if self.reader.is_none() && self.writer.is_none() {
            return;
        }
        let mut state = lock(self.state);
        let (readers, writers) = state.lines();
        let reader = self.reader.and_then(|ticket| readers.leave(ticket));
        let writer = self.writer.and_then(|ticket| writers.leave(ticket));
        drop(state);
        drop((reader, writer));
    }
}
