//! What the shards of a server did: each posts its own, one prints the sum.

use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

use whimbrel_apps::http::Statistics;
use whimbrel_stack::Shard;
use whimbrel_stack::shard::Census;

use super::report::drops;

/// What one shard did, or all.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    /// Of the server.
    pub(crate) statistics: Statistics,
    /// Of the stack, unless it is the kernel's, whose own are not ours to count.
    pub(crate) stack: Option<StackTotals>,
}

/// What a stack did and holds.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct StackTotals {
    pub(crate) in_segs: u64,
    pub(crate) out_segs: u64,
    pub(crate) retransmitted: u64,
    pub(crate) resets: u64,
    pub(crate) drops: u64,
    pub(crate) census: Census,
}

/// Where they are posted.
#[derive(Debug)]
pub(crate) struct Board(Vec<Mutex<Totals>>);

impl Totals {
    /// Of a server on this stack.
    pub(crate) fn of(statistics: Statistics, shard: Option<&Shard>) -> Self {
        let stack = shard.map(|shard| {
            let counters = shard.counters();
            StackTotals {
                in_segs: counters.in_segs,
                out_segs: counters.out_segs,
                retransmitted: counters.retrans_segs,
                resets: counters.out_rsts,
                drops: drops(counters),
                census: shard.census(),
            }
        });
        Self { statistics, stack }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.statistics += other.statistics;
        let Some(StackTotals { in_segs, out_segs, retransmitted, resets, drops, census }) =
            other.stack
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
    }
}

impl Board {
    /// Of so many shards that did nothing yet.
    pub(crate) fn new(shards: usize) -> Self {
        Self((0..shards).map(|_| Mutex::default()).collect())
    }

    /// The shard numbered `shard` did this so far.
    pub(crate) fn post(&self, shard: usize, totals: Totals) {
        if let Some(place) = self.0.get(shard) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = totals;
        }
    }

    /// What all did, as far as they posted it.
    pub(crate) fn total(&self) -> Totals {
        let mut total = Totals::default();
        for place in &self.0 {
            total += *place.lock().unwrap_or_else(PoisonError::into_inner);
        }
        total
    }
}
