//! Outcome of a call: a result, or a condition to wait for.

use whimbrel_base::Instant;

use crate::{Errno, Fd};

/// Outcome of a call that may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome<T> {
    /// The call is over, with this result.
    Done(Result<T, Errno>),
    /// It blocks. Repeat it with the same arguments, which hold its progress, when the wait may be
    /// over ([`Sockets::may_go_on`](crate::Sockets::may_go_on)).
    Block(BlockedOn),
}

/// Condition of a blocked call, and its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockedOn {
    /// `recv`: data to read, or its end.
    Readable(Fd),
    /// `send`: room in the send buffer.
    Writable(Fd),
    /// `connect`, or a transfer during it: established, or failed.
    Connected(Fd),
    /// `accept`: a complete connection.
    Accepted(Fd),
    /// `close` with `SO_LINGER`: all data and our FIN acknowledged, or this time.
    Lingering(Fd, Instant),
    /// `poll`: an event of its descriptors, or this time.
    Polling(Instant),
    /// `epoll_wait`: an event of this instance, or this time.
    Epoll(Fd, Instant),
}

impl BlockedOn {
    /// Time of its end without an event; [`Instant::NEVER`] if there is none.
    pub const fn until(&self) -> Instant {
        match self {
            Self::Lingering(_, until) | Self::Polling(until) | Self::Epoll(_, until) => *until,
            _ => Instant::NEVER,
        }
    }
}

impl<T> Outcome<T> {
    /// A call that failed.
    pub const fn fail(errno: Errno) -> Self {
        Self::Done(Err(errno))
    }

    /// Applies `f` to the value of a call that succeeded.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(result) => Outcome::Done(result.map(f)),
            Self::Block(wait) => Outcome::Block(wait),
        }
    }

    /// The result, if there is one.
    pub fn done(self) -> Option<Result<T, Errno>> {
        match self {
            Self::Done(result) => Some(result),
            Self::Block(_) => None,
        }
    }
}

impl<T> From<Result<T, Errno>> for Outcome<T> {
    fn from(result: Result<T, Errno>) -> Self {
        Self::Done(result)
    }
}
