//! Waiting for readiness of streams and sockets.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{Interest, Ready};
use tokio::task::coop::poll_proceed;
use tokio::task::yield_now;

use crate::waiters::{Ticket, Waiters};

/// State behind a cell's lock, as a waiting task sees it.
pub(crate) trait Awaited {
    /// Returns the events of `interest` that are ready.
    fn readiness(&self, interest: Interest) -> Ready;

    /// Returns the waiting readers and the waiting writers.
    fn lines(&mut self) -> (&mut Waiters, &mut Waiters);
}

/// Locks a cell's state. Only an executor's waker clone can panic under the lock, which leaves the
/// state valid.
pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A waiting task, registered until it is dropped.
#[derive(Debug)]
pub(crate) struct Readiness<'a, S: Awaited> {
    state: &'a Mutex<S>,
    interest: Interest,
    reader: Option<Ticket>,
    writer: Option<Ticket>,
}

impl<'a, S: Awaited> Readiness<'a, S> {
    /// Creates a wait for any event of `interest`.
    pub(crate) const fn new(state: &'a Mutex<S>, interest: Interest) -> Self {
        Self { state, interest, reader: None, writer: None }
    }

    /// Calls `f` if an event is ready now; otherwise fails with `WouldBlock`.
    pub(crate) fn try_io<R>(self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let ready = !lock(self.state).readiness(self.interest).is_empty();
        if ready { f() } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Calls `f` when an event is ready, and again while it fails with `WouldBlock`.
    pub(crate) async fn async_io<R>(self, mut f: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        loop {
            Self::new(self.state, self.interest).await;
            match f() {
                // Not at once: an `f` that did not look would block the other tasks of this thread.
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
            // An error wakes both queues, so either will do.
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
