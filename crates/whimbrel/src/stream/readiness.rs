//! Waiting until something can be read or written, without doing it.

use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::{Interest, Ready};
use tokio::task::coop::poll_proceed;

use super::TcpStream;
use crate::cell::{Flags, StreamState};
use crate::readiness::Awaited;
use crate::waiters::Waiters;

impl TcpStream {
    /// Waits for any of what `interest` names. Any number of tasks may wait at once.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        Ok(self.cell.ready(interest).await)
    }

    /// Waits until something, or the end, can be read.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(|_| ())
    }

    /// Waits until something can be written, or never again.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(|_| ())
    }

    /// Calls `f` if any of what `interest` names is ready now, else fails with `WouldBlock`. What
    /// `f` does with the stream (its `try_` methods) tells by itself whether more is ready.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.cell.ready(interest).try_io(f)
    }

    /// Calls `f` when any of what `interest` names is ready, and again as long as it fails with
    /// `WouldBlock`. What `f` does with the stream (its `try_` methods) is what makes it wait: one that
    /// fails so without having looked is called again at once.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.cell.ready(interest).async_io(f).await
    }

    /// Whether something, or the end, can be read. Of several tasks that poll, only the latest is
    /// woken.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(cx, Interest::READABLE)
    }

    /// Whether something can be written, or never again. Of several tasks that poll, only the
    /// latest is woken.
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
        // Urgent data are read inline: of them there is nothing to tell.
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

/// Whether urgent data are asked for.
#[cfg(target_os = "linux")]
fn is_priority(interest: Interest) -> bool {
    interest.is_priority()
}

/// The same: tokio asks for them on Linux alone.
#[cfg(not(target_os = "linux"))]
fn is_priority(_: Interest) -> bool {
    false
}

fn when(is: bool, ready: Ready) -> Ready {
    if is { ready } else { Ready::EMPTY }
}
