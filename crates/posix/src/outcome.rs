//! What comes of a call: a result, or something to wait for.

use whimbrel_base::Instant;

use crate::{Errno, Fd};

/// What came of a call that may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome<T> {
    /// The call is over, with this result.
    Done(Result<T, Errno>),
    /// It blocks. To be called again with the same arguments once the wait may be over
    /// ([`Sockets::may_go_on`](crate::Sockets::may_go_on)); what it did so far is in them.
    Block(BlockedOn),
}

/// What a blocked call waits for, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockedOn {
    /// `recv`: something to read, or the end of it.
    Readable(Fd),
    /// `send`: there is room in the send buffer.
    Writable(Fd),
    /// `connect`, or a transfer before it came through: established, or failed.
    Connected(Fd),
    /// `accept`: a connection that is complete.
    Accepted(Fd),
    /// `close` with `SO_LINGER`: all acknowledged, our FIN included, or this time.
    Lingering(Fd, Instant),
    /// `poll`: any of its descriptors, or this time.
    Polling(Instant),
    /// `epoll_wait`: any of what this one watches, or this time.
    Epoll(Fd, Instant),
}

impl BlockedOn {
    /// When it ends even if nothing happens; [`Instant::NEVER`] if it does not.
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
