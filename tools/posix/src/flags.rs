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
        /// Discard the data read (on a stream).
        MSG_TRUNC = 0x20,
        /// Do not block, this time.
        MSG_DONTWAIT = 0x40,
        /// Refused: a stream has no records.
        MSG_EOR = 0x80,
        /// Block until the whole length is there.
        MSG_WAITALL = 0x100,
        /// Refused: there is no error queue.
        MSG_ERRQUEUE = 0x2000,
        /// `EPIPE` comes without SIGPIPE. There are no signals here: a caller that has them checks
        /// the flag.
        MSG_NOSIGNAL = 0x4000,
        /// More follows: a segment that is not full waits for it.
        MSG_MORE = 0x8000,
        /// Send without a copy: refused with EOPNOTSUPP.
        MSG_ZEROCOPY = 0x400_0000,
        /// Connect, with data on the SYN (RFC 7413).
        MSG_FASTOPEN = 0x2000_0000,
    }
}

flag_set! {
    /// Flags of a descriptor (`F_GETFL`).
    FileFlags {
        /// Open only for reading.
        O_RDONLY = 0x0,
        /// Open only for writing.
        O_WRONLY = 0x1,
        /// Open for reading and writing, as a socket is.
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
    /// Flags of `socket` (apart from the type) and `accept4`.
    SocketFlags {
        /// The new descriptor does not block.
        SOCK_NONBLOCK = 0x800,
        /// Close on `exec`, which never happens here.
        SOCK_CLOEXEC = 0x8_0000,
    }
}

flag_set! {
    /// Requested and returned events of `poll`, as bits.
    PollEvents {
        /// There is data to read, or its end, or a connection to accept.
        POLLIN = 0x1,
        /// There is urgent data to read.
        POLLPRI = 0x2,
        /// There is room to write.
        POLLOUT = 0x4,
        /// There is an error for `SO_ERROR`.
        POLLERR = 0x8,
        /// Both directions are over, or there was no connection.
        POLLHUP = 0x10,
        /// The number is no open descriptor.
        POLLNVAL = 0x20,
        /// Alias of `POLLIN`.
        POLLRDNORM = 0x40,
        /// Alias of `POLLPRI`.
        POLLRDBAND = 0x80,
        /// Alias of `POLLOUT`.
        POLLWRNORM = 0x100,
        /// Room for priority data.
        POLLWRBAND = 0x200,
        /// The peer closed its direction, or we shut down reading.
        POLLRDHUP = 0x2000,
    }
}

flag_set! {
    /// Requested and returned events of `epoll`, as bits.
    EpollEvents {
        /// There is data to read, or its end, or a connection to accept.
        EPOLLIN = 0x1,
        /// There is urgent data to read.
        EPOLLPRI = 0x2,
        /// There is room to write.
        EPOLLOUT = 0x4,
        /// There is an error for `SO_ERROR`.
        EPOLLERR = 0x8,
        /// Both directions are over, or there was no connection.
        EPOLLHUP = 0x10,
        /// Alias of `EPOLLIN`.
        EPOLLRDNORM = 0x40,
        /// Alias of `EPOLLPRI`.
        EPOLLRDBAND = 0x80,
        /// Alias of `EPOLLOUT`.
        EPOLLWRNORM = 0x100,
        /// Room for priority data.
        EPOLLWRBAND = 0x200,
        /// The peer closed its direction, or we shut down reading.
        EPOLLRDHUP = 0x2000,
        /// Report once, then wait for `EPOLL_CTL_MOD`.
        EPOLLONESHOT = 0x4000_0000,
        /// Report changes, not states.
        EPOLLET = 0x8000_0000,
    }
}

impl From<PollEvents> for EpollEvents {
    /// They have the same bits on Linux.
    fn from(events: PollEvents) -> Self {
        Self::from_bits(events.bits())
    }
}
