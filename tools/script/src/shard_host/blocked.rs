//! Calls that may block, kept so that they can be repeated.

use alloc::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_posix::{
    BlockedOn, EpollReport, Errno, Fd, Incoming, MsgFlags, Outcome, Outgoing, PollFd, SocketFlags,
    Sockets,
};
use whimbrel_wire::Endpoint;

use crate::call::{Call, Filled, Polled, Returned, TimeOut, Unconnected};

/// A blocked call.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// The call, with its progress.
    pub(super) call: MayBlock,
    /// Condition of the call.
    pub(super) wait: BlockedOn,
}

/// A call that may block, with its progress.
#[derive(Debug)]
pub(super) enum MayBlock {
    Accept(Fd, SocketFlags),
    Connect(Fd, Endpoint),
    Close(Fd),
    Receive(Fd, Incoming, MsgFlags),
    Send(Fd, Outgoing, MsgFlags, Option<Endpoint>, Unconnected),
    Poll(Vec<PollFd>, Instant),
    EpollWait { epoll: Fd, most: usize, until: Instant },
}

impl MayBlock {
    /// The call, made at `now`, if it may block; otherwise returned unchanged.
    pub(super) fn read(call: Call, now: Instant) -> Result<Self, Call> {
        Ok(match call {
            Call::Accept { fd, flags } => Self::Accept(Fd(fd), flags),
            Call::Connect { fd, to } => Self::Connect(Fd(fd), to),
            Call::Close { fd } => Self::Close(Fd(fd)),
            Call::Receive { fd, with, flags } => {
                let most = with.sizes.iter().fold(0, |sum: usize, size| sum.saturating_add(*size));
                Self::Receive(Fd(fd), Incoming::new(most), flags)
            }
            Call::Send { fd, with, flags } => {
                let out = Outgoing::gather(with.pieces.iter().map(Vec::as_slice));
                Self::Send(Fd(fd), out, flags, with.to, with.unconnected)
            }
            Call::Poll { fds, time_out } => {
                let fds = fds.iter().map(|one| PollFd {
                    fd: Fd(one.fd),
                    events: one.events,
                    revents: one.revents,
                });
                Self::Poll(fds.collect(), end(now, time_out))
            }
            Call::EpollWait { epoll, most, time_out } => {
                Self::EpollWait { epoll: Fd(epoll), most: most as usize, until: end(now, time_out) }
            }
            other => return Err(other),
        })
    }

    /// Makes or repeats the call: returns its result, or the condition it waits for.
    pub(super) fn attempt(&mut self, sockets: &mut Sockets) -> Result<Returned, BlockedOn> {
        match self {
            Self::Accept(fd, flags) => finish(sockets.accept(*fd, *flags), |it| {
                (i64::from(it.fd.0), Filled::Peer(it.peer))
            }),
            Self::Connect(fd, to) => finish(sockets.connect(*fd, *to), zero),
            Self::Close(fd) => finish(sockets.close(*fd), zero),
            Self::Receive(fd, into, flags) => {
                let outcome = sockets.recv(*fd, into, *flags);
                finish(outcome, |bytes| {
                    (count(bytes), Filled::Bytes(into.to_vec(), MsgFlags::NONE))
                })
            }
            Self::Send(fd, out, flags, to, unconnected) => {
                let outcome = match (to, unconnected) {
                    (Some(to), Unconnected::Connects) => {
                        sockets.send_connecting(*fd, out, *flags, *to)
                    }
                    (to, _) => sockets.send_to(*fd, out, *flags, *to),
                };
                finish(outcome, |bytes| (count(bytes), Filled::Nothing))
            }
            Self::Poll(fds, until) => {
                let outcome = sockets.poll(fds, *until);
                finish(outcome, |ready| (count(ready), Filled::Polled(polled(fds))))
            }
            Self::EpollWait { epoll, most, until } => {
                finish(sockets.epoll_wait(*epoll, *most, *until), |reports| {
                    let seen = |report: &EpollReport| (report.events, report.data);
                    (count(reports.len()), Filled::Epoll(reports.iter().map(seen).collect()))
                })
            }
        }
    }
}

/// Result of a failed call.
pub(super) fn failure(errno: Errno) -> Returned {
    Returned { value: Err(errno), out: Filled::Nothing }
}

fn finish<T>(
    outcome: Outcome<T>,
    tell: impl FnOnce(T) -> (i64, Filled),
) -> Result<Returned, BlockedOn> {
    match outcome {
        Outcome::Done(Ok(value)) => {
            let (value, out) = tell(value);
            Ok(Returned { value: Ok(value), out })
        }
        Outcome::Done(Err(errno)) => Ok(failure(errno)),
        Outcome::Block(wait) => Err(wait),
    }
}

fn zero((): ()) -> (i64, Filled) {
    (0, Filled::Nothing)
}

fn count(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn polled(fds: &[PollFd]) -> Vec<Polled> {
    let tell = |one: &PollFd| Polled { fd: one.fd.0, events: one.events, revents: one.revents };
    fds.iter().map(tell).collect()
}

fn end(now: Instant, time_out: TimeOut) -> Instant {
    match time_out {
        TimeOut::Never => Instant::NEVER,
        TimeOut::After(time) => now + time,
    }
}
