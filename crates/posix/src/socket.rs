//! One stream socket: what was asked of it, the connection or listener it has, and the calls on it.

mod close;
mod connect;
mod fast_open;
mod getsockopt;
mod names;
mod open;
mod readiness;
mod receive;
mod send;
mod setsockopt;
mod urgent;

use alloc::boxed::Box;

use whimbrel_base::{Instant, Key};
use whimbrel_stack::{Handle, ListenerId, Shard};
use whimbrel_tcp::conn::{Snapshot, SocketOptions};
use whimbrel_wire::{Address, Endpoint, SeqNum};

use crate::blocking::Blocking;
use crate::context::Context;
use crate::{Domain, Errno, Fd, Linger};

/// What a socket descriptor stands for.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Its own descriptor.
    pub(crate) fd: Fd,
    pub(crate) domain: Domain,
    pub(crate) blocking: Blocking,
    pub(crate) settings: Settings,
    /// Where it is bound, the port drawn if none was given; port 0 if `connect` is to draw it.
    pub(crate) local: Option<Endpoint>,
    /// Where `connect` is to lead once something is sent (`TCP_FASTOPEN_CONNECT`); few sockets have it.
    pub(crate) deferred: Option<Box<Endpoint>>,
    /// The keys of a listener's cookies (`TCP_FASTOPEN_KEY`); few sockets have their own.
    pub(crate) fast_open_keys: Option<Box<FastOpenKeyPair>>,
    /// What `SO_ERROR` tells, once.
    pub(crate) error: Option<Errno>,
    pub(crate) phase: Phase,
}

/// What a socket is just now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// Neither of the others.
    Idle,
    Listening(ListenerId),
    Stream(Stream),
}

/// A socket with a connection, or one that tries to have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) handle: Handle,
    pub(crate) progress: Progress,
    /// `connect` drew the port: it goes with the connection.
    pub(crate) drew_port: bool,
    /// Where the socket was bound before that: nowhere, or at an address without a port.
    pub(crate) bound: Option<Endpoint>,
    pub(crate) shut_read: bool,
    pub(crate) shut_write: bool,
    /// Why the connection ended was put into `Socket::error`.
    pub(crate) told: bool,
    /// A segment that is not full waits, because of `MSG_MORE` or `TCP_CORK`.
    pub(crate) corked: bool,
    /// The last byte of urgent data, once the stream was read beyond it.
    pub(crate) oob: Option<u8>,
    /// The end of the urgent data whose last byte `MSG_OOB` read.
    pub(crate) oob_read: Option<SeqNum>,
    /// `close` was called, and lingers until then.
    pub(crate) lingers: Option<Instant>,
}

/// How far `connect` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It was called, and nobody heard how it went.
    Connecting,
    /// It said so, or `accept` did.
    Connected,
}

/// What `setsockopt` set, for the connection that is there or is to come.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Settings {
    pub(crate) reuse_addr: bool,
    pub(crate) v6_only: bool,
    pub(crate) reuse_port: bool,
    /// `bind` to port 0 leaves the port to `connect`.
    pub(crate) no_port: bool,
    /// The last byte of urgent data stays in the stream.
    pub(crate) oob_inline: bool,
    pub(crate) linger: Linger,
    /// As a listener: how many connections may be in a handshake of Fast Open (`TCP_FASTOPEN`).
    pub(crate) fast_open: u32,
    /// `connect` waits for text that the SYN is to bring.
    pub(crate) fast_open_connect: bool,
    /// What the stack beneath is told.
    pub(crate) options: SocketOptions,
}

/// Under which cookies are granted, and which is taken too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastOpenKeyPair {
    pub(crate) primary: Key,
    pub(crate) backup: Option<Key>,
}

impl Socket {
    pub(crate) fn new(fd: Fd, domain: Domain, blocking: Blocking) -> Self {
        Self {
            fd,
            domain,
            blocking,
            settings: Settings::default(),
            local: None,
            deferred: None,
            fast_open_keys: None,
            error: None,
            phase: Phase::Idle,
        }
    }

    pub(crate) const fn stream(&self) -> Option<&Stream> {
        match &self.phase {
            Phase::Stream(stream) => Some(stream),
            Phase::Idle | Phase::Listening(_) => None,
        }
    }

    pub(crate) const fn stream_mut(&mut self) -> Option<&mut Stream> {
        match &mut self.phase {
            Phase::Stream(stream) => Some(stream),
            Phase::Idle | Phase::Listening(_) => None,
        }
    }

    /// True once `close` was called and lingers: then no other call finds the socket.
    pub(crate) fn is_closing(&self) -> bool {
        self.stream().is_some_and(|stream| stream.lingers.is_some())
    }

    /// Its connection as it is now, if it has one.
    pub(crate) fn connection(&self, shard: &Shard) -> Option<(Stream, Snapshot)> {
        let stream = self.stream()?;
        shard.snapshot(stream.handle).map(|snapshot| (*stream, snapshot))
    }

    /// A phase begins; its handle or listener leads back to the socket.
    pub(crate) fn enter(&mut self, cx: &mut Context, phase: Phase) {
        match phase {
            Phase::Idle => {}
            Phase::Listening(listener) => {
                cx.owners.listeners.insert(listener, self.fd);
            }
            Phase::Stream(stream) => {
                cx.owners.connections.insert(stream.handle, self.fd);
            }
        }
        self.phase = phase;
    }

    /// The socket is bound to `at` from now on.
    pub(crate) fn occupy(&mut self, cx: &mut Context, at: Endpoint) {
        self.local = Some(at);
        cx.ports.bind(at.port, self.fd);
    }

    /// Checks that the address can be one of this socket's; IPv6 sockets take IPv4 in mapped form.
    pub(crate) fn check_family(&self, addr: &Address, if_v6: Errno) -> Result<(), Errno> {
        match (self.domain, addr.is_v4()) {
            (Domain::Inet, true) | (Domain::Inet6, false) => Ok(()),
            (Domain::Inet, false) => Err(Errno::EAFNOSUPPORT),
            (Domain::Inet6, true) if self.settings.v6_only => Err(if_v6),
            (Domain::Inet6, true) => Ok(()),
        }
    }
}

impl Phase {
    /// The phase ends; its handle or listener is gone.
    pub(crate) fn leave(self, cx: &mut Context) {
        match self {
            Self::Idle => {}
            Self::Listening(listener) => {
                cx.owners.listeners.remove(&listener);
            }
            Self::Stream(stream) => {
                cx.owners.connections.remove(&stream.handle);
            }
        }
    }
}

impl Stream {
    pub(crate) const fn new(handle: Handle, progress: Progress) -> Self {
        Self {
            handle,
            progress,
            drew_port: false,
            bound: None,
            shut_read: false,
            shut_write: false,
            told: false,
            corked: false,
            oob: None,
            oob_read: None,
            lingers: None,
        }
    }
}
