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

use crate::TcpStream;
use crate::backlog::Backlog;
use crate::cell::Settings;
use crate::listener::Rules;
use crate::mailbox::{Mailbox, Request};
use crate::waiters::Ticket;

/// The backlogs of all shards; of one listener, or of those that share a port. When it is dropped
/// nobody listens any more.
#[derive(Debug)]
pub(crate) struct Desk {
    parts: Box<[Part]>,
    /// Which is looked at first next.
    next: AtomicUsize,
}

/// That of one shard.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Desk {
    /// Of the shards behind these mailboxes, which do not know of it yet.
    pub(crate) fn new(mailboxes: &[Arc<Mailbox>], at: Endpoint, rules: Rules) -> Arc<Self> {
        let part = |mailbox: &Arc<Mailbox>| {
            let backlog = Backlog::new(at, Families::DualStack, rules);
            Part { backlog: Arc::new(backlog), mailbox: Arc::clone(mailbox) }
        };
        let parts = mailboxes.iter().map(part).collect();
        Arc::new(Self { parts, next: AtomicUsize::new(0) })
    }

    /// Of no shards at all.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Arc<Self> {
        Arc::new(Self { parts: Box::default(), next: AtomicUsize::new(0) })
    }

    /// Listens at every shard.
    pub(crate) fn open(&self) {
        for Part { backlog, mailbox } in &self.parts {
            mailbox.ask(Request::Listen(Arc::clone(backlog)));
        }
    }

    /// The backlogs, in the order of the shards.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The next connection, if there is one.
    pub(crate) fn take(&self) -> io::Result<Option<TcpStream>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.parts.len().max(1);
        let (before, from_first) = self.parts.split_at(first);
        let mut lost = None;
        for part in from_first.iter().chain(before) {
            match part.backlog.take() {
                Ok(Some((accepted, tell))) => {
                    let mailbox = Arc::clone(&part.mailbox);
                    let stream = TcpStream::accepted(accepted.cell, mailbox, accepted.flow);
                    if tell {
                        part.look();
                    }
                    return Ok(Some(stream));
                }
                Ok(None) => {}
                Err(error) => lost = Some(error),
            }
        }
        lost.map_or(Ok(None), Err)
    }

    /// The task of `waker` polls, at every shard. Returns those before it, to be dropped.
    pub(crate) fn register(&self, waker: &Waker) -> Vec<Waker> {
        let register = |part: &Part| part.backlog.lock().waiters.register(waker);
        self.parts.iter().filter_map(register).collect()
    }

    /// The task of `waker` awaits, at every shard; `tickets` has a place for each, or none yet.
    /// Returns the wakers that it had before, to be dropped.
    pub(crate) fn line_up(&self, tickets: &mut Vec<Option<Ticket>>, waker: &Waker) -> Vec<Waker> {
        tickets.resize(self.parts.len(), None);
        let line_up = |(part, ticket): (&Part, &mut Option<Ticket>)| {
            part.backlog.lock().waiters.line_up(ticket, waker)
        };
        self.parts.iter().zip(tickets).filter_map(line_up).collect()
    }

    /// Who had these tickets awaits no more. Returns its wakers, to be dropped.
    pub(crate) fn leave(&self, tickets: &[Option<Ticket>]) -> Vec<Waker> {
        let leave = |(part, ticket): (&Part, &Option<Ticket>)| {
            part.backlog.lock().waiters.leave((*ticket)?)
        };
        self.parts.iter().zip(tickets).filter_map(leave).collect()
    }

    /// What connections inherit from now on.
    pub(crate) fn set(&self, set: impl Fn(&mut Settings)) {
        for part in &self.parts {
            set(&mut part.backlog.lock().settings);
            part.look();
        }
    }

    /// What they inherit.
    pub(crate) fn settings(&self) -> Option<Settings> {
        self.parts.first().map(|part| part.backlog.lock().settings)
    }
}

impl Part {
    /// The shard is to look at it.
    fn look(&self) {
        self.mailbox.ask(Request::Backlog(Arc::clone(&self.backlog)));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for part in &self.parts {
            let wakers = part.backlog.lock().on_drop();
            part.look();
            drop(wakers);
        }
    }
}
