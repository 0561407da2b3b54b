//! Fast Open as Linux has it: `MSG_FASTOPEN`, `TCP_FASTOPEN`, `TCP_FASTOPEN_KEY` and
//! `TCP_FASTOPEN_CONNECT`; and a client's as FreeBSD has it: `TCP_FASTOPEN`, then `sendto`.

use alloc::boxed::Box;

use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Key;
use whimbrel_stack::Handle;
use whimbrel_wire::Endpoint;

use super::bind::check_family;
use super::readiness::is_opening;
use super::{Sockets, wait_or};
use crate::socket::{Blocking, FastOpenKeyPair, Phase, Socket};
use crate::{Errno, Fd, MsgFlags, Outcome, Outgoing, SocketOption, Wait};

/// Whether `connect` put the SYN off until text is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deferral {
    /// Nothing yet: the SYN waits for text.
    Deferred,
    /// The SYN is on its way.
    Begun,
}

impl Sockets {
    /// `sendto(2)`, and `sendmsg(2)` with an address: whom a datagram is for. Of a stream it counts with
    /// `MSG_FASTOPEN` alone: the call
    /// then connects, and the SYN brings what it can of the bytes, if the peer granted a cookie
    /// before. It blocks until connected. A socket that does not block returns how many bytes the SYN
    /// brings; if none, `EINPROGRESS`, and they are to be sent again once it is writable.
    ///
    /// What a SYN brings may come to the peer twice (RFC 7413 6.1).
    pub fn send_to(
        &mut self,
        fd: Fd,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Option<Endpoint>,
    ) -> Outcome<usize> {
        if self.is_datagrams(fd) {
            return self.send_datagram(fd, out, flags, to);
        }
        let deferred = self.get(fd).ok().and_then(|socket| socket.deferred.as_deref().copied());
        let asked = flags.has(MsgFlags::MSG_FASTOPEN);
        if !asked && deferred.is_none() && !out.opened {
            return self.send_on(fd, out, flags);
        }
        if !out.opened {
            let opened = self.open_fast(fd, out, deferred.or(to));
            let blocking = opened.and_then(|()| self.blocking(fd, flags));
            match blocking {
                Ok(Blocking::Yes) => {}
                Ok(Blocking::No) if out.sent > 0 => return Outcome::Done(Ok(out.sent)),
                Ok(Blocking::No) => return Outcome::fail(Errno::EINPROGRESS),
                Err(errno) => return Outcome::fail(errno),
            }
        }
        match self.go_on_connecting(fd, Errno::EINPROGRESS) {
            Outcome::Done(Ok(())) => self.send_on(fd, out, flags.without(MsgFlags::MSG_FASTOPEN)),
            Outcome::Done(Err(errno)) => Outcome::fail(errno),
            Outcome::Block(wait) => Outcome::Block(wait),
        }
    }

    /// `sendto(2)` and `sendmsg(2)` as FreeBSD has them for a stream: a socket that is not connected connects to
    /// `to`, whatever `flags` are; the address of one that is counts for nothing. With `TCP_FASTOPEN` set the
    /// SYN asks for a cookie, or brings what it can of the bytes if the peer granted one before. What the
    /// SYN does not bring waits in the send buffer until the connection is open, and counts as sent: the
    /// call blocks for room alone.
    pub fn send_connecting(
        &mut self,
        fd: Fd,
        out: &mut Outgoing,
        flags: MsgFlags,
        to: Endpoint,
    ) -> Outcome<usize> {
        if self.is_datagrams(fd) || flags.has(MsgFlags::MSG_FASTOPEN) {
            return self.send_to(fd, out, flags, Some(to));
        }
        let begun = match self.get(fd).map(|socket| socket.phase) {
            Ok(Phase::Idle) if !out.opened => self.connect_with_text(fd, out, to),
            Ok(_) => Ok(()),
            Err(errno) => Err(errno),
        };
        if let Err(errno) = begun {
            return Outcome::fail(errno);
        }
        match self.connection(fd) {
            Ok(Some((stream, snapshot))) if is_opening(&snapshot) => {
                self.fill_before_opening(fd, stream.handle, out, flags)
            }
            _ => self.send_on(fd, out, flags),
        }
    }

    /// Connects by a SYN that brings what it can of `out`, or by a plain one.
    fn connect_with_text(&mut self, fd: Fd, out: &mut Outgoing, to: Endpoint) -> Result<(), Errno> {
        let is_fast =
            self.get(fd)?.settings.fast_open > 0 && self.shard.tunables().fast_open_client;
        let before = out.rest.len();
        self.start_connecting(fd, to, is_fast.then_some(&mut out.rest))?;
        out.sent += before - out.rest.len();
        out.opened = true;
        Ok(())
    }

    fn fill_before_opening(
        &mut self,
        fd: Fd,
        handle: Handle,
        out: &mut Outgoing,
        flags: MsgFlags,
    ) -> Outcome<usize> {
        if let Ok(taken) = self.shard.send(handle, &mut out.rest) {
            out.sent += taken;
        }
        match self.blocking(fd, flags) {
            Err(errno) => Outcome::fail(errno),
            Ok(_) if out.rest.is_empty() => Outcome::Done(Ok(out.sent)),
            Ok(Blocking::No) if out.sent > 0 => Outcome::Done(Ok(out.sent)),
            Ok(blocking) => wait_or(blocking, Wait::Writable(fd), Errno::EAGAIN),
        }
    }

    fn open_fast(&mut self, fd: Fd, out: &mut Outgoing, to: Option<Endpoint>) -> Result<(), Errno> {
        if !self.shard.tunables().fast_open_client {
            return Err(Errno::EOPNOTSUPP);
        }
        match self.get(fd)?.phase {
            Phase::Idle => {}
            Phase::Stream(_) if self.is_opening(fd) => return Err(Errno::EALREADY),
            Phase::Stream(_) | Phase::Listening(_) => return Err(Errno::EISCONN),
        }
        let to = to.ok_or(Errno::EINVAL)?;
        self.get_mut(fd)?.deferred = None;
        let before = out.rest.len();
        self.start_connecting(fd, to, Some(&mut out.rest))?;
        out.sent += before - out.rest.len();
        out.opened = true;
        Ok(())
    }

    /// Connects now, unless the SYN is to wait for text.
    pub(super) fn defer_connecting(&mut self, fd: Fd, to: Endpoint) -> Result<Deferral, Errno> {
        let socket = self.get(fd)?;
        if socket.deferred.is_some() {
            return Err(Errno::EISCONN);
        }
        if !socket.settings.fast_open_connect {
            return self.start_connecting(fd, to, None).map(|()| Deferral::Begun);
        }
        check_family(socket, &to.addr, Errno::ENETUNREACH)?;
        if self.shard.knows_fast_open_cookie(socket.local.map(|local| local.addr), &to) {
            self.get_mut(fd)?.deferred = Some(Box::new(to));
            self.notify(fd);
            return Ok(Deferral::Deferred);
        }
        // The SYN asks for a cookie, so that the next can bring text.
        self.start_connecting(fd, to, Some(&mut Bytes::new())).map(|()| Deferral::Begun)
    }

    /// `setsockopt`, if the option is one of Fast Open's.
    pub(super) fn set_fast_open(
        &mut self,
        fd: Fd,
        option: SocketOption,
        value: i32,
    ) -> Result<bool, Errno> {
        let client = self.shard.tunables().fast_open_client;
        let socket = self.get_mut(fd)?;
        match (option, &socket.phase) {
            (SocketOption::FastOpen, Phase::Stream(_)) => return Err(Errno::EINVAL),
            (SocketOption::FastOpen, phase) => {
                let listener = match phase {
                    Phase::Listening(listener) => Some(*listener),
                    _ => None,
                };
                let pending = u32::try_from(value).map_err(|_| Errno::EINVAL)?.min(MOST_PENDING);
                socket.settings.fast_open = pending;
                if let Some(listener) = listener {
                    self.shard.set_fast_open(listener, pending);
                }
            }
            (SocketOption::FastOpenConnect, _) if !matches!(value, 0 | 1) => {
                return Err(Errno::EINVAL);
            }
            (SocketOption::FastOpenConnect, _) if !client => return Err(Errno::EOPNOTSUPP),
            (SocketOption::FastOpenConnect, Phase::Idle) => {
                socket.settings.fast_open_connect = value == 1;
            }
            (SocketOption::FastOpenConnect, _) => return Err(Errno::EINVAL),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `TCP_FASTOPEN_KEY`.
impl Sockets {
    /// One key of 16 bytes, or two: cookies are granted under the first, and taken under both. A
    /// listener takes them up at once, any other socket when it listens. What it accepts has none.
    pub(super) fn set_fast_open_keys(&mut self, fd: Fd, bytes: &[u8]) -> Result<(), Errno> {
        let (primary, backup) = match bytes.as_chunks() {
            ([primary], []) => (Key(*primary), None),
            ([primary, backup], []) => (Key(*primary), Some(Key(*backup))),
            _ => return Err(Errno::EINVAL),
        };
        let socket = self.get_mut(fd)?;
        socket.fast_open_keys = Some(Box::new(FastOpenKeyPair { primary, backup }));
        if let Phase::Listening(listener) = socket.phase {
            self.shard.set_fast_open_keys(listener, &primary, backup.as_ref());
        }
        Ok(())
    }
}

/// What was set; nothing for a socket that has the stack's key, which is not told.
pub(super) fn fast_open_keys(socket: &Socket) -> Vec<u8> {
    let keys = socket.fast_open_keys.as_deref();
    let both = keys.into_iter().flat_map(|keys| [Some(keys.primary), keys.backup]);
    both.flatten().flat_map(|key| key.0).collect()
}

/// `getsockopt`, if the option is one of Fast Open's.
pub(super) fn fast_open_setting(socket: &Socket, option: SocketOption) -> Option<i32> {
    match option {
        SocketOption::FastOpen => Some(socket.settings.fast_open.cast_signed()),
        SocketOption::FastOpenConnect => Some(i32::from(socket.settings.fast_open_connect)),
        _ => None,
    }
}

/// The most handshakes that may be under way with text, as Linux' `net.core.somaxconn`.
const MOST_PENDING: u32 = 4_096;
