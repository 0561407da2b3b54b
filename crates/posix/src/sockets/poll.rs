//! `poll` and `epoll`.

use alloc::vec::Vec;
use core::ops::Bound;

use whimbrel_base::Instant;

use super::Sockets;
use crate::descriptor::File;
use crate::epoll::{Epoll, Watch};
use crate::{EpollEvents, Errno, Fd, Outcome, PollEvents, Wait};

/// A descriptor, what is asked about it, and what was found: `struct pollfd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollFd {
    /// Whom it is about; a negative number is passed over.
    pub fd: Fd,
    /// What is asked for.
    pub events: PollEvents,
    /// What is so, of that; errors and the end without asking.
    pub revents: PollEvents,
}

c_enum! {
    /// What `epoll_ctl` does to the set of descriptors.
    EpollOp {
        /// Watches one descriptor more: EEXIST if it is watched already.
        Add = 1, "EPOLL_CTL_ADD";
        /// Watch it no more.
        Del = 2, "EPOLL_CTL_DEL";
        /// Watch for something else.
        Mod = 3, "EPOLL_CTL_MOD";
    }
}

/// `struct epoll_event`, as `epoll_wait` fills it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpollReport {
    /// The events that are the case.
    pub events: EpollEvents,
    /// What was given with it.
    pub data: u64,
}

impl Sockets {
    /// `poll(2)`: how many have something to tell. It blocks until `until`: the time of the first
    /// call plus the time-out, or that time itself for a time-out of 0.
    pub fn poll(&mut self, fds: &mut [PollFd], until: Instant) -> Outcome<usize> {
        let always = PollEvents::POLLERR | PollEvents::POLLHUP | PollEvents::POLLNVAL;
        let mut count = 0;
        for one in fds {
            let asked = one.fd.0 >= 0;
            let ready = if asked { self.ready(one.fd) } else { PollEvents::NONE };
            one.revents = ready.only(one.events | always);
            count += usize::from(!one.revents.is_empty());
        }
        if count > 0 || until <= self.shard.now() {
            Outcome::Done(Ok(count))
        } else {
            Outcome::Block(Wait::Polling(until))
        }
    }

    /// A set of descriptors to be watched, as `epoll_create1(2)` makes it: EMFILE if no number is left.
    pub fn epoll_create(&mut self) -> Result<Fd, Errno> {
        self.files.open(File::Epoll(Epoll::default()))
    }

    /// `epoll_ctl(2)`. An instance cannot watch another.
    pub fn epoll_ctl(
        &mut self,
        epoll: Fd,
        op: EpollOp,
        fd: Fd,
        watch: EpollReport,
    ) -> Result<(), Errno> {
        self.files.get(epoll)?;
        if let File::Epoll(_) = self.files.get(fd)? {
            return Err(Errno::EINVAL);
        }
        if !self.is_datagrams(fd) {
            self.get(fd)?;
        }
        let instance = self.epoll_mut(epoll)?;
        let watched = instance.watched.contains_key(&fd);
        match op {
            EpollOp::Add if watched => return Err(Errno::EEXIST),
            EpollOp::Del | EpollOp::Mod if !watched => return Err(Errno::ENOENT),
            EpollOp::Del => {
                instance.watched.remove(&fd);
                instance.candidates.remove(&fd);
                self.watchers.remove(&(fd, epoll));
            }
            EpollOp::Add | EpollOp::Mod => {
                let EpollReport { events, data } = watch;
                instance.watched.insert(fd, Watch { events, data, disarmed: false });
                instance.candidates.insert(fd);
                self.watchers.insert((fd, epoll));
            }
        }
        Ok(())
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
        if reports.is_empty() && self.shard.now() < until {
            return Outcome::Block(Wait::Epoll(epoll, until));
        }
        Outcome::Done(Ok(reports))
    }

    /// Looks at each candidate once at most.
    fn collect(&mut self, epoll: Fd, most: usize) -> Result<Vec<EpollReport>, Errno> {
        let mut reports = Vec::new();
        for fd in self.turn(epoll)? {
            if reports.len() >= most {
                break;
            }
            reports.extend(self.report(epoll, fd)?);
            self.epoll_mut(epoll)?.next = Some(fd);
        }
        Ok(reports)
    }

    /// The candidates, beginning behind the one that was looked at last.
    fn turn(&self, epoll: Fd) -> Result<Vec<Fd>, Errno> {
        let instance = self.epoll(epoll)?;
        let last = instance.next.unwrap_or(Fd::LEAST);
        let behind = instance.candidates.range((Bound::Excluded(last), Bound::Unbounded));
        Ok(behind.chain(instance.candidates.range(..=last)).copied().collect())
    }

    fn report(&mut self, epoll: Fd, fd: Fd) -> Result<Option<EpollReport>, Errno> {
        let ready = EpollEvents::from(self.ready(fd));
        let instance = self.epoll_mut(epoll)?;
        let Some(watch) = instance.watched.get_mut(&fd) else { return Ok(None) };
        let events = watch.judge(ready);
        let edge = watch.events.has(EpollEvents::EPOLLET);
        // Nobody tells of room that nobody was refused.
        let waits = watch.events.has(EpollEvents::EPOLLOUT) && !ready.has(EpollEvents::EPOLLOUT);
        let report = EpollReport { events, data: watch.data };
        if !events.is_empty() && watch.events.has(EpollEvents::EPOLLONESHOT) {
            watch.disarmed = true;
        }
        if watch.disarmed || edge || events.is_empty() && !waits {
            instance.candidates.remove(&fd);
        }
        Ok((!events.is_empty()).then_some(report))
    }

    /// What `poll` says of an epoll instance: readable if one of those it watches has something.
    pub(super) fn ready_epoll(&self, fd: Fd) -> PollEvents {
        let Ok(instance) = self.epoll(fd) else { return PollEvents::POLLNVAL };
        let any = instance.candidates.iter().any(|fd| {
            let watch = instance.watched.get(fd);
            watch.is_some_and(|watch| !watch.judge(self.ready(*fd).into()).is_empty())
        });
        if any { PollEvents::POLLIN | PollEvents::POLLRDNORM } else { PollEvents::NONE }
    }
}
