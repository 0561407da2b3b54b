//! Blocking and non-blocking calls.

use crate::{BlockedOn, Errno, FileFlags, MsgFlags, Outcome, SocketFlags};

/// Mode of calls on the socket (`O_NONBLOCK`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocking {
    Yes,
    /// `O_NONBLOCK`, or `MSG_DONTWAIT` for one call.
    No,
}

impl Blocking {
    pub(crate) const fn unless(nonblocking: bool) -> Self {
        if nonblocking { Self::No } else { Self::Yes }
    }

    /// Reads the flags of `socket` and `accept4`.
    pub(crate) fn of(flags: SocketFlags) -> Result<Self, Errno> {
        let known = SocketFlags::SOCK_NONBLOCK | SocketFlags::SOCK_CLOEXEC;
        if !flags.without(known).is_empty() {
            return Err(Errno::EINVAL);
        }
        Ok(Self::unless(flags.has(SocketFlags::SOCK_NONBLOCK)))
    }

    /// Mode of one call with these flags.
    pub(crate) fn in_call(self, flags: MsgFlags) -> Self {
        if flags.has(MsgFlags::MSG_DONTWAIT) { Self::No } else { self }
    }

    /// Ends a call that cannot proceed: it waits, or fails with `errno`.
    pub(crate) fn wait_or<T>(self, wait: BlockedOn, errno: Errno) -> Outcome<T> {
        match self {
            Self::Yes => Outcome::Block(wait),
            Self::No => Outcome::fail(errno),
        }
    }

    /// Flags for `F_GETFL`.
    pub(crate) fn file_flags(self) -> FileFlags {
        match self {
            Self::Yes => FileFlags::O_RDWR,
            Self::No => FileFlags::O_RDWR | FileFlags::O_NONBLOCK,
        }
    }
}
