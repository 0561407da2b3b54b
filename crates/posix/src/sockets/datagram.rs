//! Calls on sockets of `SOCK_DGRAM`.

use whimbrel_stack::{SendTo, UdpError, UdpHandle};
use whimbrel_udp::{Bind, BindError, Fragmenting, QueueError, Received, SocketError};
use whimbrel_wire::{Endpoint, TrafficClass};

use super::{Shut, Sockets, wait_or};
use crate::datagram::Datagrams;
use crate::descriptor::File;
use crate::socket::Blocking;
use crate::transfer::Keep;
use crate::{
    Domain, Errno, Fd, Incoming, MsgFlags, OptionValue, Outcome, Outgoing, PollEvents, Protocol,
    SocketOption, SocketType, Wait,
};

/// What `recvfrom(2)` says of what it received, beside the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedFrom {
    /// Bytes; with `MSG_TRUNC` as many as the datagram has, whatever fitted.
    pub len: usize,
    /// Who sent them; a stream does not tell.
    pub from: Option<Endpoint>,
    /// Of a datagram some bytes did not fit, and are lost (`MSG_TRUNC` in `msg_flags`).
    pub is_truncated: bool,
}

/// Which descriptors are datagrams', and which socket of the shard is theirs.
impl Sockets {
    pub(super) fn is_datagrams(&self, fd: Fd) -> bool {
        matches!(self.files.get(fd), Ok(File::Datagrams(_)))
    }

    pub(super) fn datagrams(&self, fd: Fd) -> Result<&Datagrams, Errno> {
        match self.files.get(fd)? {
            File::Datagrams(socket) => Ok(socket),
            File::Socket(_) => Err(Errno::EOPNOTSUPP),
            File::Epoll(_) => Err(Errno::ENOTSOCK),
        }
    }

    pub(super) fn datagrams_mut(&mut self, fd: Fd) -> Result<&mut Datagrams, Errno> {
        match self.files.get_mut(fd)? {
            File::Datagrams(socket) => Ok(socket),
            File::Socket(_) => Err(Errno::EOPNOTSUPP),
            File::Epoll(_) => Err(Errno::ENOTSOCK),
        }
    }

    fn udp_handle(&self, fd: Fd) -> Result<Option<UdpHandle>, Errno> {
        Ok(self.datagrams(fd)?.handle)
    }

    /// The socket of the stack, bound to a drawn port first if it is not.
    fn bound(&mut self, fd: Fd) -> Result<UdpHandle, Errno> {
        let socket = self.datagrams(fd)?;
        if let Some(handle) = socket.handle {
            return Ok(handle);
        }
        let anywhere = Endpoint::new(socket.domain.unspecified(), 0);
        self.bind_datagrams(fd, anywhere)?;
        self.udp_handle(fd)?.ok_or(Errno::EINVAL)
    }
}

/// What a socket of datagrams is bound and connected to.
impl Sockets {
    pub(super) fn bind_datagrams(&mut self, fd: Fd, at: Endpoint) -> Result<(), Errno> {
        let socket = self.datagrams(fd)?;
        if socket.handle.is_some() {
            return Err(Errno::EINVAL);
        }
        let local = socket.local_at(at.addr)?;
        let bind = Bind { local, port: at.port, sharing: socket.sharing() };
        let (recv_size, send_size) = (socket.recv_size, socket.send_size);
        let handle = self.shard.udp_bind(&bind).map_err(errno)?;
        if let Some(bytes) = recv_size {
            self.shard.udp_set_recv_size(handle, counted(bytes));
        }
        if let Some(bytes) = send_size {
            self.shard.udp_set_send_size(handle, counted(bytes));
        }
        self.datagrams_mut(fd)?.handle = Some(handle);
        self.by_datagrams.insert(handle, fd);
        Ok(())
    }

    pub(super) fn connect_datagrams(&mut self, fd: Fd, to: Endpoint) -> Result<(), Errno> {
        let handle = self.bound(fd)?;
        self.shard.udp_connect(handle, to).map_err(errno)
    }

    pub(super) fn disconnect_datagrams(&mut self, fd: Fd) -> Result<(), Errno> {
        match self.udp_handle(fd)? {
            Some(handle) => self.shard.udp_disconnect(handle).map_err(errno),
            None => Ok(()),
        }
    }

    /// As on Linux: of a socket that is connected, without anything being sent.
    pub(super) fn shutdown_datagrams(&mut self, fd: Fd, how: Shut) -> Result<(), Errno> {
        let remote = self.udp_handle(fd)?.and_then(|handle| self.shard.udp().remote(handle));
        remote.ok_or(Errno::ENOTCONN)?;
        let socket = self.datagrams_mut(fd)?;
        socket.shut_read |= how != Shut::Write;
        socket.shut_write |= how != Shut::Read;
        self.notify(fd);
        Ok(())
    }

    pub(super) fn datagrams_name(&self, fd: Fd) -> Result<Endpoint, Errno> {
        let socket = self.datagrams(fd)?;
        let local = socket.handle.and_then(|handle| self.shard.udp().local(handle));
        Ok(local.unwrap_or(Endpoint::new(socket.domain.unspecified(), 0)))
    }

    pub(super) fn datagrams_peer(&self, fd: Fd) -> Result<Endpoint, Errno> {
        let handle = self.udp_handle(fd)?;
        handle.and_then(|handle| self.shard.udp().remote(handle)).ok_or(Errno::ENOTCONN)
    }
}

/// Datagrams received and sent.
impl Sockets {
    /// `recvfrom(2)`, and `recvmsg(2)`: as [`Sockets::recv`], and who sent it. One datagram a call: what of
    /// it does not fit is lost.
    pub fn recv_from(
        &mut self,
        fd: Fd,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Outcome<ReceivedFrom> {
        if self.is_datagrams(fd) {
            return self.recv_datagram(fd, into, flags);
        }
        match self.recv(fd, into, flags) {
            Outcome::Done(done) => {
                let stream = |len| ReceivedFrom { len, from: None, is_truncated: false };
                Outcome::Done(done.map(stream))
            }
            Outcome::Block(wait) => Outcome::Block(wait),
        }
    }

    fn recv_datagram(
        &mut self,
        fd: Fd,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Outcome<ReceivedFrom> {
        let known = MsgFlags::MSG_PEEK
            | MsgFlags::MSG_TRUNC
            | MsgFlags::MSG_DONTWAIT
            | MsgFlags::MSG_WAITALL
            | MsgFlags::MSG_NOSIGNAL;
        let (blocking, shut) = match self.datagrams(fd) {
            Ok(_) if flags.has(MsgFlags::MSG_ERRQUEUE) => return Outcome::fail(Errno::EAGAIN),
            Ok(_) if !flags.without(known).is_empty() => return Outcome::fail(Errno::EOPNOTSUPP),
            Ok(socket) => (socket.blocking, socket.shut_read),
            Err(errno) => return Outcome::fail(errno),
        };
        if let Some(errno) = self.take_datagram_error(fd) {
            return Outcome::fail(errno);
        }
        let handle = self.udp_handle(fd).ok().flatten();
        let received = match handle {
            Some(handle) if flags.has(MsgFlags::MSG_PEEK) => self.shard.udp_peek(handle).cloned(),
            Some(handle) => self.shard.udp_recv(handle),
            None => None,
        };
        match received {
            Some(received) => Outcome::Done(Ok(deliver(received, into, flags))),
            None if shut => {
                Outcome::Done(Ok(ReceivedFrom { len: 0, from: None, is_truncated: false }))
            }
            None => {
                let once = flags.has(MsgFlags::MSG_DONTWAIT);
                let blocking = if once { Blocking::No } else { blocking };
                wait_or(blocking, Wait::Readable(fd), Errno::EAGAIN)
            }
        }
    }

    /// A datagram is sent whole or not at all.
    pub(super) fn send_datagram(
        &mut self,
        fd: Fd,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Option<Endpoint>,
    ) -> Outcome<usize> {
        let known = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let (blocking, shut, packets) = match self.datagrams(fd) {
            Ok(_) if !flags.without(known).is_empty() => return Outcome::fail(Errno::EOPNOTSUPP),
            Ok(socket) => (socket.blocking, socket.shut_write, socket.packets),
            Err(errno) => return Outcome::fail(errno),
        };
        if shut {
            return Outcome::fail(Errno::EPIPE);
        }
        if let Some(errno) = self.take_datagram_error(fd) {
            return Outcome::fail(errno);
        }
        let handle = match self.bound(fd) {
            Ok(handle) => handle,
            Err(errno) => return Outcome::fail(errno),
        };
        let to = to.or_else(|| self.shard.udp().remote(handle));
        let options = to.map(|to| packets.options_to(&to.addr));
        let segment = (packets.segment > 0).then_some(packets.segment);
        let send = SendTo { to, segment, options, ..SendTo::CONNECTED };
        let blocking = if flags.has(MsgFlags::MSG_DONTWAIT) { Blocking::No } else { blocking };
        let len = out.rest.len();
        match self.shard.udp_send(handle, out.rest.clone(), &send) {
            Ok(()) => {
                out.sent = len;
                out.rest.clear();
                Outcome::Done(Ok(len))
            }
            Err(UdpError::Queue(QueueError::Full { .. })) => {
                wait_or(blocking, Wait::Writable(fd), Errno::EAGAIN)
            }
            Err(error) => Outcome::fail(errno(error)),
        }
    }

    /// What the path said, once. Calls do not fail for what may pass by itself.
    fn take_datagram_error(&mut self, fd: Fd) -> Option<Errno> {
        let handle = self.udp_handle(fd).ok()??;
        if !self.shard.udp().has_error(handle) {
            return None;
        }
        self.shard.udp_take_error(handle).map(path_errno)
    }

    /// What `poll` says.
    pub(super) fn ready_datagrams(&self, socket: &Datagrams) -> PollEvents {
        let udp = self.shard.udp();
        let is = |it: bool, events: PollEvents| if it { events } else { PollEvents::NONE };
        let handle = socket.handle;
        let waits = handle.is_some_and(|handle| udp.waiting(handle) > 0);
        let readable = is(waits || socket.shut_read, PollEvents::POLLIN | PollEvents::POLLRDNORM);
        let writable = is(
            handle.is_none_or(|handle| udp.is_writable(handle)),
            PollEvents::POLLOUT | PollEvents::POLLWRNORM,
        );
        let error = is(handle.is_some_and(|handle| udp.has_error(handle)), PollEvents::POLLERR);
        let ends = is(socket.shut_read, PollEvents::POLLRDHUP)
            | is(socket.shut_read && socket.shut_write, PollEvents::POLLHUP);
        readable | writable | error | ends
    }

    /// `FIONREAD`: bytes of the next datagram.
    pub(super) fn next_datagram_len(&self, fd: Fd) -> Result<i32, Errno> {
        let handle = self.udp_handle(fd)?;
        let next = handle.and_then(|handle| self.shard.udp_peek(handle));
        Ok(next.map_or(0, |next| next.data.len() as i32))
    }
}

/// Options of a socket of datagrams.
impl Sockets {
    pub(super) fn get_datagrams_option(
        &mut self,
        fd: Fd,
        option: SocketOption,
    ) -> Result<OptionValue, Errno> {
        if option == SocketOption::Error {
            let error = self.take_datagram_error(fd);
            return Ok(OptionValue::Int(error.map_or(0, Errno::number)));
        }
        let usual = self.shard.tunables().hop_limit;
        let socket = self.datagrams(fd)?;
        let (packets, v6) = (&socket.packets, socket.domain == Domain::Inet6);
        let size = |asked: Option<u32>| counted(asked.unwrap_or(USUAL_BUFFER)) as i32;
        let value = match option {
            SocketOption::Type => SocketType::Dgram.number(),
            SocketOption::ProtocolOf => Protocol::Udp.number(),
            SocketOption::DomainOf => socket.domain.number(),
            SocketOption::AcceptConn => 0,
            SocketOption::ReuseAddr => socket.reuse_addr.into(),
            SocketOption::RecvBuffer => size(socket.recv_size),
            SocketOption::SendBuffer => size(socket.send_size),
            SocketOption::V6Only if v6 => socket.v6_only.into(),
            SocketOption::Ttl => packets.ttl.unwrap_or(usual).into(),
            SocketOption::Tos => packets.tos.0.into(),
            SocketOption::UnicastHops if v6 => packets.hop_limit.unwrap_or(usual).into(),
            SocketOption::TrafficClass if v6 => packets.class.0.into(),
            SocketOption::MtuDiscover => match packets.fragmenting {
                Fragmenting::Allowed => PMTUDISC_WANT,
                Fragmenting::Refused => PMTUDISC_DO,
            },
            SocketOption::Segment => packets.segment.into(),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(OptionValue::Int(value))
    }

    pub(super) fn set_datagrams_option(
        &mut self,
        fd: Fd,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let value = value.as_int().ok_or(Errno::EINVAL)?;
        let socket = self.datagrams_mut(fd)?;
        let v6 = socket.domain == Domain::Inet6;
        match option {
            SocketOption::ReuseAddr => socket.reuse_addr = value != 0,
            SocketOption::V6Only if v6 && socket.handle.is_some() => return Err(Errno::EINVAL),
            SocketOption::V6Only if v6 => socket.v6_only = value != 0,
            SocketOption::RecvBuffer => {
                socket.recv_size = Some(value.cast_unsigned());
                if let Some(handle) = socket.handle {
                    self.shard.udp_set_recv_size(handle, counted(value.cast_unsigned()));
                }
            }
            SocketOption::SendBuffer => {
                socket.send_size = Some(value.cast_unsigned());
                if let Some(handle) = socket.handle {
                    self.shard.udp_set_send_size(handle, counted(value.cast_unsigned()));
                }
            }
            SocketOption::Ttl => socket.packets.ttl = hops(value)?,
            SocketOption::UnicastHops if v6 => socket.packets.hop_limit = hops(value)?,
            SocketOption::Tos => socket.packets.tos = TrafficClass(value as u8),
            SocketOption::TrafficClass if v6 => {
                let class = u8::try_from(value.max(0)).map_err(|_| Errno::EINVAL)?;
                socket.packets.class = TrafficClass(class);
            }
            SocketOption::Segment => {
                socket.packets.segment = u16::try_from(value).map_err(|_| Errno::EINVAL)?;
            }
            SocketOption::MtuDiscover => {
                socket.packets.fragmenting = match value {
                    PMTUDISC_WANT => Fragmenting::Allowed,
                    PMTUDISC_DO => Fragmenting::Refused,
                    _ => return Err(Errno::EINVAL),
                };
            }
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }
}

/// Puts a datagram where the caller wants it.
fn deliver(received: Received, into: &mut Incoming, flags: MsgFlags) -> ReceivedFrom {
    let Received { from, mut data, .. } = received;
    let whole = data.len();
    data.truncate(into.most);
    let fitted = data.len();
    *into = Incoming::new(into.most);
    into.take(data, Keep::Octets);
    let len = if flags.has(MsgFlags::MSG_TRUNC) { whole } else { fitted };
    ReceivedFrom { len, from: Some(from), is_truncated: fitted < whole }
}

fn hops(value: i32) -> Result<Option<u8>, Errno> {
    match value {
        // Linux: the usual one again.
        -1 => Ok(None),
        1..=255 => Ok(Some(value as u8)),
        _ => Err(Errno::EINVAL),
    }
}

/// What a size that was asked for means: as on Linux twice as much, since what each datagram takes beside
/// its bytes counts.
const fn counted(asked: u32) -> usize {
    asked.saturating_mul(2) as usize
}

/// Why a call failed, as Linux' own would.
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
        // No route, a group of hosts, or this host itself, to which a shard has no way.
        _ => Errno::ENETUNREACH,
    }
}

/// What the path said, as Linux tells it (`icmp_err_convert`).
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

/// Linux' `net.core.rmem_default`, of which half counts as bytes.
const USUAL_BUFFER: u32 = 212_992 / 2;
/// `IP_PMTUDISC_WANT`: datagrams larger than the path's MTU leave in fragments.
const PMTUDISC_WANT: i32 = 1;
/// `IP_PMTUDISC_DO`: they are refused.
const PMTUDISC_DO: i32 = 2;
