//! Calls on one socket, by its type.

use alloc::boxed::Box;

use whimbrel_wire::Endpoint;

use super::{Fcntl, Ioctl, ReceivedFrom, Shut, Sockets};
use crate::blocking::Blocking;
use crate::datagram::Datagrams;
use crate::descriptor::{AnySocket, File};
use crate::socket::Socket;
use crate::{
    Domain, Errno, Fd, FileFlags, Incoming, MsgFlags, OptionValue, Outcome, Outgoing, Protocol,
    SocketFlags, SocketOption, SocketType, TcpInfo,
};

/// Connections, from `socket` to `close`.
impl Sockets {
    /// `socket(2)`: the lowest free descriptor.
    pub fn socket(
        &mut self,
        domain: Domain,
        kind: SocketType,
        flags: SocketFlags,
        protocol: Protocol,
    ) -> Result<Fd, Errno> {
        let blocking = Blocking::of(flags)?;
        match (kind, protocol) {
            (SocketType::Stream, Protocol::Default | Protocol::Tcp) => {
                let socket = |fd| AnySocket::Stream(Box::new(Socket::new(fd, domain, blocking)));
                self.files.open(|fd| File::Socket(socket(fd)))
            }
            (SocketType::Dgram, Protocol::Default | Protocol::Udp) => {
                let socket = |fd| AnySocket::Datagrams(Datagrams::new(fd, domain, blocking));
                self.files.open(|fd| File::Socket(socket(fd)))
            }
            (SocketType::Raw, _) => Err(Errno::ESOCKTNOSUPPORT),
            _ => Err(Errno::EPROTONOSUPPORT),
        }
    }

    /// `connect(2)`. Non-blocking: `EINPROGRESS`, then `EALREADY`; once established, the first call
    /// returns 0 and later ones `EISCONN`. A failure is reported once, by the next call or by
    /// `SO_ERROR`; then the socket can connect again.
    pub fn connect(&mut self, fd: Fd, to: Endpoint) -> Outcome<()> {
        let cx = &mut self.cx;
        self.files.socket_mut(fd).map_or_else(Outcome::fail, |socket| match socket {
            AnySocket::Stream(socket) => socket.connect(cx, to),
            AnySocket::Datagrams(socket) => Outcome::Done(socket.connect(cx, to)),
        })
    }

    /// `connect(2)` to `AF_UNSPEC`: resets the connection or ends listening, so that the socket can
    /// be used again.
    pub fn disconnect(&mut self, fd: Fd) -> Result<(), Errno> {
        match self.files.socket_mut(fd)? {
            AnySocket::Stream(socket) => {
                socket.disconnect(&mut self.cx);
                Ok(())
            }
            AnySocket::Datagrams(socket) => socket.disconnect(&mut self.cx.shard),
        }
    }

    /// `shutdown(2)`. Shutting down reading on a listener ends listening; any shutdown ends an
    /// attempt to open that has not received the peer's SYN.
    pub fn shutdown(&mut self, fd: Fd, how: Shut) -> Result<(), Errno> {
        match self.files.socket_mut(fd)? {
            AnySocket::Stream(socket) => socket.shutdown(&mut self.cx, how),
            AnySocket::Datagrams(socket) => socket.shutdown(&mut self.cx, how),
        }
    }

    /// `close(2)`. With `SO_LINGER` it blocks, also on a non-blocking socket, until all data is
    /// acknowledged or the time is over; the number is free only then.
    pub fn close(&mut self, fd: Fd) -> Outcome<()> {
        let Some(file) = self.files.entry_mut(fd) else { return Outcome::fail(Errno::EBADF) };
        match file {
            File::Socket(AnySocket::Stream(socket)) => {
                if let Some(wait) = socket.close(&mut self.cx) {
                    return Outcome::Block(wait);
                }
            }
            File::Socket(AnySocket::Datagrams(socket)) => socket.close(&mut self.cx),
            File::Epoll => self.cx.polls.close(fd),
        }
        self.cx.polls.unwatch(fd);
        self.files.close(fd);
        Outcome::Done(Ok(()))
    }
}

/// Data sent and received.
impl Sockets {
    /// `send(2)`; without flags `write(2)` and `writev(2)`; `sendto` and `sendmsg` ignore their
    /// address on a stream. The result is the number of bytes taken: all, unless the socket is
    /// non-blocking. With `MSG_OOB` the last byte is urgent. `EPIPE` would come with SIGPIPE unless
    /// `flags` has `MSG_NOSIGNAL`, but there are no signals here. For `MSG_FASTOPEN` see
    /// [`Sockets::send_to`].
    pub fn send(&mut self, fd: Fd, out: &mut Outgoing, flags: MsgFlags) -> Outcome<usize> {
        self.send_to(fd, out, flags, None)
    }

    /// `sendto(2)`, and `sendmsg(2)` with an address: the destination of a datagram. On a stream
    /// the address counts only with `MSG_FASTOPEN`: the call then connects, with data on the SYN if
    /// the peer granted a cookie before. It blocks until connected. A non-blocking socket returns
    /// the number of bytes on the SYN; if there are none, it returns `EINPROGRESS`, and the caller
    /// sends again once it is writable.
    ///
    /// Data on a SYN may reach the peer's application twice (RFC 7413 6.1).
    pub fn send_to(
        &mut self,
        fd: Fd,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Option<Endpoint>,
    ) -> Outcome<usize> {
        // Refused before the descriptor is checked.
        let client = self.cx.shard.tunables().fast_open_client;
        if flags.has(MsgFlags::MSG_FASTOPEN) && !client && !out.opened {
            return Outcome::fail(Errno::EOPNOTSUPP);
        }
        let cx = &mut self.cx;
        self.files.socket_mut(fd).map_or_else(Outcome::fail, |socket| match socket {
            AnySocket::Stream(socket) => socket.send_to(cx, out, flags, to),
            AnySocket::Datagrams(socket) => socket.send(cx, out, flags, to),
        })
    }

    /// `sendto(2)` and `sendmsg(2)` of FreeBSD on a stream: an unconnected socket connects to `to`
    /// with any `flags`; a connected one ignores the address. With `TCP_FASTOPEN` set the SYN
    /// requests a cookie, or carries data if the peer granted one before. The rest waits in the
    /// send buffer until the connection is open, and counts as sent: the call blocks only for room.
    pub fn send_connecting(
        &mut self,
        fd: Fd,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Endpoint,
    ) -> Outcome<usize> {
        match self.files.socket_mut(fd) {
            Ok(AnySocket::Stream(socket)) if !flags.has(MsgFlags::MSG_FASTOPEN) => {
                socket.send_connecting(&mut self.cx, out, flags, to)
            }
            _ => self.send_to(fd, out, flags, Some(to)),
        }
    }

    /// `recv(2)`; without flags `read(2)` and `readv(2)`. `recvfrom` and `recvmsg` return no
    /// address on a stream. Received bytes are in `into`; the result is their number, 0 at the end
    /// of the stream.
    pub fn recv(&mut self, fd: Fd, into: &mut Incoming, flags: MsgFlags) -> Outcome<usize> {
        self.recv_from(fd, into, flags).map(|received| received.len)
    }

    /// `recvfrom(2)`, and `recvmsg(2)`: as [`Sockets::recv`], with the sender. Each call returns
    /// one datagram; bytes that do not fit are lost.
    pub fn recv_from(
        &mut self,
        fd: Fd,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Outcome<ReceivedFrom> {
        let cx = &mut self.cx;
        let stream = |len| ReceivedFrom { len, from: None, is_truncated: false };
        self.files.socket_mut(fd).map_or_else(Outcome::fail, |socket| match socket {
            AnySocket::Stream(socket) => socket.recv(cx, into, flags).map(stream),
            AnySocket::Datagrams(socket) => socket.recv(&mut cx.shard, into, flags),
        })
    }
}

/// Options, flags and names.
impl Sockets {
    /// `getsockopt(2)`. Buffers are reported at twice their bytes, as on Linux, which counts its
    /// own overhead, unless `Tunables::told_buffers` says otherwise.
    pub fn getsockopt(&mut self, fd: Fd, option: SocketOption) -> Result<OptionValue, Errno> {
        match self.files.socket_mut(fd)? {
            AnySocket::Stream(socket) => socket.getsockopt(&mut self.cx.shard, option),
            AnySocket::Datagrams(socket) => socket.getsockopt(&mut self.cx.shard, option),
        }
    }

    /// `setsockopt(2)`. `ENOPROTOOPT` for options without effect. Accepted connections inherit a
    /// listener's options.
    pub fn setsockopt(
        &mut self,
        fd: Fd,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        match self.files.socket_mut(fd)? {
            AnySocket::Stream(socket) => socket.setsockopt(&mut self.cx, option, value),
            AnySocket::Datagrams(socket) => socket.setsockopt(&mut self.cx.shard, option, value),
        }
    }

    /// `TCP_INFO`, as a struct.
    pub fn tcp_info(&self, fd: Fd) -> Result<TcpInfo, Errno> {
        Ok(self.files.stream(fd)?.tcp_info(&self.cx.shard))
    }

    /// `fcntl(2)`. Of the flags only `O_NONBLOCK` can be set; the access mode is ignored, others
    /// are refused.
    pub fn fcntl(&mut self, fd: Fd, command: Fcntl) -> Result<FileFlags, Errno> {
        if let File::Epoll = self.files.get(fd)? {
            return match command {
                Fcntl::GetFl => Ok(FileFlags::O_RDWR),
                Fcntl::SetFl(_) => Err(Errno::EINVAL),
            };
        }
        let blocking = match self.files.socket_mut(fd)? {
            AnySocket::Stream(socket) => &mut socket.blocking,
            AnySocket::Datagrams(socket) => &mut socket.blocking,
        };
        if let Fcntl::SetFl(flags) = command {
            let ignored = FileFlags::O_WRONLY | FileFlags::O_RDWR;
            if !flags.without(ignored | FileFlags::O_NONBLOCK).is_empty() {
                return Err(Errno::EINVAL);
            }
            *blocking = Blocking::unless(flags.has(FileFlags::O_NONBLOCK));
            return Ok(FileFlags::NONE);
        }
        Ok(blocking.file_flags())
    }

    /// `ioctl(2)` on a stream: ENOTTY for requests that do not concern sockets.
    pub fn ioctl(&self, fd: Fd, request: Ioctl) -> Result<i32, Errno> {
        match self.files.get(fd)? {
            File::Epoll => Err(Errno::ENOTTY),
            File::Socket(AnySocket::Stream(socket)) => socket.ioctl(&self.cx.shard, request),
            File::Socket(AnySocket::Datagrams(socket)) => socket.ioctl(&self.cx.shard, request),
        }
    }

    /// `getsockname(2)`: unspecified with port 0 before the socket is bound.
    pub fn getsockname(&self, fd: Fd) -> Result<Endpoint, Errno> {
        Ok(match self.files.socket(fd)? {
            AnySocket::Stream(socket) => socket.local_name(&self.cx.shard),
            AnySocket::Datagrams(socket) => socket.local_name(&self.cx.shard),
        })
    }

    /// `getpeername(2)`, while there is a connection.
    pub fn getpeername(&self, fd: Fd) -> Result<Endpoint, Errno> {
        match self.files.socket(fd)? {
            AnySocket::Stream(socket) => socket.peer_name(&self.cx.shard),
            AnySocket::Datagrams(socket) => socket.peer_name(&self.cx.shard),
        }
    }
}
