//! Backlogs of a listener, one at each shard of the stack, used in turn.
//!
//! Each shard has its own accept queue and lock, so that shards do not wait for each other. A waiting
//! task registers its waker at all of them. Each accept begins at another shard, so that no shard's
//! connections wait for those of the others.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use whimbrel_tcp::table::Families;
use whimbrel_wire::Endpoint;

use crate::backlog::{Accepted, Backlog, ListenOptions};
use crate::cell::Settings;
use crate::mailbox::{Mailbox, Request};
use crate::waiters::Ticket;

/// Backlogs at all shards, of one listener or of several that share a port. Dropping it closes the
/// listener.
#[derive(Debug)]
pub(crate) struct ShardedListener {
    shards: Box<[ListenerShard]>,
    /// Shard at which the next accept begins.
    next: AtomicUsize,
}

/// Backlog at one shard, and that shard's mailbox.
#[derive(Debug)]
pub(crate) struct ListenerShard {
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl ShardedListener {
    /// Creates backlogs for the shards of these mailboxes, which do not know them yet.
    pub(crate) fn new(
        mailboxes: &[Arc<Mailbox>],
        at: Endpoint,
        options: ListenOptions,
    ) -> Arc<Self> {
        let shard = |mailbox: &Arc<Mailbox>| {
            let backlog = Backlog::new(at, Families::DualStack, options);
            ListenerShard { backlog: Arc::new(backlog), mailbox: Arc::clone(mailbox) }
        };
        let shards = mailboxes.iter().map(shard).collect();
        Arc::new(Self { shards, next: AtomicUsize::new(0) })
    }

    /// Creates one without shards.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Arc<Self> {
        Arc::new(Self { shards: Box::default(), next: AtomicUsize::new(0) })
    }

    /// Starts listening at every shard.
    pub(crate) fn open(&self) {
        for ListenerShard { backlog, mailbox } in &self.shards {
            mailbox.ask(Request::Listen(Arc::clone(backlog)));
        }
    }

    /// Returns the backlogs in the order of the shards.
    pub(crate) fn shards(&self) -> &[ListenerShard] {
        &self.shards
    }

    /// Returns the next completed connection and its shard's mailbox, if there is one.
    pub(crate) fn take(&self) -> io::Result<Option<(Accepted, Arc<Mailbox>)>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.shards.len().max(1);
        let (before, from_first) = self.shards.split_at(first);
        let mut lost = None;
        for shard in from_first.iter().chain(before) {
            match shard.backlog.take() {
                Ok(Some((accepted, notify))) => {
                    if notify {
                        shard.notify();
                    }
                    return Ok(Some((accepted, Arc::clone(&shard.mailbox))));
                }
                Ok(None) => {}
                // The end of one shard is no error while another has connections.
                Err(error) => lost = Some(error),
            }
        }
        lost.map_or(Ok(None), Err)
    }

    /// Registers the waker of a polling task at every shard. Returns the replaced wakers, to be
    /// dropped.
    pub(crate) fn register(&self, waker: &Waker) -> Vec<Waker> {
        let register = |shard: &ListenerShard| shard.backlog.lock().waiters.register(waker);
        self.shards.iter().filter_map(register).collect()
    }

    /// Registers the waker of an awaiting task at every shard; `tickets` has a place for each, or is
    /// empty. Returns the replaced wakers, to be dropped.
    pub(crate) fn line_up(&self, tickets: &mut Vec<Option<Ticket>>, waker: &Waker) -> Vec<Waker> {
        tickets.resize(self.shards.len(), None);
        let line_up = |(shard, ticket): (&ListenerShard, &mut Option<Ticket>)| {
            shard.backlog.lock().waiters.line_up(ticket, waker)
        };
        self.shards.iter().zip(tickets).filter_map(line_up).collect()
    }

    /// Removes the task with these tickets. Returns its wakers, to be dropped.
    pub(crate) fn leave(&self, tickets: &[Option<Ticket>]) -> Vec<Waker> {
        let leave = |(shard, ticket): (&ListenerShard, &Option<Ticket>)| {
            shard.backlog.lock().waiters.leave((*ticket)?)
        };
        self.shards.iter().zip(tickets).filter_map(leave).collect()
    }

    /// Changes the settings of future connections.
    pub(crate) fn set(&self, set: impl Fn(&mut Settings)) {
        for shard in &self.shards {
            set(&mut shard.backlog.lock().settings);
            shard.notify();
        }
    }

    /// Changes the limit of the rate of future connections.
    pub(crate) fn set_rate(&self, rate: Option<NonZeroU64>) {
        for shard in &self.shards {
            shard.backlog.lock().rate = rate;
            shard.notify();
        }
    }

    /// Returns that limit.
    pub(crate) fn rate(&self) -> Option<NonZeroU64> {
        self.shards.first()?.backlog.lock().rate
    }

    /// Returns the settings that accepted connections inherit.
    pub(crate) fn settings(&self) -> Option<Settings> {
        self.shards.first().map(|shard| shard.backlog.lock().settings)
    }
}

impl ListenerShard {
    /// Notifies the shard of a change of this backlog.
    fn notify(&self) {
        self.mailbox.ask(Request::Backlog(Arc::clone(&self.backlog)));
    }
}

impl Drop for ShardedListener {
    fn drop(&mut self) {
        for shard in &self.shards {
            let wakers = shard.backlog.lock().on_drop();
            shard.notify();
            drop(wakers);
        }
    }
}
