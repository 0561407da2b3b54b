//! Every record of every flow, and the one table that finds it.

use whimbrel_base::{Instant, Key};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::table::{
    FlowHash, FlowHasher, FlowTable, Kind, Lifetimes, Record, SynCache, SynEntry, TimeWait,
    TimeWaits,
};

use crate::Handle;
use crate::dial::SynHandle;
use crate::ip::FlowKey;
use crate::tcp_host::connections::{ConnectionSlot, Connections};
use crate::tcp_host::markings::Markings;

/// The records of a shard: one keyed probe finds that of a segment, whatever its kind.
#[derive(Debug)]
pub(crate) struct Records {
    hasher: FlowHasher,
    pub(crate) flows: FlowTable,
    pub(crate) syns: SynCache,
    pub(crate) connections: Connections,
    pub(crate) waits: TimeWaits,
    /// The lifetimes of records in TIME-WAIT, by the rules in force.
    pub(crate) lifetimes: Lifetimes,
    pub(crate) markings: Markings,
}

impl Records {
    pub(crate) fn new(key: &Key, tunables: &Tunables) -> Self {
        Self {
            hasher: FlowHasher::new(key),
            flows: FlowTable::new(),
            syns: SynCache::new(tunables, key),
            connections: Connections::default(),
            waits: TimeWaits::new(),
            lifetimes: Lifetimes::new(tunables),
            markings: Markings::default(),
        }
    }

    /// The connection that an application names, if it still holds it.
    #[inline(always)]
    pub(crate) fn held_mut(&mut self, handle: Handle) -> Option<&mut ConnectionSlot> {
        let slot = self.connections.0.get_mut_of(handle.index, handle.generation);
        slot.filter(|slot| !slot.connection.is_orphan())
    }

    /// Returns the connection that an application names, if it still holds it.
    pub(crate) fn held(&self, handle: Handle) -> Option<&ConnectionSlot> {
        let slot = self.connections.0.get(handle.index)?;
        // A handle outlives its connection, and its place may have another by now.
        let current = self.connections.0.generation(handle.index) == handle.generation;
        (current && !slot.connection.is_orphan()).then_some(slot)
    }

    /// The name of the connection at `index`.
    pub(crate) fn handle(&self, index: u32) -> Handle {
        Handle { generation: self.connections.0.generation(index), index }
    }

    /// Every connection, in the order of their places.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (u32, &ConnectionSlot)> {
        walk(0, |index| self.connections.0.first_from(index))
    }

    /// The first connection at `index` or behind it.
    pub(crate) fn first_connection_from(&self, index: u32) -> Option<u32> {
        walk(index, |index| self.connections.0.first_from(index)).next().map(|(index, _)| index)
    }

    /// Every half-open entry, in the order of their places.
    pub(crate) fn half_open(&self) -> impl Iterator<Item = (u32, &SynEntry)> {
        walk(0, |index| self.syns.first_from(index))
    }

    /// The name of the half-open entry at `index`.
    pub(crate) fn syn_handle(&self, index: u32, entry: &SynEntry) -> SynHandle {
        SynHandle { index, generation: self.syns.generation(index), iss: entry.iss().raw() }
    }

    /// The number of the TIME-WAIT record that a half-open entry displaced, if it is still there.
    #[inline]
    pub(crate) fn wait_kept_by(&self, entry: &SynEntry) -> Option<u32> {
        entry.time_wait().filter(|wait| self.is_kept_by(*wait, entry))
    }

    #[inline(never)]
    fn is_kept_by(&self, wait: u32, entry: &SynEntry) -> bool {
        let key = FlowKey::of_half_open(entry);
        self.waits.get(wait).is_some_and(|wait| key.is_of_waiting(wait))
    }

    /// The table leads no longer to a half-open entry, but again to the TIME-WAIT record that it would
    /// have replaced; if that expired meanwhile, to nothing. Returns whether a record is found again.
    pub(crate) fn unlink_half_open(&mut self, index: u32, entry: &SynEntry) -> bool {
        let hash = self.hash(&FlowKey::of_half_open(entry));
        let record = Record::new(Kind::SynEntry, index);
        let kept = self.wait_kept_by(entry);
        match kept {
            Some(wait) => self.flows.replace(hash, record, Record::new(Kind::TimeWait, wait)),
            None => self.flows.remove(hash, record),
        };
        kept.is_some()
    }

    /// A record in TIME-WAIT goes before its time.
    pub(crate) fn remove_wait(&mut self, index: u32) -> Option<TimeWait> {
        let wait = self.waits.remove(index)?;
        self.unlink_wait(index, &wait);
        Some(wait)
    }

    /// The table forgets a record in TIME-WAIT that is gone.
    pub(crate) fn unlink_wait(&mut self, index: u32, wait: &TimeWait) {
        let hash = self.hash(&FlowKey::of_waiting(wait));
        self.flows.remove(hash, Record::new(Kind::TimeWait, index));
    }

    /// True if there are more records in TIME-WAIT than `most`, which was lowered.
    pub(crate) fn has_surplus_waits(&self, most: u32) -> bool {
        self.waits.len() > most as usize
    }

    /// When the next record in TIME-WAIT expires, or goes as one too many.
    pub(crate) fn next_wait_expiry(&self, now: Instant, most: u32) -> Option<Instant> {
        if self.has_surplus_waits(most) {
            return Some(now);
        }
        self.waits.next_expiry(now, &self.lifetimes)
    }

    /// Memory of all of them, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.connections.0.len() * size_of::<ConnectionSlot>()
            + self.syns.len() * size_of::<SynEntry>()
            + self.waits.len() * size_of::<TimeWait>()
            + self.flows.memory()
    }

    /// True if the table leads still to what was found, as connections and half-open entries tell
    /// themselves. Of a record in TIME-WAIT it cannot be said without looking: a half-open entry may
    /// stand in front of it.
    #[inline]
    pub(crate) fn still_leads(&self, record: Option<Record>, key: &FlowKey) -> bool {
        let telling = record.filter(|record| record.kind() != Kind::TimeWait);
        telling.is_some_and(|record| self.is_record_of(record, key))
    }

    #[inline]
    pub(crate) fn hash(&self, key: &FlowKey) -> FlowHash {
        self.hasher.hash(&key.remote, key.remote_port, key.local_port, key.local_index)
    }

    /// The record of a flow.
    #[inline]
    pub(crate) fn find(&self, hash: FlowHash, key: &FlowKey) -> Option<Record> {
        self.flows.find(hash, |record| self.is_record_of(record, key))
    }

    // Always: what most segments meet is compared in place.
    #[inline(always)]
    pub(crate) fn is_record_of(&self, record: Record, key: &FlowKey) -> bool {
        if record.kind() == Kind::Connection {
            let slot = self.connections.0.get(record.index());
            return slot.is_some_and(|slot| slot.is_flow(key));
        }
        self.is_small_record_of(record, key)
    }

    #[inline(never)]
    fn is_small_record_of(&self, record: Record, key: &FlowKey) -> bool {
        let index = record.index();
        if record.kind() == Kind::SynEntry {
            self.syns.get(index).is_some_and(|entry| key.is_of_half_open(entry))
        } else {
            self.waits.get(index).is_some_and(|wait| key.is_of_waiting(wait))
        }
    }
}

/// Every record of a slab from `next` on, by its walk from chunk to chunk.
pub(crate) fn walk<'a, T: 'a>(
    mut next: u32,
    first_from: impl Fn(u32) -> Option<Result<(u32, &'a T), u32>>,
) -> impl Iterator<Item = (u32, &'a T)> {
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
