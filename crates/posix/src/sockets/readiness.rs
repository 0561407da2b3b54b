//! What is so of a socket now: its events as `poll` counts them, and its pending error.

use whimbrel_base::packet::SoftError;
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_tcp::tunables::SoftErrors;

use super::Sockets;
use crate::descriptor::File;
use crate::socket::{Phase, Socket, Stream};
use crate::{Errno, Fd, PollEvents};

impl Sockets {
    /// What `poll` would say of `fd`.
    pub(super) fn ready(&self, fd: Fd) -> PollEvents {
        match self.files.get(fd) {
            Err(_) => PollEvents::POLLNVAL,
            Ok(File::Epoll(_)) => self.ready_epoll(fd),
            Ok(File::Datagrams(socket)) => self.ready_datagrams(socket),
            Ok(File::Socket(_)) => match self.get(fd) {
                Ok(socket) => self.ready_socket(socket),
                Err(_) => PollEvents::POLLNVAL,
            },
        }
    }

    fn ready_socket(&self, socket: &Socket) -> PollEvents {
        let error = if self.pending_error(socket).is_some() {
            PollEvents::POLLERR
        } else {
            PollEvents::NONE
        };
        error
            | match socket.phase {
                Phase::Idle if socket.deferred.is_some() => WRITABLE,
                // As on Linux: no connection counts as one that is over.
                Phase::Idle => WRITABLE | PollEvents::POLLHUP,
                Phase::Listening(listener) => {
                    let waiting = self.shard.listener(listener).map_or(0, |it| it.waiting());
                    if waiting > 0 { READABLE } else { PollEvents::NONE }
                }
                Phase::Stream(stream) => match self.shard.snapshot(stream.handle) {
                    Some(snapshot) => {
                        let (urgent, text) = self.look(socket, &stream, &snapshot);
                        urgent | ready_stream(&stream, &snapshot, text)
                    }
                    None => PollEvents::POLLHUP,
                },
            }
    }

    pub(super) fn is_readable(&self, fd: Fd) -> bool {
        let ends = PollEvents::POLLIN | PollEvents::POLLERR | PollEvents::POLLHUP;
        self.ready(fd).has(ends | PollEvents::POLLNVAL)
    }

    /// True if `send` would take something, or fail.
    pub(super) fn is_sendable(&self, fd: Fd) -> bool {
        let ends = PollEvents::POLLERR | PollEvents::POLLHUP | PollEvents::POLLNVAL;
        self.ready(fd).has(PollEvents::POLLOUT | ends)
    }

    /// True if the connection of `fd` is still being opened.
    pub(super) fn is_opening(&self, fd: Fd) -> bool {
        let connection = self.connection(fd).ok().flatten();
        connection.is_some_and(|(_, snapshot)| is_opening(&snapshot))
    }

    /// What `SO_ERROR` would tell.
    pub(super) fn pending_error(&self, socket: &Socket) -> Option<Errno> {
        let untold = socket.stream().filter(|stream| !stream.told);
        let ended = || self.shard.snapshot(untold?.handle).as_ref().and_then(end_errno);
        socket.error.or_else(ended)
    }

    /// What `SO_ERROR` tells of ICMP errors that the connection outlives.
    pub(super) fn take_soft_error(&mut self, fd: Fd) -> Option<Errno> {
        if self.shard.tunables().soft_errors == SoftErrors::Kept {
            return None;
        }
        let (stream, snapshot) = self.connection(fd).ok()??;
        snapshot.soft_error.filter(|_| snapshot.closed.is_none())?;
        self.shard.take_soft_error(stream.handle).map(soft_errno)
    }

    /// Takes the error that the connection ended with, or did not begin with.
    pub(super) fn take_error(&mut self, fd: Fd) -> Option<Errno> {
        let error = self.pending_error(self.get(fd).ok()?);
        let ended = self.connection(fd).ok()?.is_some_and(|(_, it)| it.closed.is_some());
        let socket = self.get_mut(fd).ok()?;
        socket.error = None;
        if let Some(stream) = socket.stream_mut() {
            stream.told |= ended;
        }
        error
    }
}

/// `text`: bytes that an ordinary `recv` would get.
fn ready_stream(stream: &Stream, snapshot: &Snapshot, text: u32) -> PollEvents {
    let over = is_over(snapshot);
    let end = stream.shut_read || snapshot.fin_received || over;
    let silent = stream.shut_write || over;
    let mut ready = PollEvents::NONE;
    if end && silent {
        ready |= PollEvents::POLLHUP;
    }
    if end {
        ready |= READABLE | PollEvents::POLLRDHUP;
    }
    if !is_opening(snapshot) {
        if text > 0 {
            ready |= READABLE;
        }
        if silent || has_room(snapshot) {
            ready |= WRITABLE;
        }
    }
    ready
}

/// True if the handshake is under way. One that Fast Open began is nobody's concern.
pub(super) const fn is_opening(snapshot: &Snapshot) -> bool {
    !snapshot.early && matches!(snapshot.state, State::SynSent | State::SynReceived)
}

/// True if the connection is over: what Linux calls `TCP_CLOSE`.
pub(super) const fn is_over(snapshot: &Snapshot) -> bool {
    matches!(snapshot.state, State::Closed | State::TimeWait)
}

/// Linux' `sk_stream_is_writeable`: a third of the buffer is free, and less than half of
/// `TCP_NOTSENT_LOWAT` waits to be sent.
pub(super) fn has_room(snapshot: &Snapshot) -> bool {
    let unsent_few =
        snapshot.unsent_most.is_none_or(|most| 2 * u64::from(snapshot.unsent) < most.into());
    unsent_few && u64::from(snapshot.send_room()) * 3 >= u64::from(snapshot.send_size)
}

/// The error with which a connection ended (Linux' `tcp_reset`, `tcp_write_err`).
fn end_errno(snapshot: &Snapshot) -> Option<Errno> {
    match snapshot.closed? {
        CloseReason::Finished => None,
        CloseReason::BrokenPipe => Some(Errno::EPIPE),
        CloseReason::Reset => Some(Errno::ECONNRESET),
        CloseReason::Refused => Some(Errno::ECONNREFUSED),
        CloseReason::TimedOut => Some(snapshot.soft_error.map_or(Errno::ETIMEDOUT, soft_errno)),
        CloseReason::Unreachable => {
            Some(snapshot.soft_error.map_or(Errno::EHOSTUNREACH, soft_errno))
        }
        // Aborted, here.
        _ => Some(Errno::ECONNABORTED),
    }
}

/// What Linux tells of a connection that timed out, if somebody on the path had said why
/// (`sk_err_soft`).
const fn soft_errno(error: SoftError) -> Errno {
    match error {
        SoftError::NetworkUnreachable => Errno::ENETUNREACH,
        SoftError::HostUnreachable
        | SoftError::TimeExceeded
        | SoftError::FragmentsLost
        | SoftError::Prohibited => Errno::EHOSTUNREACH,
        SoftError::SourceRouteFailed => Errno::EOPNOTSUPP,
        SoftError::ParameterProblem => Errno::EPROTO,
        SoftError::Refused => Errno::ECONNREFUSED,
        SoftError::NoTcp => Errno::ENOPROTOOPT,
    }
}

const READABLE: PollEvents =
    PollEvents::from_bits(PollEvents::POLLIN.bits() | PollEvents::POLLRDNORM.bits());
const WRITABLE: PollEvents =
    PollEvents::from_bits(PollEvents::POLLOUT.bits() | PollEvents::POLLWRNORM.bits());
