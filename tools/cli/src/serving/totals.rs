//! Counts of a server's shards: each posts its own, one prints the sum.

use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

use whimbrel_apps::Statistics;
use whimbrel_stack::shard::{Census, Memory, StateCounts};
use whimbrel_stack::{ListenerId, Shard};

/// Counts of one shard, or of all.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    pub(crate) statistics: Statistics,
    /// Of the stack, unless it is the kernel's, whose own are not ours to count.
    pub(crate) stack: Option<StackTotals>,
}

/// Counts and memory of a stack.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct StackTotals {
    pub(crate) in_segs: u64,
    pub(crate) out_segs: u64,
    pub(crate) retransmitted: u64,
    pub(crate) resets: u64,
    pub(crate) drops: u64,
    pub(crate) census: Census,
    /// Its memory, and the limit.
    pub(crate) memory: Memory,
    /// Number of sockets in each state; none of a shard with too many to walk.
    pub(crate) states: StateCounts,
    /// Connections that wait to be accepted, and the most that may.
    pub(crate) accept_queue: (usize, usize),
}

/// Place for the counts of all shards.
#[derive(Debug)]
pub(crate) struct ShardTotals(Vec<Mutex<Totals>>);

impl Totals {
    /// Of a server on this stack.
    pub(crate) fn of(statistics: Statistics, stack: Option<(&Shard, &[ListenerId])>) -> Self {
        let stack = stack.map(|(shard, listeners)| {
            let counters = shard.counters();
            let census = shard.census();
            let walks = census.connections <= MOST_WALKED;
            let listeners = listeners.iter().filter_map(|id| shard.listener(*id));
            let queue = listeners.fold((0, 0), |(waiting, most), listener| {
                (waiting + listener.waiting(), most + listener.backlog() as usize)
            });
            StackTotals {
                in_segs: counters.in_segs,
                out_segs: counters.out_segs,
                retransmitted: counters.retrans_segs,
                resets: counters.out_rsts,
                drops: counters.drops().map(|(_, count)| count).sum(),
                census,
                memory: shard.memory(),
                states: if walks { shard.states() } else { StateCounts::default() },
                accept_queue: queue,
            }
        });
        Self { statistics, stack }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.statistics += other.statistics;
        let Some(StackTotals {
            in_segs,
            out_segs,
            retransmitted,
            resets,
            drops,
            census,
            memory,
            states,
            accept_queue,
        }) = other.stack
        else {
            return;
        };
        let stack = self.stack.get_or_insert_default();
        stack.in_segs += in_segs;
        stack.out_segs += out_segs;
        stack.retransmitted += retransmitted;
        stack.resets += resets;
        stack.drops += drops;
        stack.census += census;
        stack.memory += memory;
        stack.states += states;
        stack.accept_queue.0 += accept_queue.0;
        stack.accept_queue.1 += accept_queue.1;
    }
}

impl ShardTotals {
    /// For `shards` shards without counts yet.
    pub(crate) fn new(shards: usize) -> Self {
        Self((0..shards).map(|_| Mutex::default()).collect())
    }

    /// The shard numbered `shard` did this so far.
    pub(crate) fn post(&self, shard: usize, totals: Totals) {
        if let Some(place) = self.0.get(shard) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = totals;
        }
    }

    /// Sum of the posted counts.
    pub(crate) fn total(&self) -> Totals {
        let mut total = Totals::default();
        for place in &self.0 {
            total += *place.lock().unwrap_or_else(PoisonError::into_inner);
        }
        total
    }
}

/// The most connections that are looked at for their states: a few milliseconds' worth.
const MOST_WALKED: usize = 65_536;
