//! Waiting for a stream to become readable or writable.

use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::{Interest, Ready};
use tokio::task::coop::poll_proceed;

use super::TcpStream;
use crate::cell::{Flags, StreamState};
use crate::readiness::Awaited;
use crate::waiters::Waiters;

impl TcpStream {
    /// Waits until any event of `interest` is ready. Any number of tasks may wait at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        Ok(self.cell.ready(interest).await)
    }

    /// Waits until data or the end of the stream can be read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(|_| ())
    }

    /// Waits until data can be written, or writing fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(|_| ())
    }

    /// Calls `f` if any event of `interest` is ready now; otherwise fails with `WouldBlock`. Readiness
    /// follows from the `try_` methods that `f` calls.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.cell.ready(interest).try_io(f)
    }

    /// Calls `f` when any event of `interest` is ready, and again while it fails with `WouldBlock`. An
    /// `f` that fails so without a `try_` call on this stream is called again at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing that `f` did not change: it is not called again.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.cell.ready(interest).async_io(f).await
    }

    /// Polls until data or the end of the stream can be read. If several tasks poll, only the latest is
    /// woken.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(cx, Interest::READABLE)
    }

    /// Polls until data can be written, or writing fails. If several tasks poll, only the latest is
    /// woken.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(cx, Interest::WRITABLE)
    }

    fn poll_ready(&self, cx: &mut Context<'_>, interest: Interest) -> Poll<io::Result<()>> {
        let coop = ready!(poll_proceed(cx));
        let mut replaced = [None, None];
        let mut state = self.cell.lock();
        let pending = state.readiness(interest).is_empty();
        if pending && interest.is_readable() {
            replaced[0] = state.readers.register(cx.waker());
        }
        if pending && interest.is_writable() {
            replaced[1] = state.writers.register(cx.waker());
        }
        drop(state);
        drop(replaced);
        if pending {
            return Poll::Pending;
        }
        coop.made_progress();
        Poll::Ready(Ok(()))
    }
}

impl Awaited for StreamState {
    fn readiness(&self, interest: Interest) -> Ready {
        let mut ready = Ready::EMPTY;
        let (ended, over) = (self.flags.has(Flags::READ_END), self.flags.has(Flags::OVER));
        let shut = self.flags.has(Flags::SHUT);
        if interest.is_readable() {
            ready |= when(ended || self.unread > 0, Ready::READABLE);
        }
        // Urgent data are read inline, so they are no event of their own.
        if interest.is_readable() || is_priority(interest) {
            ready |= when(ended, Ready::READ_CLOSED);
        }
        if interest.is_writable() {
            ready |= when(over || shut || self.send_room() > 0, Ready::WRITABLE);
            ready |= when(over || shut && ended, Ready::WRITE_CLOSED);
        }
        if interest.is_error() {
            ready |= when(self.has_error(), Ready::ERROR);
        }
        ready
    }

    fn lines(&mut self) -> (&mut Waiters, &mut Waiters) {
        (&mut self.readers, &mut self.writers)
    }
}

/// True if urgent data are requested.
#[cfg(target_os = "linux")]
fn is_priority(interest: Interest) -> bool {
    interest.is_priority()
}

/// Always false: tokio has this interest only on Linux.
#[cfg(not(target_os = "linux"))]
fn is_priority(_: Interest) -> bool {
    false
}

fn when(is: bool, ready: Ready) -> Ready {
    if is { ready } else { Ready::EMPTY }
}
