//! Calls on sockets of `SOCK_DGRAM`.

use whimbrel_stack::{SendTo, Shard, UdpError, UdpHandle};
use whimbrel_udp::{Bind, BindError, QueueError, Received, SocketError};
use whimbrel_wire::Endpoint;

use super::options::counted;
use super::{Datagrams, ReceivedFrom};
use crate::command::{Ioctl, Shut};
use crate::context::Context;
use crate::transfer::Keep;
use crate::{BlockedOn, Errno, Incoming, MsgFlags, Outcome, Outgoing, PollEvents};

/// Calls on the addresses of a socket.
impl Datagrams {
    pub(crate) fn bind(&mut self, cx: &mut Context, at: Endpoint) -> Result<(), Errno> {
        if self.handle.is_some() {
            return Err(Errno::EINVAL);
        }
        self.bind_new(cx, at).map(drop)
    }

    fn bind_new(&mut self, cx: &mut Context, at: Endpoint) -> Result<UdpHandle, Errno> {
        let local = self.local_at(at.addr)?;
        let bind = Bind { local, port: at.port, sharing: self.sharing() };
        let handle = cx.shard.udp_bind(&bind).map_err(errno)?;
        if let Some(bytes) = self.recv_size {
            cx.shard.udp_set_recv_size(handle, counted(bytes));
        }
        if let Some(bytes) = self.send_size {
            cx.shard.udp_set_send_size(handle, counted(bytes));
        }
        self.handle = Some(handle);
        cx.owners.datagrams.insert(handle, self.fd);
        Ok(handle)
    }

    /// The stack's socket, bound to a drawn port if necessary.
    fn bound(&mut self, cx: &mut Context) -> Result<UdpHandle, Errno> {
        match self.handle {
            Some(handle) => Ok(handle),
            None => self.bind_new(cx, Endpoint::new(self.domain.unspecified(), 0)),
        }
    }

    pub(crate) fn connect(&mut self, cx: &mut Context, to: Endpoint) -> Result<(), Errno> {
        let handle = self.bound(cx)?;
        cx.shard.udp_connect(handle, to).map_err(errno)
    }

    pub(crate) fn disconnect(&self, shard: &mut Shard) -> Result<(), Errno> {
        self.handle.map_or(Ok(()), |handle| shard.udp_disconnect(handle).map_err(errno))
    }

    /// As on Linux: only on a connected socket, and without sending anything.
    pub(crate) fn shutdown(&mut self, cx: &mut Context, how: Shut) -> Result<(), Errno> {
        self.peer_name(&cx.shard)?;
        self.shut_read |= how != Shut::Write;
        self.shut_write |= how != Shut::Read;
        cx.polls.notify(self.fd);
        Ok(())
    }

    pub(crate) fn close(&self, cx: &mut Context) {
        if let Some(handle) = self.handle {
            cx.shard.udp_close(handle);
            cx.owners.datagrams.remove(&handle);
        }
    }

    pub(crate) fn local_name(&self, shard: &Shard) -> Endpoint {
        let local = self.handle.and_then(|handle| shard.udp().local(handle));
        local.unwrap_or(Endpoint::new(self.domain.unspecified(), 0))
    }

    pub(crate) fn peer_name(&self, shard: &Shard) -> Result<Endpoint, Errno> {
        self.handle.and_then(|handle| shard.udp().remote(handle)).ok_or(Errno::ENOTCONN)
    }
}

/// Datagrams received and sent.
impl Datagrams {
    pub(crate) fn recv(
        &self,
        shard: &mut Shard,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Outcome<ReceivedFrom> {
        let known = MsgFlags::MSG_PEEK
            | MsgFlags::MSG_TRUNC
            | MsgFlags::MSG_DONTWAIT
            | MsgFlags::MSG_WAITALL
            | MsgFlags::MSG_NOSIGNAL;
        if flags.has(MsgFlags::MSG_ERRQUEUE) {
            return Outcome::fail(Errno::EAGAIN);
        }
        if !flags.without(known).is_empty() {
            return Outcome::fail(Errno::EOPNOTSUPP);
        }
        if let Some(errno) = self.take_error(shard) {
            return Outcome::fail(errno);
        }
        let received = match self.handle {
            Some(handle) if flags.has(MsgFlags::MSG_PEEK) => shard.udp_peek(handle).cloned(),
            Some(handle) => shard.udp_recv(handle),
            None => None,
        };
        match received {
            Some(received) => Outcome::Done(Ok(deliver(received, into, flags))),
            None if self.shut_read => {
                Outcome::Done(Ok(ReceivedFrom { len: 0, from: None, is_truncated: false }))
            }
            None => {
                self.blocking.in_call(flags).wait_or(BlockedOn::Readable(self.fd), Errno::EAGAIN)
            }
        }
    }

    /// Sends a datagram whole or not at all.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Option<Endpoint>,
    ) -> Outcome<usize> {
        let known = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        if !flags.without(known).is_empty() {
            return Outcome::fail(Errno::EOPNOTSUPP);
        }
        if self.shut_write {
            return Outcome::fail(Errno::EPIPE);
        }
        if let Some(errno) = self.take_error(&mut cx.shard) {
            return Outcome::fail(errno);
        }
        let handle = match self.bound(cx) {
            Ok(handle) => handle,
            Err(errno) => return Outcome::fail(errno),
        };
        let to = to.or_else(|| cx.shard.udp().remote(handle));
        let mut send = to.map_or(SendTo::CONNECTED, SendTo::peer);
        send.options = to.map(|to| self.packets.options_to(&to.addr));
        send.segment = (self.packets.segment > 0).then_some(self.packets.segment);
        let len = out.rest.len();
        match cx.shard.udp_send(handle, out.rest.clone(), &send) {
            Ok(()) => {
                out.sent = len;
                out.rest.clear();
                Outcome::Done(Ok(len))
            }
            Err(UdpError::Queue(QueueError::Full { .. })) => {
                self.blocking.in_call(flags).wait_or(BlockedOn::Writable(self.fd), Errno::EAGAIN)
            }
            Err(error) => Outcome::fail(errno(error)),
        }
    }

    /// The path's error, once. Calls do not fail for errors that may pass.
    pub(super) fn take_error(&self, shard: &mut Shard) -> Option<Errno> {
        let handle = self.handle.filter(|handle| shard.udp().has_error(*handle))?;
        shard.udp_take_error(handle).map(path_errno)
    }

    /// Events as `poll` reports them.
    pub(crate) fn ready(&self, shard: &Shard) -> PollEvents {
        let udp = shard.udp();
        let is = |it: bool, events: PollEvents| if it { events } else { PollEvents::NONE };
        let handle = self.handle;
        let waits = handle.is_some_and(|handle| udp.waiting(handle) > 0);
        let readable = is(waits || self.shut_read, PollEvents::POLLIN | PollEvents::POLLRDNORM);
        let writable = is(
            handle.is_none_or(|handle| udp.is_writable(handle)),
            PollEvents::POLLOUT | PollEvents::POLLWRNORM,
        );
        let error = is(handle.is_some_and(|handle| udp.has_error(handle)), PollEvents::POLLERR);
        let ends = is(self.shut_read, PollEvents::POLLRDHUP)
            | is(self.shut_read && self.shut_write, PollEvents::POLLHUP);
        readable | writable | error | ends
    }

    /// `FIONREAD`: bytes of the next datagram.
    pub(crate) fn ioctl(&self, shard: &Shard, request: Ioctl) -> Result<i32, Errno> {
        match request {
            Ioctl::Fionread | Ioctl::Inq => {
                let next = self.handle.and_then(|handle| shard.udp_peek(handle));
                Ok(next.map_or(0, |next| next.data.len() as i32))
            }
            _ => Err(Errno::ENOTTY),
        }
    }
}

/// Copies a datagram to the caller's buffer.
fn deliver(received: Received, into: &mut Incoming, flags: MsgFlags) -> ReceivedFrom {
    let Received { from, mut data, .. } = received;
    let whole = data.len();
    data.truncate(into.most);
    let fitted = data.len();
    *into = Incoming::new(into.most);
    into.take(data, Keep::Bytes);
    let len = if flags.has(MsgFlags::MSG_TRUNC) { whole } else { fitted };
    ReceivedFrom { len, from: Some(from), is_truncated: fitted < whole }
}

/// Error number of a failed call, as on Linux.
fn errno(error: UdpError) -> Errno {
    match error {
        UdpError::NotLocal(_) | UdpError::NoSource(_) => Errno::EADDRNOTAVAIL,
        UdpError::Bind(BindError::InUse(_) | BindError::PortsExhausted { .. }) => Errno::EADDRINUSE,
        // Linux' sockets without SO_BROADCAST.
        UdpError::Broadcast(_) => Errno::EACCES,
        UdpError::NotAPeer(_) | UdpError::Segments { .. } => Errno::EINVAL,
        UdpError::Family(_) => Errno::EAFNOSUPPORT,
        UdpError::NotConnected => Errno::EDESTADDRREQ,
        UdpError::TooLong { .. } => Errno::EMSGSIZE,
        UdpError::Queue(QueueError::Memory) => Errno::ENOBUFS,
        UdpError::Queue(QueueError::Full { .. }) => Errno::EAGAIN,
        // There is no route, or the destination is a group or this host, which a shard does not
        // reach.
        _ => Errno::ENETUNREACH,
    }
}

/// The path's error with Linux' number (`icmp_err_convert`).
fn path_errno(error: SocketError) -> Errno {
    match error {
        SocketError::PortUnreachable => Errno::ECONNREFUSED,
        SocketError::ProtocolUnreachable => Errno::ENOPROTOOPT,
        SocketError::NetworkUnreachable => Errno::ENETUNREACH,
        SocketError::TooBig { .. } => Errno::EMSGSIZE,
        SocketError::ParameterProblem => Errno::EPROTO,
        _ => Errno::EHOSTUNREACH,
    }
}
