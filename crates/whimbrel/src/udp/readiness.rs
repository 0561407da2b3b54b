//! Waiting for a UDP socket to become readable or writable.

use std::io;
use std::task::{Context, Poll, ready};

use tokio::io::{Interest, Ready};
use tokio::task::coop::poll_proceed;

use super::UdpSocket;
use crate::readiness::Awaited;
use crate::udp_cell::UdpState;
use crate::waiters::Waiters;

impl UdpSocket {
    /// Waits until any event of `interest` is ready. Any number of tasks may wait at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        Ok(self.cell.ready(interest).await)
    }

    /// Waits until a datagram or an error can be received.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(|_| ())
    }

    /// Waits until a datagram can be sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(|_| ())
    }

    /// Polls until a datagram or an error can be received. If several tasks poll, only the latest is
    /// woken.
    pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, Interest::READABLE, |_| Ok(()))
    }

    /// Polls until a datagram can be sent. If several tasks poll, only the latest is woken.
    pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, Interest::WRITABLE, |_| Ok(()))
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
    /// `f` that fails so without a `try_` call on this socket is called again at once.
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

    /// Calls `act` once an event of `interest` is ready.
    pub(super) fn poll_with<R>(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        act: impl FnOnce(&Self) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let coop = ready!(poll_proceed(cx));
        let mut replaced = None;
        let pending = {
            let mut state = self.cell.lock();
            let pending = state.readiness(interest).is_empty();
            if pending && interest.is_writable() {
                replaced = state.writers.register(cx.waker());
            } else if pending {
                replaced = state.readers.register(cx.waker());
            }
            pending
        };
        drop(replaced);
        if pending {
            return Poll::Pending;
        }
        coop.made_progress();
        match act(self) {
            // Another task took it first.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            result => Poll::Ready(result),
        }
    }
}

impl Awaited for UdpState {
    fn readiness(&self, interest: Interest) -> Ready {
        let mut ready = Ready::EMPTY;
        if interest.is_readable() && self.is_readable() {
            ready |= Ready::READABLE;
        }
        if interest.is_writable() && self.is_writable() {
            ready |= Ready::WRITABLE;
        }
        if interest.is_error() && self.has_error() {
            ready |= Ready::ERROR;
        }
        ready
    }

    fn lines(&mut self) -> (&mut Waiters, &mut Waiters) {
        (&mut self.readers, &mut self.writers)
    }
}
