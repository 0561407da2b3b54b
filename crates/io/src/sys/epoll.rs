//! epoll(7), edge-triggered, and `TCP_INFO`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{check, stream};

/// A set of descriptors whose readiness the kernel reports, each change once.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

/// A descriptor that became ready, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Readiness {
    /// The number it was added with.
    pub(crate) token: u64,
    /// There is something to read, or the end, or an error.
    pub(crate) readable: bool,
    /// There is room to write, or an error.
    pub(crate) writable: bool,
}

/// Room for what one call reports.
pub(crate) type Room = [libc::epoll_event; AT_ONCE];

impl Epoll {
    /// A set that watches nothing.
    pub(crate) fn new() -> io::Result<Self> {
        stream::epoll_create().map(Self)
    }

    /// Room for what one call of [`Epoll::poll`] finds.
    pub(crate) const fn room() -> Room {
        [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE]
    }

    /// Adds a descriptor; it leaves the set when it is closed.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        stream::epoll_ctl(self.as_fd(), libc::EPOLL_CTL_ADD, fd, events.cast_unsigned(), token)
    }

    /// What became ready since, without waiting.
    pub(crate) fn poll<'r>(
        &self,
        room: &'r mut Room,
    ) -> io::Result<impl Iterator<Item = Readiness> + 'r> {
        // SAFETY: the pointer leads to `AT_ONCE` events, lent exclusively for the call.
        let count = check(unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), room.as_mut_ptr(), AT_ONCE as i32, 0)
        })?;
        let ready = room.get(..count.unsigned_abs() as usize).unwrap_or_default();
        Ok(ready.iter().map(|event| {
            let has = |bits: i32| event.events & bits.cast_unsigned() != 0;
            Readiness {
                token: event.u64,
                readable: has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
                writable: has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR),
            }
        }))
    }
}

impl AsFd for Epoll {
    /// Readable while something is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `TCP_INFO` of a socket: `struct tcp_info` of linux/tcp.h in octets. An older kernel fills less
/// of it; the rest is zero.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<[u8; TCP_INFO]> {
    let mut info = [0; TCP_INFO];
    let mut len = TCP_INFO as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to where the first pointer leads, and their
    // number to where the second does; both outlive the call.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    })?;
    Ok(info)
}

/// Changes reported by one call.
pub(crate) const AT_ONCE: usize = 256;
/// As much of `struct tcp_info` as is looked at, octets: up to `tcpi_snd_wnd`.
pub(crate) const TCP_INFO: usize = 232;
