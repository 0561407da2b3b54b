//! One stream socket: its settings, its connection or listener, and its calls.

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

/// Socket behind a descriptor.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Its own descriptor.
    pub(crate) fd: Fd,
    pub(crate) domain: Domain,
    pub(crate) blocking: Blocking,
    pub(crate) settings: Settings,
    /// Bound address, with the drawn port if none was given; port 0 if `connect` is to draw it.
    pub(crate) local: Option<Endpoint>,
    /// Destination of a `connect` that waits for the first data (`TCP_FASTOPEN_CONNECT`); few
    /// sockets have it.
    pub(crate) deferred: Option<Box<Endpoint>>,
    /// Cookie keys of a listener (`TCP_FASTOPEN_KEY`); few sockets have their own.
    pub(crate) fast_open_keys: Option<Box<FastOpenKeyPair>>,
    /// Error that `SO_ERROR` returns, once.
    pub(crate) error: Option<Errno>,
    pub(crate) phase: Phase,
}

/// State of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// Neither listening nor connected.
    Idle,
    Listening(ListenerId),
    Stream(Stream),
}

/// A socket with a connection or an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) handle: Handle,
    pub(crate) progress: Progress,
    /// True if `connect` drew the port, which is then released with the connection.
    pub(crate) drew_port: bool,
    /// Address bound before: none, or one without a port.
    pub(crate) bound: Option<Endpoint>,
    pub(crate) shut_read: bool,
    pub(crate) shut_write: bool,
    /// True once the connection's error was copied to `Socket::error`.
    pub(crate) told: bool,
    /// True if a partial segment waits because of `MSG_MORE` or `TCP_CORK`.
    pub(crate) corked: bool,
    /// Last byte of urgent data, once the stream was read beyond it.
    pub(crate) oob: Option<u8>,
    /// End of the urgent data whose last byte `MSG_OOB` read.
    pub(crate) oob_read: Option<SeqNum>,
    /// Time until which `close` lingers, once called.
    pub(crate) lingers: Option<Instant>,
}

/// Progress of `connect`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It was called, and its result was not reported yet.
    Connecting,
    /// `connect` or `accept` has reported the connection.
    Connected,
}

/// Options set by `setsockopt`, for the present or a future connection.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Settings {
    pub(crate) reuse_addr: bool,
    pub(crate) v6_only: bool,
    pub(crate) reuse_port: bool,
    /// True if `bind` to port 0 leaves the port to `connect`.
    pub(crate) no_port: bool,
    /// True if the last byte of urgent data stays in the stream.
    pub(crate) oob_inline: bool,
    pub(crate) linger: Linger,
    /// Most connections of a listener in a Fast Open handshake (`TCP_FASTOPEN`).
    pub(crate) fast_open: u32,
    /// True if `connect` waits for data for the SYN.
    pub(crate) fast_open_connect: bool,
    /// Options passed to the stack.
    pub(crate) options: SocketOptions,
}

/// Key that cookies are granted under, and a second one that is accepted.
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

    /// True while `close` lingers: no other call finds the socket then.
    pub(crate) fn is_closing(&self) -> bool {
        self.stream().is_some_and(|stream| stream.lingers.is_some())
    }

    /// Snapshot of its connection, if it has one.
    pub(crate) fn connection(&self, shard: &Shard) -> Option<(Stream, Snapshot)> {
        let stream = self.stream()?;
        shard.snapshot(stream.handle).map(|snapshot| (*stream, snapshot))
    }

    /// Enters a phase, and registers its handle or listener.
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

    /// Binds the socket to `at`.
    pub(crate) fn occupy(&mut self, cx: &mut Context, at: Endpoint) {
        self.local = Some(at);
        cx.ports.bind(at.port, self.fd);
    }

    /// Checks that the socket can use the address; IPv6 sockets take IPv4 in mapped form.
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
    /// Leaves the phase, and removes its handle or listener.
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
