//! An epoll instance: what it watches, and what of that may have something to report.
//!
//! As in Linux, only descriptors to which something happened are looked at. One stays a candidate
//! while it is found ready (level-triggered), or, since the stack does not announce room that
//! nobody was refused, while it waits for room.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::{EpollEvents, Fd};

#[derive(Default, Debug)]
pub(crate) struct Epoll {
    pub(crate) watched: BTreeMap<Fd, Watch>,
    pub(crate) candidates: BTreeSet<Fd>,
    /// Where the next walk over the candidates begins, so that each gets its turn.
    pub(crate) next: Option<Fd>,
}

/// One descriptor that is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) events: EpollEvents,
    pub(crate) data: u64,
    /// Reported once with `EPOLLONESHOT`: silent until it is changed.
    pub(crate) disarmed: bool,
}

impl Watch {
    /// What of `ready` is asked for; errors and the end always are.
    pub(crate) fn judge(&self, ready: EpollEvents) -> EpollEvents {
        if self.disarmed {
            return EpollEvents::NONE;
        }
        ready.only(self.events | EpollEvents::EPOLLERR | EpollEvents::EPOLLHUP)
    }
}
