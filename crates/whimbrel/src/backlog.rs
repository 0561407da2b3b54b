//! What a listener and its shard share: connections that are complete and that nobody took yet.
//!
//! The shard hands them over as they come, so that `accept` crosses no thread. They still count:
//! what waits here makes the shard's own accept queue shorter, and both together hold `backlog`
//! connections, and one more, as on Linux.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use whimbrel_stack::{ListenerId, Shard};
use whimbrel_tcp::table::Families;
use whimbrel_wire::{Endpoint, Flow};

use crate::cell::{Settings, StreamCell};
use crate::waiters::Waiters;

/// What a listener begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenOptions {
    /// How many complete connections may wait, at each shard.
    pub(crate) backlog: u32,
    /// How many handshakes of Fast Open may be under way, at each shard.
    pub(crate) fast_open: u32,
    /// What accepted streams inherit.
    pub(crate) settings: Settings,
}

/// The shared half of a listener.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// The address and port where it listens.
    pub(crate) at: Endpoint,
    /// Whose connections it takes.
    pub(crate) families: Families,
    /// How many may wait (>= 1): as on Linux the backlog, and one more.
    pub(crate) most: u32,
    /// How many handshakes of Fast Open may be under way.
    pub(crate) fast_open: u32,
    state: Mutex<State>,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    /// What accepted streams inherit.
    pub(crate) settings: Settings,
    /// Tasks that wait for a connection.
    pub(crate) waiters: Waiters,
    ready: VecDeque<Accepted>,
    /// What the shard knows it by, once it listens.
    pub(crate) id: Option<ListenerId>,
    /// Why nothing more will come.
    error: Option<(io::ErrorKind, String)>,
    /// How many the shard knew to be here when it last looked.
    reported: u32,
    /// It stands in the shard's queue.
    posted: bool,
    /// The listener's owner let go.
    dropped: bool,
}

/// A connection that nobody took yet.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) cell: Arc<StreamCell>,
    pub(crate) flow: Flow,
}

impl Backlog {
    pub(crate) fn new(at: Endpoint, families: Families, options: ListenOptions) -> Self {
        let ListenOptions { backlog, fast_open, settings } = options;
        let state = State {
            settings,
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

    /// Nothing panics under the lock but an executor's cloning of a waker.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest connection, and whether the shard must be told that there is room again.
    pub(crate) fn take(&self) -> io::Result<Option<(Accepted, bool)>> {
        let mut state = self.lock();
        let Some(accepted) = state.ready.pop_front() else {
            return match &state.error {
                Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
                None => Ok(None),
            };
        };
        // Not for each: while the shard has room for as many as a burst completes, nobody is kept
        // out.
        let crowded = self.most.saturating_sub(state.reported) < self.most.min(AMPLE);
        let notify = crowded && state.ready.len() <= state.reported as usize / 2 && !state.posted;
        state.posted |= notify;
        Ok(Some((accepted, notify)))
    }

    /// How many wait here.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().ready.len()
    }
}

/// Twice the frames of one pass.
const AMPLE: u32 = 128;

/// What the shard does with a backlog: it hands connections over.
impl State {
    /// How many more the shard may hand over.
    pub(crate) fn room(&self, most: u32) -> usize {
        (most as usize).saturating_sub(self.ready.len())
    }

    /// Adds a complete connection, and wakes who waits for one.
    pub(crate) fn push(&mut self, accepted: Accepted, out: &mut Vec<Waker>) {
        self.ready.push_back(accepted);
        self.waiters.take_all(out);
    }

    /// The shard has looked: its own queue has the room that is left.
    pub(crate) fn report_length(&mut self, shard: &mut Shard, id: ListenerId, most: u32) {
        self.posted = false;
        let here = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        if here != self.reported {
            self.reported = here;
            shard.set_backlog(id, most.saturating_sub(here));
        }
    }

    /// Nothing more will come.
    pub(crate) fn on_lost(&mut self, error: io::Error, out: &mut Vec<Waker>) {
        self.error = Some((error.kind(), error.to_string()));
        self.waiters.take_all(out);
    }

    /// The listener's owner let go. What it waited with is returned, to be dropped after unlocking.
    pub(crate) fn on_drop(&mut self) -> Vec<Waker> {
        self.dropped = true;
        let mut wakers = Vec::new();
        self.waiters.take_all(&mut wakers);
        wakers
    }

    /// Whether the listener's owner let go.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// What nobody will take any more.
    pub(crate) fn take_ready(&mut self) -> VecDeque<Accepted> {
        std::mem::take(&mut self.ready)
    }
}
