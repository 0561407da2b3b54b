//! What stands behind a listener: a backlog at each shard of the stack, taken from in turn.
//!
//! Each shard has an accept queue and a lock of its own, so that none waits for another. A task that
//! waits leaves its waker at all of them; who takes looks at another one first each time, so that no
//! shard's connections wait for those of the others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use whimbrel_tcp::table::Families;
use whimbrel_wire::Endpoint;

use crate::backlog::{Accepted, Backlog, ListenOptions};
use crate::cell::Settings;
use crate::mailbox::{Mailbox, Request};
use crate::waiters::Ticket;

/// The backlogs of all shards; of one listener, or of those that share a port. When it is dropped
/// nobody listens any more.
#[derive(Debug)]
pub(crate) struct ShardedListener {
    shards: Box<[ListenerShard]>,
    /// Which is looked at first next.
    next: AtomicUsize,
}

/// The backlog of one shard, and the way to that shard.
#[derive(Debug)]
pub(crate) struct ListenerShard {
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl ShardedListener {
    /// Of the shards behind these mailboxes, which do not know of it yet.
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

    /// Of no shards at all.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Arc<Self> {
        Arc::new(Self { shards: Box::default(), next: AtomicUsize::new(0) })
    }

    /// Listens at every shard.
    pub(crate) fn open(&self) {
        for ListenerShard { backlog, mailbox } in &self.shards {
            mailbox.ask(Request::Listen(Arc::clone(backlog)));
        }
    }

    /// The backlogs, in the order of the shards.
    pub(crate) fn shards(&self) -> &[ListenerShard] {
        &self.shards
    }

    /// The next complete connection, if there is one, and the way to its shard.
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
                // One shard's end is no error while another has connections.
                Err(error) => lost = Some(error),
            }
        }
        lost.map_or(Ok(None), Err)
    }

    /// The task of `waker` polls, at every shard. Returns those before it, to be dropped.
    pub(crate) fn register(&self, waker: &Waker) -> Vec<Waker> {
        let register = |shard: &ListenerShard| shard.backlog.lock().waiters.register(waker);
        self.shards.iter().filter_map(register).collect()
    }

    /// The task of `waker` awaits, at every shard; `tickets` has a place for each, or none yet.
    /// Returns the wakers that it had before, to be dropped.
    pub(crate) fn line_up(&self, tickets: &mut Vec<Option<Ticket>>, waker: &Waker) -> Vec<Waker> {
        tickets.resize(self.shards.len(), None);
        let line_up = |(shard, ticket): (&ListenerShard, &mut Option<Ticket>)| {
            shard.backlog.lock().waiters.line_up(ticket, waker)
        };
        self.shards.iter().zip(tickets).filter_map(line_up).collect()
    }

    /// Who had these tickets awaits no more. Returns its wakers, to be dropped.
    pub(crate) fn leave(&self, tickets: &[Option<Ticket>]) -> Vec<Waker> {
        let leave = |(shard, ticket): (&ListenerShard, &Option<Ticket>)| {
            shard.backlog.lock().waiters.leave((*ticket)?)
        };
        self.shards.iter().zip(tickets).filter_map(leave).collect()
    }

    /// What connections inherit from now on.
    pub(crate) fn set(&self, set: impl Fn(&mut Settings)) {
        for shard in &self.shards {
            set(&mut shard.backlog.lock().settings);
            shard.notify();
        }
    }

    /// What accepted connections inherit.
    pub(crate) fn settings(&self) -> Option<Settings> {
        self.shards.first().map(|shard| shard.backlog.lock().settings)
    }
}

impl ListenerShard {
    /// Has the shard look at this backlog.
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
