//! Invariants of a shard between any two calls: for simulations and tests. Walks everything;
//! nothing on a segment's way asks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use whimbrel_base::Instant;

use super::{EventSource, Shard};

/// Numbers counted on the walk.
#[derive(Default)]
struct Walked {
    linked: usize,
    armed: usize,
    buffers: usize,
    accounted: u64,
}

impl Shard {
    /// Checks that lists, timers, table, slabs and connections agree; the error names what disagrees.
    ///
    /// A connection wants to transmit only if it is dirty; dirty ones stand in the list once. (One
    /// that became dirty and then lost its wish stays listed until [`Shard::tx`] passes it.)
    pub fn check_invariants(&self) -> Result<(), String> {
        let dirty = count(self.tcp.work.dirty.iter().copied());
        let listed = count(self.tcp.work.events.iter().filter_map(|source| match source {
            EventSource::Connection(index) => Some(*index),
            EventSource::Listener(_) => None,
        }));
        let mut tally = Walked::default();
        let (records, max_text) = (&self.tcp.records, self.tcp.segmentation.turn);
        for (index, slot) in records.connections() {
            let places = [&dirty, &listed].map(|list| list.get(&index).copied().unwrap_or(0));
            records
                .check_slot(index, slot, places, max_text)
                .map_err(|what| format!("connection {index}: {what}; {:?}", slot.connection))?;
            let is_known = slot.dirty || self.tcp.work.pacing.is_waiting(index);
            if slot.connection.is_paced() && !is_known {
                return Err(format!("connection {index}: its text waits, and no clock knows"));
            }
            tally.linked += usize::from(slot.linked.is_some());
            tally.armed += usize::from(slot.timer.at != Instant::NEVER);
            tally.buffers += usize::from(slot.connection.holds_buffers());
            tally.accounted += u64::from(slot.connection.accounted());
        }
        self.check_counts(&tally, records.check_half_open()?)
    }

    fn check_counts(&self, tally: &Walked, displaced: usize) -> Result<(), String> {
        let census = self.census();
        let flows = tally.linked + census.syn_entries + census.time_wait - displaced;
        let text = self.cx.pool.budget.text();
        if text != tally.accounted {
            return Err(format!(
                "the budget has {text} B of text, connections {}",
                tally.accounted
            ));
        }
        let pairs = [
            ("flows in the table and records", census.flows, flows),
            ("timers that are armed and connections that armed one", census.timers, tally.armed),
            ("buffers lent and held", census.buffers, tally.buffers),
        ];
        match pairs.into_iter().find(|(_, left, right)| left != right) {
            Some((what, left, right)) => Err(format!("{what} differ: {left} and {right}")),
            None => Ok(()),
        }
    }
}

fn count(indices: impl Iterator<Item = u32>) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for index in indices {
        *counts.entry(index).or_default() += 1;
    }
    counts
}
