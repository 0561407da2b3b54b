//! Events of a socket, as `poll` reports them, and its pending error.

use whimbrel_base::packet::SoftError;
use whimbrel_stack::Shard;
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_tcp::tunables::SoftErrors;

use super::{Phase, Socket, Stream};
use crate::{Errno, PollEvents};

impl Socket {
    /// Events as `poll` reports them.
    pub(crate) fn ready(&self, shard: &Shard) -> PollEvents {
        let error = if self.pending_error(shard).is_some() {
            PollEvents::POLLERR
        } else {
            PollEvents::NONE
        };
        error
            | match self.phase {
                Phase::Idle if self.deferred.is_some() => WRITABLE,
                // As on Linux: a socket without a connection counts as one whose connection is
                // over.
                Phase::Idle => WRITABLE | PollEvents::POLLHUP,
                Phase::Listening(listener) => {
                    let waiting = shard.listener(listener).map_or(0, |it| it.waiting());
                    if waiting > 0 { READABLE } else { PollEvents::NONE }
                }
                Phase::Stream(stream) => match shard.snapshot(stream.handle) {
                    Some(snapshot) => {
                        let (urgent, text) = self.look(shard, &stream, &snapshot);
                        urgent | ready_stream(&stream, &snapshot, text)
                    }
                    None => PollEvents::POLLHUP,
                },
            }
    }

    /// True if the connection is still being opened.
    pub(crate) fn is_opening(&self, shard: &Shard) -> bool {
        self.connection(shard).is_some_and(|(_, snapshot)| is_opening(&snapshot))
    }

    /// Pending error of `SO_ERROR`.
    pub(super) fn pending_error(&self, shard: &Shard) -> Option<Errno> {
        let untold = self.stream().filter(|stream| !stream.told);
        let ended = || shard.snapshot(untold?.handle).as_ref().and_then(end_errno);
        self.error.or_else(ended)
    }

    /// ICMP error that the connection survives, for `SO_ERROR`.
    pub(super) fn take_soft_error(&self, shard: &mut Shard) -> Option<Errno> {
        if shard.tunables().soft_errors == SoftErrors::Kept {
            return None;
        }
        let (stream, snapshot) = self.connection(shard)?;
        snapshot.soft_error.filter(|_| snapshot.closed.is_none())?;
        shard.take_soft_error(stream.handle).map(soft_errno)
    }

    /// Takes the error of a failed connection or attempt.
    pub(super) fn take_error(&mut self, shard: &Shard) -> Option<Errno> {
        let error = self.pending_error(shard);
        let ended = self.connection(shard).is_some_and(|(_, it)| it.closed.is_some());
        self.error = None;
        if let Some(stream) = self.stream_mut() {
            stream.told |= ended;
        }
        error
    }
}

/// `text`: bytes that an ordinary `recv` would return.
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

/// True if the handshake is under way. One that Fast Open began does not count.
pub(super) const fn is_opening(snapshot: &Snapshot) -> bool {
    !snapshot.early && matches!(snapshot.state, State::SynSent | State::SynReceived)
}

/// True if the connection is over, as Linux' `TCP_CLOSE`.
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

/// Error that ended a connection (Linux' `tcp_reset`, `tcp_write_err`).
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
        // Aborted on this side.
        _ => Some(Errno::ECONNABORTED),
    }
}

/// Error of a connection that timed out after an ICMP error, as in Linux (`sk_err_soft`).
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
