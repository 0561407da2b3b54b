//! Memory of a shard, and what it gives back.

use core::time::Duration;

use whimbrel_base::{Instant, Tick};
use whimbrel_tcp::Context;
use whimbrel_tcp::budget::Pressure;
use whimbrel_tcp::recv::ChunkPool;

use super::Shard;
use crate::protocol::Protocol;

/// Memory that a shard holds for its peers and applications.
///
/// Not counted is what lies outside of it: chunks between a shard and the tasks of an application,
/// and what applications keep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Memory {
    /// Memory held, bytes: text and records.
    pub held: u64,
    /// Of that, what connections hold of text, received or to be sent, bytes; of each all but the
    /// first 512, which count as part of its record.
    pub text: u64,
    /// The most it may hold: `mem.budget`, bytes.
    pub budget: u64,
    /// The pressure: how near the one is to the other.
    pub pressure: Pressure,
}

/// Those of two shards: the greater pressure.
impl core::ops::AddAssign for Memory {
    fn add_assign(&mut self, other: Self) {
        let Self { held, text, budget, pressure } = other;
        self.held += held;
        self.text += text;
        self.budget += budget;
        self.pressure = self.pressure.max(pressure);
    }
}

impl Shard {
    /// Returns the memory held at this moment.
    pub fn memory(&self) -> Memory {
        let budget = &self.cx.pool.budget;
        Memory {
            held: budget.text() + self.records_memory(),
            text: budget.text(),
            budget: self.cx.tunables.mem_budget,
            pressure: budget.pressure(),
        }
    }

    /// Counts the memory of records, and so updates the pressure: once a millisecond.
    #[inline(never)]
    pub(super) fn update_memory(&mut self) {
        self.memory.checked_at = self.cx.tick;
        self.packets.udp.count_held();
        let bytes = self.records_memory();
        let wanted = self.cx.pool.wanted(self.tcp.records.connections.0.len());
        self.cx.pool.budget.note_records(bytes, wanted as u64, &mut self.cx.env.counters);
        self.memory.released.note_held(self.cx.pool.budget.held());
    }

    /// True if so much less is held than was that the process should have its allocator give memory back
    /// to the system: 64 MiB were, and a quarter of it is left. Says so once.
    ///
    /// An allocator gives back what lies at the end of its memory. What lies in its midst, between what
    /// stays, it keeps, unless the process asks (`malloc_trim`).
    pub fn take_release(&mut self) -> bool {
        core::mem::take(&mut self.memory.released.is_due)
    }

    /// The chunks that received text is kept in, for a device that [reads into
    /// some](crate::RxFrame::chunk).
    pub const fn chunk_pool(&mut self) -> &mut ChunkPool {
        &mut self.cx.pool.chunks
    }

    /// Returns the memory of all records of one size and of fragments, bytes.
    fn records_memory(&self) -> u64 {
        let (records, pool) = (&self.tcp.records, &self.cx.pool);
        // Chunks that no text is in: all but what text takes, be it in chunks or elsewhere. Those count here
        // too that applications have, as long as the pool knows of them.
        let idle_chunks = pool.chunks.bytes().saturating_sub(pool.budget.text() as usize);
        let bytes = self.tcp.memory()
            + self.packets.memory()
            + pool.memory(records.connections.0.len())
            + idle_chunks
            + self.net.memory();
        bytes as u64
    }
}

/// When a shard looks at its memory, and what it saw.
#[derive(Debug, Default)]
pub(super) struct MemoryWatch {
    /// When records were counted last.
    pub(super) checked_at: Tick,
    /// When unneeded chunks are given back next, if there are any.
    trim_at: Instant,
    released: Released,
}

impl MemoryWatch {
    /// Gives back unneeded chunks, once that is due.
    pub(super) fn trim_chunks(&mut self, cx: &mut Context) {
        if self.chunks_deadline(cx).is_some_and(|due| due <= cx.now) {
            self.trim_unneeded(cx);
        }
    }

    #[cold]
    #[inline(never)]
    fn trim_unneeded(&mut self, cx: &mut Context) {
        let has_more = cx.pool.chunks.trim();
        self.trim_at = cx.now + if has_more { TRIMMED_EVERY } else { CHUNKS_KEPT };
        self.released.note_trimmed(cx.pool.budget.held());
    }

    /// When unneeded chunks are given back next, if there are chunks.
    pub(super) fn chunks_deadline(&self, cx: &Context) -> Option<Instant> {
        (!cx.pool.chunks.is_empty()).then_some(self.trim_at)
    }
}

/// The most memory held, and whether much less is held now.
#[derive(Debug, Default)]
struct Released {
    /// The most since much was released, bytes.
    most: u64,
    is_due: bool,
}

impl Released {
    fn note_held(&mut self, held: u64) {
        self.most = self.most.max(held);
    }

    /// Chunks were given back, a moment after they were needed last.
    fn note_trimmed(&mut self, held: u64) {
        if self.most >= WORTH_RELEASING && held < self.most / 4 {
            (self.most, self.is_due) = (held, true);
        }
    }
}

/// Bytes that were held before anything is to be given back to the system.
const WORTH_RELEASING: u64 = 64 << 20;
/// The least time for which unneeded chunks are kept; at most twice as long.
const CHUNKS_KEPT: Duration = Duration::from_millis(250);
/// The interval at which some of them go, where many are to.
const TRIMMED_EVERY: Duration = Duration::from_millis(1);
