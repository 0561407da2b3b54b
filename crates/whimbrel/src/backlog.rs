//! Completed connections that wait for `accept`, shared by a listener and its shard.
//!
//! The shard hands them over as they complete, so that `accept` need not wait for another thread. They
//! still count: connections that wait here shorten the shard's accept queue. Both together hold
//! `backlog` connections and one more, as on Linux.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use whimbrel_stack::{ListenerId, Shard};
use whimbrel_tcp::conn::SocketOptions;
use whimbrel_tcp::table::Families;
use whimbrel_wire::{Endpoint, Flow};

use crate::cell::{Settings, StreamCell};
use crate::waiters::Waiters;

/// Options of a new listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenOptions {
    /// Limit of waiting completed connections at each shard.
    pub(crate) backlog: u32,
    /// Limit of concurrent Fast Open handshakes at each shard.
    pub(crate) fast_open: u32,
    /// Settings that accepted streams inherit.
    pub(crate) settings: Settings,
    /// Limit of the rate of accepted streams, bytes per second.
    pub(crate) rate: Option<NonZeroU64>,
}

/// Shared half of a listener.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Local address and port.
    pub(crate) at: Endpoint,
    /// Address families that it accepts.
    pub(crate) families: Families,
    /// Limit of waiting connections (at least 1): the backlog and one more, as on Linux.
    pub(crate) most: u32,
    /// Limit of concurrent Fast Open handshakes.
    pub(crate) fast_open: u32,
    state: Mutex<State>,
}

/// State behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    /// Settings that accepted streams inherit.
    pub(crate) settings: Settings,
    /// Limit of the rate of accepted streams, bytes per second.
    pub(crate) rate: Option<NonZeroU64>,
    /// Tasks that wait for a connection.
    pub(crate) waiters: Waiters,
    ready: VecDeque<Accepted>,
    /// The shard's number of the listener, once it listens.
    pub(crate) id: Option<ListenerId>,
    /// Reason why no more connections will arrive.
    error: Option<(io::ErrorKind, String)>,
    /// Number of waiting connections that the shard knew of when it last looked.
    reported: u32,
    /// True if it is in the shard's queue.
    posted: bool,
    /// True if the listener was dropped.
    dropped: bool,
}

/// A connection that waits for `accept`.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) cell: Arc<StreamCell>,
    pub(crate) flow: Flow,
}

impl Backlog {
    pub(crate) fn new(at: Endpoint, families: Families, options: ListenOptions) -> Self {
        let ListenOptions { backlog, fast_open, settings, rate } = options;
        let state = State {
            settings,
            rate,
            waiters: Waiters::default(),
            ready: VecDeque::new(),
            id: None,
            error: None,
            reported: 0,
            posted: false,
            dropped: false,
        };
        Self { at, families, most: backlog.saturating_add(1), fast_open, state: Mutex::new(state) }
    }

    /// Locks the state. Only an executor's waker clone can panic under the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the oldest connection, and true if the shard must learn that there is room again.
    pub(crate) fn take(&self) -> io::Result<Option<(Accepted, bool)>> {
        let mut state = self.lock();
        let Some(accepted) = state.ready.pop_front() else {
            return match &state.error {
                Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
                None => Ok(None),
            };
        };
        // Not for each: while the shard has room for a burst's connections, none is refused.
        let crowded = self.most.saturating_sub(state.reported) < self.most.min(AMPLE);
        let notify = crowded && state.ready.len() <= state.reported as usize / 2 && !state.posted;
        state.posted |= notify;
        Ok(Some((accepted, notify)))
    }

    /// Returns the number of waiting connections.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().ready.len()
    }
}

/// Twice the frames of one pass.
const AMPLE: u32 = 128;

/// Handing over by the shard.
impl State {
    /// Returns what accepted streams inherit, in the shard's form.
    pub(crate) fn options(&self) -> SocketOptions {
        self.settings.options(self.rate)
    }

    /// Returns the number of further connections that the shard may hand over.
    pub(crate) fn room(&self, most: u32) -> usize {
        (most as usize).saturating_sub(self.ready.len())
    }

    /// Adds a completed connection and wakes the tasks that wait.
    pub(crate) fn push(&mut self, accepted: Accepted, out: &mut Vec<Waker>) {
        self.ready.push_back(accepted);
        self.waiters.take_all(out);
    }

    /// Sets the shard's own queue to the remaining room.
    pub(crate) fn report_length(&mut self, shard: &mut Shard, id: ListenerId, most: u32) {
        self.posted = false;
        let here = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        if here != self.reported {
            self.reported = here;
            shard.set_backlog(id, most.saturating_sub(here));
        }
    }

    /// Records that no more connections will arrive.
    pub(crate) fn on_lost(&mut self, error: io::Error, out: &mut Vec<Waker>) {
        self.error = Some((error.kind(), error.to_string()));
        self.waiters.take_all(out);
    }

    /// Records that the listener was dropped. Returns the wakers, to be dropped after unlocking.
    pub(crate) fn on_drop(&mut self) -> Vec<Waker> {
        self.dropped = true;
        let mut wakers = Vec::new();
        self.waiters.take_all(&mut wakers);
        wakers
    }

    /// True if the listener was dropped.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Returns the connections that will not be accepted.
    pub(crate) fn take_ready(&mut self) -> VecDeque<Accepted> {
        std::mem::take(&mut self.ready)
    }
}
