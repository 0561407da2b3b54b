//! Sets of flags, with Linux' numbers and C's names.

flag_set! {
    /// Flags of `send` and `recv`.
    MsgFlags {
        /// Urgent data: the last byte.
        MSG_OOB = 0x1,
        /// Read and leave it unread.
        MSG_PEEK = 0x2,
        /// Refused on a stream that is not local.
        MSG_DONTROUTE = 0x4,
        /// Throw away what is read (on a stream).
        MSG_TRUNC = 0x20,
        /// Do not block, this time.
        MSG_DONTWAIT = 0x40,
        /// Refused: there are no records in a stream.
        MSG_EOR = 0x80,
        /// Block until all of it is there.
        MSG_WAITALL = 0x100,
        /// Refused: there is no error queue.
        MSG_ERRQUEUE = 0x2000,
        /// `EPIPE` comes without SIGPIPE. There are no signals here: whoever has some looks.
        MSG_NOSIGNAL = 0x4000,
        /// More follows: a segment that is not full waits for it.
        MSG_MORE = 0x8000,
        /// Send without a copy: refused with EOPNOTSUPP.
        MSG_ZEROCOPY = 0x400_0000,
        /// Connect, and let the SYN bring what is sent (RFC 7413).
        MSG_FASTOPEN = 0x2000_0000,
    }
}

flag_set! {
    /// Flags of a descriptor (`F_GETFL`).
    FileFlags {
        /// Open for reading alone.
        O_RDONLY = 0x0,
        /// Open for writing alone.
        O_WRONLY = 0x1,
        /// Read and write: what a socket is.
        O_RDWR = 0x2,
        /// Append to a file's end: refused by `F_SETFL` with EINVAL.
        O_APPEND = 0x400,
        /// Calls do not block.
        O_NONBLOCK = 0x800,
        /// Refused: there are no signals.
        O_ASYNC = 0x2000,
    }
}

flag_set! {
    /// Flags of `socket` (beside the type) and `accept4`.
    SocketFlags {
        /// The new descriptor does not block.
        SOCK_NONBLOCK = 0x800,
        /// Close on `exec`, which does not happen here.
        SOCK_CLOEXEC = 0x8_0000,
    }
}

flag_set! {
    /// What `poll` is asked for, and what it found, as bits.
    PollEvents {
        /// There is something to read, or its end, or a connection to accept.
        POLLIN = 0x1,
        /// Urgent data is there to be read.
        POLLPRI = 0x2,
        /// There is room to write.
        POLLOUT = 0x4,
        /// An error waits for `SO_ERROR`.
        POLLERR = 0x8,
        /// Both directions are over, or there never was a connection.
        POLLHUP = 0x10,
        /// The number names no descriptor.
        POLLNVAL = 0x20,
        /// The same as `POLLIN`.
        POLLRDNORM = 0x40,
        /// The same as `POLLPRI`.
        POLLRDBAND = 0x80,
        /// The same as `POLLOUT`.
        POLLWRNORM = 0x100,
        /// The same, for priorities.
        POLLWRBAND = 0x200,
        /// The peer closed its direction, or we shut down reading.
        POLLRDHUP = 0x2000,
    }
}

flag_set! {
    /// What `epoll` is asked for, and what it found, as bits.
    EpollEvents {
        /// There is something to read, or its end, or a connection to accept.
        EPOLLIN = 0x1,
        /// Urgent data is there to be read.
        EPOLLPRI = 0x2,
        /// There is room to write.
        EPOLLOUT = 0x4,
        /// An error waits for `SO_ERROR`.
        EPOLLERR = 0x8,
        /// Both directions are over, or there never was a connection.
        EPOLLHUP = 0x10,
        /// The same as `EPOLLIN`.
        EPOLLRDNORM = 0x40,
        /// The same as `EPOLLPRI`.
        EPOLLRDBAND = 0x80,
        /// The same as `EPOLLOUT`.
        EPOLLWRNORM = 0x100,
        /// The same, for priorities.
        EPOLLWRBAND = 0x200,
        /// The peer closed its direction, or we shut down reading.
        EPOLLRDHUP = 0x2000,
        /// Report once, then wait for `EPOLL_CTL_MOD`.
        EPOLLONESHOT = 0x4000_0000,
        /// Report what happens, not what is so.
        EPOLLET = 0x8000_0000,
    }
}

impl From<PollEvents> for EpollEvents {
    /// They have the same bits on Linux.
    fn from(events: PollEvents) -> Self {
        Self::from_bits(events.bits())
    }
}
