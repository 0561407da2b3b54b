//! Every record of every flow, and the one table that finds it.

use whimbrel_base::Key;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::table::{
    FlowHash, FlowHasher, FlowTable, Kind, Lifetimes, Record, SynCache, TimeWaits,
};

use crate::Handle;
use crate::connections::{ConnectionSlot, Connections};
use crate::ip::FlowKey;
use crate::markings::Markings;

/// The records of a shard: one keyed probe finds that of a segment, whatever its kind.
#[derive(Debug)]
pub(crate) struct Records {
    hasher: FlowHasher,
    pub(crate) flows: FlowTable,
    pub(crate) syns: SynCache,
    pub(crate) connections: Connections,
    pub(crate) waits: TimeWaits,
    /// How long records in TIME-WAIT live, by the rules in force.
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
            self.syns.get(index).is_some_and(|entry| FlowKey::of_half_open(entry) == *key)
        } else {
            self.waits.get(index).is_some_and(|wait| FlowKey::of_waiting(wait) == *key)
        }
    }
}
