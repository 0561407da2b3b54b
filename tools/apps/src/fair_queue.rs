//! A queue that serves sources in rounds, so that a source with much work waits for itself.

use alloc::collections::BTreeMap;

use crate::source::Source;

/// Pieces of work that wait. Each round serves each source once, and a new piece is in the next round: so the
/// first piece of a source waits for two of each other source at most, and none waits for ever. Each
/// operation takes a few look-ups in trees.
#[derive(Debug)]
pub struct FairQueue<T> {
    waiting: BTreeMap<Ticket, T>,
    /// Round of the last ticket of each source, where that is later than the current one.
    rounds: BTreeMap<Source, u64>,
    /// Round of the piece that was served last.
    current: u64,
    /// Number of the next ticket.
    next: u64,
}

/// Place of a piece of work in the order of a [`FairQueue`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket {
    round: u64,
    number: u64,
}

/// An empty queue.
impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), rounds: BTreeMap::new(), current: 0, next: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Makes the ticket of the next piece of `source`, which may wait by it once or again.
    pub fn ticket(&mut self, source: Source) -> Ticket {
        let last = self.rounds.get(&source).map_or(0, |last| *last);
        let round = last.max(self.current) + 1;
        self.rounds.insert(source, round);
        self.next += 1;
        Ticket { round, number: self.next }
    }

    /// Has a piece wait.
    pub fn wait(&mut self, ticket: Ticket, piece: T) {
        self.waiting.insert(ticket, piece);
    }

    /// Removes a piece that waits no longer.
    pub fn remove(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Takes the next piece.
    pub fn pop(&mut self) -> Option<(Ticket, T)> {
        let next = self.waiting.pop_first();
        if let Some((ticket, _)) = &next {
            self.current = self.current.max(ticket.round);
        }
        if self.rounds.len() > 2 * self.waiting.len() + SLACK {
            let current = self.current;
            self.rounds.retain(|_, last| *last > current);
        }
        next
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Sources remembered beyond those that wait, before the past ones are removed.
const SLACK: usize = 64;

#[cfg(test)]
mod tests;
