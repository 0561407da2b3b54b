//! What a connection is handed with every call: the time, the rules, and where to count.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use whimbrel_base::{Instant, Tick};

use crate::budget::Budget;
use crate::conn::{Cold, Ledger};
use crate::{Counters, Tunables};

/// The surroundings of one call into the protocol.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time of the burst being processed; one reading serves all its segments.
    pub now: Instant,
    /// The millisecond it lies in: several of each segment's steps note it, and it takes a division.
    pub tick: Tick,
    /// The rules in force.
    pub tunables: &'a Tunables,
    /// What happened, by name.
    pub counters: &'a mut Counters,
    /// Cold halves waiting for a connection that has something to buffer.
    pub pool: &'a mut ColdPool,
}

/// Cold halves and ledgers of connections, kept for the next that needs one, so that a short connection
/// allocates nothing. Holds at most [`ColdPool::BOUND`]
/// of each.
#[derive(Debug, Default)]
pub struct ColdPool {
    // The box is what circulates: a connection and the pool hand each other the pointer.
    #[expect(clippy::vec_box)]
    idle: Vec<Box<Cold>>,
    #[expect(clippy::vec_box)]
    ledgers: Vec<Box<Ledger>>,
    lent: usize,
    /// What all of it is part of.
    pub budget: Budget,
    /// Room for short texts of any connection.
    room: BytesMut,
}

impl ColdPool {
    /// The most cold halves kept idle: enough for a burst of 64 in and 64 out on either side.
    pub const BOUND: usize = 256;

    /// Texts up to this length share chunks.
    pub(crate) const SHORT: usize = 512;

    /// The room of a chunk: what one text can pin at most, no more than a second text of an octet
    /// would open for its connection alone.
    pub(crate) const CHUNK: usize = 2048;

    /// A cold half, empty.
    pub fn take(&mut self) -> Box<Cold> {
        self.lent += 1;
        self.idle.pop().unwrap_or_default()
    }

    /// Takes a cold half back, lets go of all it held, and keeps it if there is room.
    pub fn give(&mut self, mut cold: Box<Cold>) {
        cold.reset();
        self.give_empty(cold);
    }

    /// Takes back one that nothing is in, which nearly each was until then.
    #[inline]
    pub(crate) fn give_empty(&mut self, mut cold: Box<Cold>) {
        self.lent = self.lent.saturating_sub(1);
        let accounted = cold.take_accounted();
        if accounted > 0 {
            self.budget.release_text(accounted);
        }
        if self.idle.len() < Self::BOUND {
            self.idle.push(cold);
        }
    }

    /// A ledger with nothing set apart: each connection has one from its beginning to its end.
    pub fn take_ledger(&mut self) -> Box<Ledger> {
        self.ledgers.pop().unwrap_or_default()
    }

    /// Takes a ledger back, and keeps it if there is room. Its counts are those of the connection that it
    /// comes from, until the next begins its own.
    pub fn give_ledger(&mut self, mut ledger: Box<Ledger>) {
        if self.ledgers.len() < Self::BOUND {
            ledger.retire();
            self.ledgers.push(ledger);
        }
    }

    /// Copies a text, at most [`ColdPool::SHORT`] octets: into a chunk that it shares with others, as an
    /// allocation for each costs four times the copy. The chunk stays as long as any of them does.
    pub(crate) fn keep(&mut self, text: &[u8]) -> Bytes {
        debug_assert!(text.len() <= Self::SHORT, "a long text would pin what is short");
        if self.room.capacity() < text.len() {
            self.room = BytesMut::with_capacity(Self::CHUNK);
        }
        self.room.extend_from_slice(text);
        self.room.split().freeze()
    }

    /// What cold halves and ledgers take that are here or with `connections`, bytes, of text
    /// [`Budget::ALLOWANCE`] each.
    pub fn memory(&self, connections: usize) -> usize {
        let halves = self.lent * (size_of::<Cold>() + Budget::ALLOWANCE as usize)
            + self.idle.len() * size_of::<Cold>();
        halves + (connections + self.ledgers.len()) * size_of::<Ledger>()
    }

    /// How many are with a connection now. Zero when every connection is idle or gone.
    pub const fn lent(&self) -> usize {
        self.lent
    }
}
