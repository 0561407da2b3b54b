//! What must hold of a shard between any two calls: for simulations and tests. Walks everything;
//! nothing on a segment's way asks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use whimbrel_base::Instant;
use whimbrel_tcp::table::{Kind, Record};

use super::{EventSource, Shard};
use crate::connections::ConnectionSlot;
use crate::ip::FlowKey;
use crate::records::Records;

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
        let (records, max_text) = (&self.tcp.records, self.tcp.cutting.turn);
        for (index, slot) in records.connections() {
            let places = [&dirty, &listed].map(|list| list.get(&index).copied().unwrap_or(0));
            records
                .check_slot(index, slot, places, max_text)
                .map_err(|what| format!("connection {index}: {what}; {:?}", slot.connection))?;
            tally.linked += usize::from(slot.linked.is_some());
            tally.armed += usize::from(slot.armed != Instant::NEVER);
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

impl Records {
    fn check_slot(
        &self,
        index: u32,
        slot: &ConnectionSlot,
        [dirty, listed]: [usize; 2],
        max_text: u32,
    ) -> Result<(), &'static str> {
        let connection = &slot.connection;
        connection.check_invariants(max_text)?;
        let key = FlowKey::of(connection);
        let record = self.find(self.hash(&key), &key);
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
        for (index, entry) in self.half_open() {
            let key = FlowKey::of_half_open(entry);
            if self.find(self.hash(&key), &key) != Some(Record::new(Kind::SynEntry, index)) {
                return Err(format!("half-open {index}: the flow table does not lead to it"));
            }
            displaced += usize::from(self.wait_kept_by(entry).is_some());
        }
        Ok(displaced)
    }
}

fn count(indices: impl Iterator<Item = u32>) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for index in indices {
        *counts.entry(index).or_default() += 1;
    }
    counts
}
