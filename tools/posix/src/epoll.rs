//! An epoll instance: the descriptors it watches, and those that may have events.
//!
//! As in Linux, only descriptors with an event are examined. One stays a candidate while it is
//! ready (level-triggered). It also stays one while it waits for room, because the stack announces
//! room only to a sender that it refused.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use crate::{EpollEvents, Errno, Fd, PollEvents};

c_enum! {
    /// Operations of `epoll_ctl`.
    EpollOp {
        /// Adds a descriptor: EEXIST if it is watched already.
        Add = 1, "EPOLL_CTL_ADD";
        /// Removes a descriptor.
        Del = 2, "EPOLL_CTL_DEL";
        /// Changes the requested events.
        Mod = 3, "EPOLL_CTL_MOD";
    }
}

/// `struct epoll_event`, as `epoll_wait` fills it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpollReport {
    /// Events that hold.
    pub events: EpollEvents,
    /// Data of the user.
    pub data: u64,
}

/// All epoll instances of a process, and the descriptors that they watch.
#[derive(Debug)]
pub(crate) struct Polls {
    instances: BTreeMap<Fd, Epoll>,
    /// Pairs of descriptor and watching instance.
    watchers: BTreeSet<(Fd, Fd)>,
}

#[derive(Default, Debug)]
pub(crate) struct Epoll {
    watched: BTreeMap<Fd, Watch>,
    candidates: BTreeSet<Fd>,
    /// Start of the next walk over the candidates, so that each gets its turn.
    next: Option<Fd>,
}

/// A watched descriptor.
#[derive(Clone, Copy, Debug)]
struct Watch {
    events: EpollEvents,
    data: u64,
    /// True after a report with `EPOLLONESHOT`: silent until it is changed.
    disarmed: bool,
}

impl Polls {
    pub(crate) const fn new() -> Self {
        Self { instances: BTreeMap::new(), watchers: BTreeSet::new() }
    }

    pub(crate) fn open(&mut self, epoll: Fd) {
        self.instances.insert(epoll, Epoll::default());
    }

    pub(crate) fn close(&mut self, epoll: Fd) {
        let instance = self.instances.remove(&epoll);
        for watched in instance.iter().flat_map(|instance| instance.watched.keys()) {
            self.watchers.remove(&(*watched, epoll));
        }
    }

    /// The instance of `epoll`; `EINVAL` if it is none.
    pub(crate) fn get(&self, epoll: Fd) -> Result<&Epoll, Errno> {
        self.instances.get(&epoll).ok_or(Errno::EINVAL)
    }

    pub(crate) fn get_mut(&mut self, epoll: Fd) -> Result<&mut Epoll, Errno> {
        self.instances.get_mut(&epoll).ok_or(Errno::EINVAL)
    }

    /// `epoll_ctl(2)` for a socket `fd`.
    pub(crate) fn control(
        &mut self,
        epoll: Fd,
        op: EpollOp,
        fd: Fd,
        watch: EpollReport,
    ) -> Result<(), Errno> {
        let instance = self.get_mut(epoll)?;
        let watched = instance.watched.contains_key(&fd);
        match op {
            EpollOp::Add if watched => return Err(Errno::EEXIST),
            EpollOp::Del | EpollOp::Mod if !watched => return Err(Errno::ENOENT),
            EpollOp::Del => {
                instance.forget(fd);
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

    /// Makes `fd` a candidate of each instance that watches it.
    pub(crate) fn notify(&mut self, fd: Fd) {
        for (_, epoll) in self.watchers.range((fd, Fd::LEAST)..=(fd, Fd::GREATEST)) {
            if let Some(instance) = self.instances.get_mut(epoll) {
                instance.candidates.insert(fd);
            }
        }
    }

    /// Ends all watches of `fd`.
    pub(crate) fn unwatch(&mut self, fd: Fd) {
        while let Some(pair) = self.watchers.range((fd, Fd::LEAST)..=(fd, Fd::GREATEST)).next() {
            let pair = *pair;
            self.watchers.remove(&pair);
            if let Some(instance) = self.instances.get_mut(&pair.1) {
                instance.forget(fd);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.instances.len() + self.watchers.len()
    }
}

impl Epoll {
    /// Candidates, beginning after the last one examined.
    pub(crate) fn turn(&self) -> Vec<Fd> {
        let last = self.next.unwrap_or(Fd::LEAST);
        let behind = self.candidates.range((Bound::Excluded(last), Bound::Unbounded));
        behind.chain(self.candidates.range(..=last)).copied().collect()
    }

    /// Examines `fd` with its events, and returns its report.
    pub(crate) fn look(&mut self, fd: Fd, ready: EpollEvents) -> Option<EpollReport> {
        self.next = Some(fd);
        let watch = self.watched.get_mut(&fd)?;
        let events = watch.judge(ready);
        let edge = watch.events.has(EpollEvents::EPOLLET);
        // The stack announces room only to a sender that it refused.
        let waits = watch.events.has(EpollEvents::EPOLLOUT) && !ready.has(EpollEvents::EPOLLOUT);
        let report = EpollReport { events, data: watch.data };
        if !events.is_empty() && watch.events.has(EpollEvents::EPOLLONESHOT) {
            watch.disarmed = true;
        }
        if watch.disarmed || edge || events.is_empty() && !waits {
            self.candidates.remove(&fd);
        }
        (!events.is_empty()).then_some(report)
    }

    /// True if a watched descriptor has an event to report.
    pub(crate) fn is_ready(&self, ready: impl Fn(Fd) -> PollEvents) -> bool {
        self.candidates.iter().any(|fd| {
            let watch = self.watched.get(fd);
            watch.is_some_and(|watch| !watch.judge(ready(*fd).into()).is_empty())
        })
    }

    fn forget(&mut self, fd: Fd) {
        self.watched.remove(&fd);
        self.candidates.remove(&fd);
    }
}

impl Watch {
    /// Requested events in `ready`, with errors and the end in any case.
    fn judge(&self, ready: EpollEvents) -> EpollEvents {
        if self.disarmed {
            return EpollEvents::NONE;
        }
        ready.only(self.events | EpollEvents::EPOLLERR | EpollEvents::EPOLLHUP)
    }
}
