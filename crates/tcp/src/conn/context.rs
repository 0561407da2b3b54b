//! The context of each call into a connection, and the pool that it borrows from.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use whimbrel_base::Instant;
use whimbrel_recovery::cc::Algorithms;

use super::{Buffers, ConnStats};
use crate::budget::Budget;
use crate::recv::{ChunkPool, ShortTexts};
use crate::{Counters, Env, Tunables};

/// The surroundings of each call into a connection, and what it may borrow: a shard has one for all its
/// connections, so that none has to be made for a call.
#[derive(Debug)]
pub struct Context {
    /// The part of it that the whole protocol sees; its fields can be named as this record's own.
    pub env: Env,
    /// Buffers that wait for a connection which has something to buffer.
    pub pool: BufferPool,
}

impl Context {
    /// A shard's at the time `now`: nothing counted, and nothing lent.
    pub fn new(now: Instant, tunables: Tunables) -> Self {
        let (mut pool, mut counters) = (BufferPool::default(), Counters::default());
        pool.set_budget(tunables.mem_budget, &mut counters);
        let algorithms = Algorithms::default();
        let env = Env { now, tick: now.tick(), tunables, counters, algorithms };
        Self { env, pool }
    }
}

impl Deref for Context {
    type Target = Env;

    #[inline]
    fn deref(&self) -> &Env {
        &self.env
    }
}

impl DerefMut for Context {
    #[inline]
    fn deref_mut(&mut self) -> &mut Env {
        &mut self.env
    }
}

/// Buffers of connections, kept for the next that needs them, so that a short connection allocates nothing. Holds at
/// most [`BufferPool::BOUND`].
#[derive(Debug, Default)]
pub struct BufferPool {
    // The box is what circulates: a connection and the pool hand each other the pointer.
    #[expect(clippy::vec_box)]
    idle: Vec<Box<Buffers>>,
    lent: usize,
    /// The budget that all of it is part of.
    pub budget: Budget,
    /// Memory for long texts of any connection.
    pub chunks: ChunkPool,
    /// Memory for short texts of any connection.
    pub short_texts: ShortTexts,
}

impl BufferPool {
    /// The most sets of buffers kept idle: enough for a burst of 64 in and 64 out on
    /// either side.
    pub const BOUND: usize = 256;

    /// From now on so many bytes may be held, a sixteenth of them in chunks that wait for text.
    pub fn set_budget(&mut self, bytes: u64, counters: &mut Counters) {
        self.budget.set_bytes(bytes, counters);
        self.chunks.set_most((bytes / 16) as usize);
    }

    /// Empty buffers: kept ones, or new ones if there are none.
    pub fn take(&mut self) -> Box<Buffers> {
        self.lent += 1;
        self.idle.pop().unwrap_or_else(new_buffers)
    }

    /// Takes buffers back, clears all they held, and keeps them if there is room.
    #[inline(never)]
    pub fn give(&mut self, mut buffers: Box<Buffers>) {
        buffers.reset();
        self.give_empty(buffers);
    }

    /// Takes back one that nothing is in, which nearly each was until then.
    #[inline]
    pub(crate) fn give_empty(&mut self, mut buffers: Box<Buffers>) {
        self.lent = self.lent.saturating_sub(1);
        let accounted = buffers.take_accounted();
        if accounted > 0 {
            self.budget.release_text(accounted);
        }
        if self.idle.len() < Self::BOUND {
            self.idle.push(buffers);
        }
    }

    /// The bytes of buffers that are here or with `connections`, of text [`Budget::ALLOWANCE`] each, and of the
    /// [`ConnStats`] that each connection may have.
    pub fn memory(&self, connections: usize) -> usize {
        let halves = self.lent * Self::LENT + self.idle.len() * size_of::<Buffers>();
        halves + connections * size_of::<ConnStats>()
    }

    /// The bytes that so many connections may take at any time: of text [`Budget::LEAST`], and of those that
    /// have no buffers those.
    pub const fn wanted(&self, connections: usize) -> usize {
        let idle = connections.saturating_sub(self.lent);
        connections * Budget::LEAST as usize + idle * Self::LENT
    }

    /// The bytes of a connection with buffers that are not accounted for.
    const LENT: usize = size_of::<Buffers>() + Budget::ALLOWANCE as usize;

    /// The number of are with a connection now. Zero when every connection is idle or gone.
    pub const fn lent(&self) -> usize {
        self.lent
    }
}

/// Buffers where none are kept.
#[cold]
fn new_buffers() -> Box<Buffers> {
    Box::default()
}
