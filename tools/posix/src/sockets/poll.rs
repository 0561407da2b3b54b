//! `poll` and `epoll`.

use alloc::vec::Vec;

use whimbrel_base::Instant;

use super::Sockets;
use crate::descriptor::{AnySocket, File};
use crate::epoll::{EpollOp, EpollReport};
use crate::{BlockedOn, Errno, Fd, Outcome, PollEvents};

/// Descriptor, requested events, and returned events: `struct pollfd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollFd {
    /// Descriptor; a negative number is skipped.
    pub fd: Fd,
    /// Requested events.
    pub events: PollEvents,
    /// Requested events that hold, with errors and the end in any case.
    pub revents: PollEvents,
}

impl Sockets {
    /// `poll(2)`: returns the number of descriptors with events. It blocks until `until`: the time
    /// of the first call plus the time-out, or only that time for a time-out of 0.
    pub fn poll(&mut self, fds: &mut [PollFd], until: Instant) -> Outcome<usize> {
        let always = PollEvents::POLLERR | PollEvents::POLLHUP | PollEvents::POLLNVAL;
        let mut count = 0;
        for one in fds {
            let asked = one.fd.0 >= 0;
            let ready = if asked { self.ready(one.fd) } else { PollEvents::NONE };
            one.revents = ready.only(one.events | always);
            count += usize::from(!one.revents.is_empty());
        }
        if count > 0 || until <= self.cx.shard.now() {
            Outcome::Done(Ok(count))
        } else {
            Outcome::Block(BlockedOn::Polling(until))
        }
    }

    /// A set of descriptors to watch, as from `epoll_create1(2)`: EMFILE if no number is left.
    pub fn epoll_create(&mut self) -> Result<Fd, Errno> {
        let fd = self.files.open(|_| File::Epoll)?;
        self.cx.polls.open(fd);
        Ok(fd)
    }

    /// `epoll_ctl(2)`. An instance cannot watch another.
    pub fn epoll_ctl(
        &mut self,
        epoll: Fd,
        op: EpollOp,
        fd: Fd,
        watch: EpollReport,
    ) -> Result<(), Errno> {
        self.files.entry(epoll).ok_or(Errno::EBADF)?;
        if let File::Epoll = self.files.get(fd)? {
            return Err(Errno::EINVAL);
        }
        self.cx.polls.control(epoll, op, fd, watch)
    }

    /// `epoll_wait(2)`: at most `most` (>= 1) reports. It blocks until `until`, as
    /// [`Sockets::poll`] does.
    pub fn epoll_wait(
        &mut self,
        epoll: Fd,
        most: usize,
        until: Instant,
    ) -> Outcome<Vec<EpollReport>> {
        if most == 0 {
            return Outcome::fail(Errno::EINVAL);
        }
        self.drain_events();
        let reports = match self.collect(epoll, most) {
            Ok(reports) => reports,
            Err(errno) => return Outcome::fail(errno),
        };
        if reports.is_empty() && self.cx.shard.now() < until {
            return Outcome::Block(BlockedOn::Epoll(epoll, until));
        }
        Outcome::Done(Ok(reports))
    }

    /// Examines each candidate at most once.
    fn collect(&mut self, epoll: Fd, most: usize) -> Result<Vec<EpollReport>, Errno> {
        self.files.entry(epoll).ok_or(Errno::EBADF)?;
        let mut reports = Vec::new();
        for fd in self.cx.polls.get(epoll)?.turn() {
            if reports.len() >= most {
                break;
            }
            let ready = self.ready(fd).into();
            reports.extend(self.cx.polls.get_mut(epoll)?.look(fd, ready));
        }
        Ok(reports)
    }

    /// True if a blocked call should be repeated. It may block again.
    pub fn may_go_on(&self, wait: &BlockedOn) -> bool {
        if wait.until() <= self.cx.shard.now() {
            return true;
        }
        let ends = PollEvents::POLLERR | PollEvents::POLLHUP | PollEvents::POLLNVAL;
        match *wait {
            BlockedOn::Readable(fd) | BlockedOn::Accepted(fd) => {
                self.ready(fd).has(PollEvents::POLLIN | ends)
            }
            BlockedOn::Writable(fd) => self.ready(fd).has(PollEvents::POLLOUT | ends),
            BlockedOn::Connected(fd) => {
                !self.files.stream(fd).is_ok_and(|socket| socket.is_opening(&self.cx.shard))
            }
            BlockedOn::Lingering(fd, _) => {
                let Some(File::Socket(AnySocket::Stream(socket))) = self.files.entry(fd) else {
                    return true;
                };
                !socket.is_lingering(&self.cx.shard)
            }
            // The caller looks at each of its descriptors.
            BlockedOn::Polling(_) | BlockedOn::Epoll(..) => true,
        }
    }

    /// Events of `fd` as `poll` reports them.
    fn ready(&self, fd: Fd) -> PollEvents {
        match self.files.get(fd) {
            Err(_) => PollEvents::POLLNVAL,
            Ok(File::Socket(AnySocket::Stream(socket))) => socket.ready(&self.cx.shard),
            Ok(File::Socket(AnySocket::Datagrams(socket))) => socket.ready(&self.cx.shard),
            // Readable if a watched descriptor has an event.
            Ok(File::Epoll) => match self.cx.polls.get(fd) {
                Ok(instance) if instance.is_ready(|fd| self.ready(fd)) => {
                    PollEvents::POLLIN | PollEvents::POLLRDNORM
                }
                Ok(_) => PollEvents::NONE,
                Err(_) => PollEvents::POLLNVAL,
            },
        }
    }
}
