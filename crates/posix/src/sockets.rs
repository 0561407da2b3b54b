//! A process's sockets: descriptors over one shard, and the calls on them.
//!
//! Whoever drives the shard does so through [`Sockets::shard_mut`] (`rx`, `advance`, `tx`, and
//! `tell_time` before a call that follows a pause), but leaves its events to
//! [`Sockets::drain_events`].

mod accept;
mod bind;
mod close;
mod connect;
mod control;
mod datagram;
mod fast_open;
mod getsockopt;
mod poll;
mod readiness;
mod receive;
mod send;
mod setsockopt;
mod urgent;

use alloc::collections::{BTreeMap, BTreeSet};

use whimbrel_stack::{Event, Handle, ListenerId, Shard, UdpHandle};
use whimbrel_tcp::conn::{KeepAlive, Snapshot};

use crate::datagram::Datagrams;
use crate::descriptor::{Descriptors, File};
use crate::epoll::Epoll;
use crate::socket::{Blocking, Phase, Socket, Stream};
use crate::{
    Domain, Errno, Fd, FileFlags, MsgFlags, Outcome, Protocol, SocketFlags, SocketType, Wait,
};

pub use accept::Accepted;
pub use close::Shut;
pub use control::{Fcntl, Ioctl};
pub use datagram::ReceivedFrom;
pub use poll::{EpollOp, EpollReport, PollFd};

/// The sockets of one process on one shard.
#[derive(Debug)]
pub struct Sockets {
    shard: Shard,
    files: Descriptors,
    by_handle: BTreeMap<Handle, Fd>,
    by_listener: BTreeMap<ListenerId, Fd>,
    by_datagrams: BTreeMap<UdpHandle, Fd>,
    /// Which epoll instance watches what: watched first.
    watchers: BTreeSet<(Fd, Fd)>,
    /// Which sockets are bound to a port.
    bound: BTreeSet<(u16, Fd)>,
    /// Ports that a socket without `SO_REUSEADDR` left: connections that linger there may forbid
    /// to bind to them.
    strict: BTreeSet<u16>,
}

/// Getters, and what a driver does.
impl Sockets {
    /// Linux' usual bound on descriptors (`RLIMIT_NOFILE`).
    pub const USUAL_LIMIT: usize = 1024;

    /// A process without descriptors; it may open [`Sockets::USUAL_LIMIT`].
    pub const fn new(shard: Shard) -> Self {
        Self::with_limit(shard, Self::USUAL_LIMIT)
    }

    /// The same, with another bound on descriptors.
    pub const fn with_limit(shard: Shard, limit: usize) -> Self {
        Self {
            shard,
            files: Descriptors::new(limit),
            by_handle: BTreeMap::new(),
            by_listener: BTreeMap::new(),
            by_datagrams: BTreeMap::new(),
            watchers: BTreeSet::new(),
            bound: BTreeSet::new(),
            strict: BTreeSet::new(),
        }
    }

    /// The host that the sockets are over.
    pub const fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The host beneath, to drive it.
    pub const fn shard_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// The descriptors that are open, in order.
    pub fn descriptors(&self) -> impl Iterator<Item = Fd> {
        self.files.iter().map(|(fd, _)| fd)
    }

    /// Takes the shard's events: to be called after it was driven. (Calls that depend on events
    /// do so themselves.)
    pub fn drain_events(&mut self) {
        while let Some(event) = self.shard.poll_event() {
            let fd = match event {
                Event::Accepted(listener) => self.by_listener.get(&listener),
                Event::Connected(handle)
                | Event::Readable(handle)
                | Event::Urgent(handle)
                | Event::Writable(handle)
                | Event::Closed(handle, _) => self.by_handle.get(&handle),
                Event::Udp(handle) => self.by_datagrams.get(&handle),
                _ => None,
            };
            let Some(fd) = fd.copied() else { continue };
            if let Event::Connected(handle) = event {
                self.start_keep_alive(fd, handle);
            }
            self.notify(fd);
        }
    }

    /// How many entries of the tables lead to a descriptor: none, if none is open.
    #[cfg(test)]
    pub(crate) fn leftovers(&self) -> usize {
        let led = self.by_handle.len() + self.by_listener.len();
        led + self.by_datagrams.len() + self.watchers.len() + self.bound.len()
    }

    /// True if a blocked call should be made again. It may come to nothing all the same.
    pub fn may_go_on(&self, wait: &Wait) -> bool {
        if wait.until() <= self.shard.now() {
            return true;
        }
        match *wait {
            Wait::Readable(fd) | Wait::Accepted(fd) => self.is_readable(fd),
            Wait::Writable(fd) => self.is_sendable(fd),
            Wait::Connected(fd) => !self.is_opening(fd),
            Wait::Lingering(fd, _) => !self.is_lingering(fd),
            // Whoever polls looks at each of its descriptors.
            Wait::Polling(_) | Wait::Epoll(..) => true,
        }
    }

    /// The keep-alive timer of a connection begins when it is established.
    fn start_keep_alive(&mut self, fd: Fd, handle: Handle) {
        if self.get(fd).is_ok_and(|socket| socket.settings.options.keep_alive == KeepAlive::On) {
            self.shard.set_keep_alive(handle, KeepAlive::On);
        }
    }

    /// Something happened to `fd`: whoever watches it looks.
    fn notify(&mut self, fd: Fd) {
        for (_, epoll) in self.watchers.range((fd, Fd::LEAST)..=(fd, Fd::GREATEST)) {
            if let Ok(File::Epoll(epoll)) = self.files.get_mut(*epoll) {
                epoll.candidates.insert(fd);
            }
        }
    }
}

/// Calls: the beginning of all.
impl Sockets {
    /// `socket(2)`: the lowest free descriptor.
    pub fn socket(
        &mut self,
        domain: Domain,
        kind: SocketType,
        flags: SocketFlags,
        protocol: Protocol,
    ) -> Result<Fd, Errno> {
        let blocking = blocking_of(flags)?;
        let file = match (kind, protocol) {
            (SocketType::Stream, Protocol::Default | Protocol::Tcp) => {
                File::Socket(Socket::new(domain, blocking))
            }
            (SocketType::Dgram, Protocol::Default | Protocol::Udp) => {
                File::Datagrams(Datagrams::new(domain, blocking))
            }
            (SocketType::Raw, _) => return Err(Errno::ESOCKTNOSUPPORT),
            _ => return Err(Errno::EPROTONOSUPPORT),
        };
        self.files.open(file)
    }
}

/// Finding.
impl Sockets {
    /// The socket, unless it is closed or being closed.
    fn get(&self, fd: Fd) -> Result<&Socket, Errno> {
        match self.files.get(fd)? {
            File::Socket(socket) if is_closing(socket) => Err(Errno::EBADF),
            File::Socket(socket) => Ok(socket),
            // What is called so is for streams alone.
            File::Datagrams(_) => Err(Errno::EOPNOTSUPP),
            File::Epoll(_) => Err(Errno::ENOTSOCK),
        }
    }

    fn get_mut(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        match self.files.get_mut(fd)? {
            File::Socket(socket) if is_closing(socket) => Err(Errno::EBADF),
            File::Socket(socket) => Ok(socket),
            // What is called so is for streams alone.
            File::Datagrams(_) => Err(Errno::EOPNOTSUPP),
            File::Epoll(_) => Err(Errno::ENOTSOCK),
        }
    }

    fn epoll(&self, fd: Fd) -> Result<&Epoll, Errno> {
        match self.files.get(fd)? {
            File::Epoll(epoll) => Ok(epoll),
            File::Socket(_) | File::Datagrams(_) => Err(Errno::EINVAL),
        }
    }

    fn epoll_mut(&mut self, fd: Fd) -> Result<&mut Epoll, Errno> {
        match self.files.get_mut(fd)? {
            File::Epoll(epoll) => Ok(epoll),
            File::Socket(_) | File::Datagrams(_) => Err(Errno::EINVAL),
        }
    }

    /// A socket's connection as it is now, if it has one.
    fn connection(&self, fd: Fd) -> Result<Option<(Stream, Snapshot)>, Errno> {
        let Some(stream) = self.get(fd)?.stream().copied() else { return Ok(None) };
        Ok(self.shard.snapshot(stream.handle).map(|snapshot| (stream, snapshot)))
    }

    fn stream_mut(&mut self, fd: Fd) -> Option<&mut Stream> {
        self.get_mut(fd).ok()?.stream_mut()
    }

    /// Whether this call of `fd` waits.
    fn blocking(&self, fd: Fd, flags: MsgFlags) -> Result<Blocking, Errno> {
        let once = flags.has(MsgFlags::MSG_DONTWAIT);
        Ok(if once { Blocking::No } else { self.get(fd)?.blocking })
    }

    /// A phase begins; its handle or listener leads back to `fd`.
    fn enter(&mut self, fd: Fd, phase: Phase) {
        match phase {
            Phase::Idle => {}
            Phase::Listening(listener) => {
                self.by_listener.insert(listener, fd);
            }
            Phase::Stream(stream) => {
                self.by_handle.insert(stream.handle, fd);
            }
        }
        if let Ok(socket) = self.get_mut(fd) {
            socket.phase = phase;
        }
    }

    /// The phase ends; its handle or listener is gone.
    fn leave(&mut self, phase: Phase) {
        match phase {
            Phase::Idle => {}
            Phase::Listening(listener) => {
                self.by_listener.remove(&listener);
            }
            Phase::Stream(stream) => {
                self.by_handle.remove(&stream.handle);
            }
        }
    }
}

/// What a call that cannot go on does: wait, or say so.
fn wait_or<T>(blocking: Blocking, wait: Wait, errno: Errno) -> Outcome<T> {
    match blocking {
        Blocking::Yes => Outcome::Block(wait),
        Blocking::No => Outcome::fail(errno),
    }
}

fn blocking_of(flags: SocketFlags) -> Result<Blocking, Errno> {
    let known = SocketFlags::SOCK_NONBLOCK | SocketFlags::SOCK_CLOEXEC;
    if !flags.without(known).is_empty() {
        return Err(Errno::EINVAL);
    }
    let nonblocking = flags.has(SocketFlags::SOCK_NONBLOCK);
    Ok(if nonblocking { Blocking::No } else { Blocking::Yes })
}

fn is_closing(socket: &Socket) -> bool {
    socket.stream().is_some_and(|stream| stream.lingers.is_some())
}

/// The flags that `F_GETFL` tells.
fn file_flags(blocking: Blocking) -> FileFlags {
    match blocking {
        Blocking::Yes => FileFlags::O_RDWR,
        Blocking::No => FileFlags::O_RDWR | FileFlags::O_NONBLOCK,
    }
}
