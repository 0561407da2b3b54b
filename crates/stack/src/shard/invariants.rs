//! What must hold of a shard between any two calls: for simulations and tests. Walks everything;
//! nothing on a segment's way asks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use whimbrel_base::Instant;
use whimbrel_tcp::table::{Kind, Record, SynEntry};

use super::{EventSource, Shard};
use crate::connections::ConnectionSlot;
use crate::ip::FlowKey;

/// What was counted on the walk.
#[derive(Default)]
struct Walked {
    linked: usize,
    armed: usize,
    buffers: usize,
    accounted: u64,
}

impl Shard {
    /// Whether lists, timers, table, slabs and connections agree; if not, who disagrees.
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
        let slab = &self.tcp.records.connections.0;
        for (index, slot) in walk(|index| slab.first_from(index)) {
            let places = [&dirty, &listed].map(|list| list.get(&index).copied().unwrap_or(0));
            self.check_slot(index, slot, places)
                .map_err(|what| format!("connection {index}: {what}; {:?}", slot.connection))?;
            tally.linked += usize::from(slot.linked.is_some());
            tally.armed += usize::from(slot.armed != Instant::NEVER);
            tally.buffers += usize::from(slot.connection.holds_buffers());
            tally.accounted += u64::from(slot.connection.accounted());
        }
        self.check_counts(&tally, self.check_half_open()?)
    }

    fn check_slot(
        &self,
        index: u32,
        slot: &ConnectionSlot,
        [dirty, listed]: [usize; 2],
    ) -> Result<(), &'static str> {
        let max_text = self.tcp.cutting.turn;
        let connection = &slot.connection;
        connection.check_invariants(max_text)?;
        let record = self.find(&FlowKey::of(connection));
        let checks = [
            (slot.dirty || !connection.wants_transmit(max_text), "it wants to transmit unlisted"),
            (!slot.dirty || dirty >= 1, "it is dirty and not in the list"),
            (!slot.listed || listed >= 1, "it has news and is not in the list"),
            (connection.next_deadline() >= slot.armed, "its timer fires too late"),
            (
                slot.linked.is_none() || record == Some(Record::new(Kind::Connection, index)),
                "the flow table does not lead to it",
            ),
            (slot.linked.is_some() || !connection.is_orphan(), "it is over and nobody holds it"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }

    /// How many TIME-WAIT records a half-open entry stands in front of.
    fn check_half_open(&self) -> Result<usize, String> {
        let mut displaced = 0;
        for (index, entry) in walk(|index| self.tcp.records.syns.first_from(index)) {
            let key = FlowKey::of_half_open(entry);
            if self.find(&key) != Some(Record::new(Kind::SynEntry, index)) {
                return Err(format!("half-open {index}: the flow table does not lead to it"));
            }
            displaced += usize::from(self.keeps_wait(entry));
        }
        Ok(displaced)
    }

    fn keeps_wait(&self, entry: &SynEntry) -> bool {
        let key = FlowKey::of_half_open(entry);
        let wait = entry.time_wait().and_then(|wait| self.tcp.records.waits.get(wait));
        wait.is_some_and(|wait| FlowKey::of_waiting(wait) == key)
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

    fn find(&self, key: &FlowKey) -> Option<Record> {
        self.tcp.records.find(self.tcp.records.hash(key), key)
    }
}

fn count(indices: impl Iterator<Item = u32>) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for index in indices {
        *counts.entry(index).or_default() += 1;
    }
    counts
}

/// Every record of a slab, by its chunk-wise walk.
fn walk<'a, T: 'a>(
    first_from: impl Fn(u32) -> Option<Result<(u32, &'a T), u32>>,
) -> impl Iterator<Item = (u32, &'a T)> {
    let mut next = 0;
    core::iter::from_fn(move || {
        loop {
            match first_from(next)? {
                Ok((index, record)) => {
                    next = index + 1;
                    return Some((index, record));
                }
                Err(on) => next = on,
            }
        }
    })
}
