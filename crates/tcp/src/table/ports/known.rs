//! Destinations and their ports in use: the number towards each and, where those are many, the ports
//! themselves.
//!
//! A destination with up to 64 ports in use is a slot of 8 bytes: a hash and a count. One more, and
//! it has a [`PortMap`], at most [`MAPS`] of them at once. Destinations whose hashes are equal share
//! a count, and so have a map a little earlier, or later; a map belongs to one alone.

use alloc::vec::Vec;

use whimbrel_base::{Slab, cold_path};

use super::map::{Destination, PortMap};
use crate::Counters;
use crate::table::{FlowHash, FlowTable, Kind, Record};

#[derive(Debug)]
pub(super) struct Known {
    /// By the destination's hash: a count, or the place of a map.
    table: FlowTable,
    maps: Slab<PortMap>,
    /// The map that was asked for last: most who ask, ask for it again.
    last: u32,
    /// The map that is looked at next when one must go.
    hand: u32,
}

/// A destination, and its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed<'a> {
    pub(super) towards: &'a Destination,
    pub(super) hash: u32,
}

impl Known {
    pub(super) const fn new() -> Self {
        Self { table: FlowTable::new(), maps: Slab::new(), last: 0, hand: 0 }
    }

    /// True if more than one port is in use, or a map is kept.
    pub(super) fn has_others(&self, of: Hashed<'_>) -> bool {
        let many = || self.counted(of).is_some_and(|record| record.index() > 1);
        self.mapped(of).is_some() || many()
    }

    pub(super) fn map_mut(&mut self, of: Hashed<'_>) -> Option<&mut PortMap> {
        let record = self.mapped(of)?;
        self.last = record.index();
        self.maps.get_mut(record.index())
    }

    /// A port is in use from now on.
    pub(super) fn claim(&mut self, of: Hashed<'_>, port: u16, counters: &mut Counters) {
        if let Some(map) = self.map_mut(of) {
            return map.claim(port);
        }
        let hash = FlowHash(of.hash);
        match self.table.update(hash, |record| counting(record, record.index().saturating_add(1))) {
            None => self.table.insert(hash, Record::new(COUNT, 1)),
            Some(record) if record.index() > FEW => {
                cold_path();
                if let Some(map) = self.add_map(of, counters) {
                    map.claim(port);
                }
            }
            Some(_) => {}
        }
    }

    /// A port is in use no longer.
    pub(super) fn release(&mut self, of: Hashed<'_>, port: u16) {
        let hash = FlowHash(of.hash);
        if let Some(record) = self.mapped(of) {
            return self.release_mapped(record, port);
        }
        let left =
            self.table.update(hash, |record| counting(record, record.index().saturating_sub(1)));
        if let Some(none) = left.filter(|record| record.index() == 0) {
            self.table.remove(hash, none);
        }
    }

    /// Gives back a port to a destination that has a map of those taken.
    #[inline(never)]
    fn release_mapped(&mut self, record: Record, port: u16) {
        let Some(map) = self.maps.get_mut(record.index()) else { return };
        map.release(port);
        if map.is_useless() {
            self.remove_map(record);
        }
    }

    /// A map for the destination, in place of its count, if there may be one more. It knows of no
    /// port in use: those there are (64, as a rule) are found out one by one, by looking at each
    /// that seems free, and once.
    pub(super) fn add_map(
        &mut self,
        of: Hashed<'_>,
        counters: &mut Counters,
    ) -> Option<&mut PortMap> {
        if self.maps.len() >= MAPS && !self.make_room() {
            counters.port_maps_refused += 1;
            return None;
        }
        let hash = FlowHash(of.hash);
        let index = self.maps.insert(PortMap::new(*of.towards, of.hash));
        let map = Record::new(MAP, index);
        match self.counted(of) {
            Some(count) => {
                self.table.replace(hash, count, map);
            }
            None => self.table.insert(hash, map),
        }
        self.maps.get_mut(index)
    }

    /// Gives up a map that no port in use needs, if one is near.
    fn make_room(&mut self) -> bool {
        for _ in 0..LOOKS {
            match self.maps.first_from(self.hand) {
                Some(Ok((index, map))) => {
                    self.hand = index + 1;
                    if map.is_idle() {
                        self.remove_map(Record::new(MAP, index));
                        return true;
                    }
                }
                // A step over what is free counts as a look, too: the work stays bounded.
                Some(Err(next)) => self.hand = next,
                None => self.hand = 0,
            }
        }
        false
    }

    fn remove_map(&mut self, record: Record) {
        if let Some(map) = self.maps.remove(record.index()) {
            self.table.remove(FlowHash(map.hash), record);
        }
    }

    #[inline]
    fn mapped(&self, of: Hashed<'_>) -> Option<Record> {
        if self.maps.is_empty() { None } else { self.find_map(of) }
    }

    /// The map of a destination, if it is among those that have one.
    #[inline(never)]
    fn find_map(&self, of: Hashed<'_>) -> Option<Record> {
        let is_it = |map: &PortMap| map.towards == *of.towards;
        // There is one at most, and it stays in the table while it exists.
        if self.maps.get(self.last).is_some_and(is_it) {
            return Some(Record::new(MAP, self.last));
        }
        self.table.find(FlowHash(of.hash), |record| {
            let map = (record.kind() == MAP).then(|| self.maps.get(record.index())).flatten();
            map.is_some_and(is_it)
        })
    }

    fn counted(&self, of: Hashed<'_>) -> Option<Record> {
        self.table.find(FlowHash(of.hash), |record| record.kind() == COUNT)
    }

    /// The number of destinations have ports in use. It walks the maps.
    pub(super) fn in_use(&self) -> usize {
        let idle =
            self.map_places().filter(|place| self.maps.get(*place).is_some_and(PortMap::is_idle));
        self.table.len() - idle.count()
    }

    /// Other ports can be drawn from now on. It walks the maps.
    pub(super) fn forget_elsewhere(&mut self) {
        let places: Vec<_> = self.map_places().collect();
        for place in places {
            if let Some(map) = self.maps.get_mut(place) {
                map.forget_elsewhere();
            }
        }
    }

    fn map_places(&self) -> impl Iterator<Item = u32> {
        let mut next = 0;
        core::iter::from_fn(move || {
            loop {
                match self.maps.first_from(next)? {
                    Ok((index, _)) => {
                        next = index + 1;
                        return Some(index);
                    }
                    Err(further) => next = further,
                }
            }
        })
    }
}

/// A count instead of another, if `record` is one.
fn counting(record: Record, count: u32) -> Option<Record> {
    (record.kind() == COUNT).then(|| Record::new(COUNT, count.min(Record::MAX_INDEX)))
}

/// The contents of a slot of the table here: two of the kinds that it can tell apart.
const COUNT: Kind = Kind::Connection;
const MAP: Kind = Kind::TimeWait;

/// Up to as many ports in use are found by looking at one after the other.
pub(super) const FEW: u32 = 64;
/// The most maps: 8 KiB each, and 2 bytes for each port that waits, or came back from a peer that
/// refuses.
pub(super) const MAPS: usize = 1024;
/// The number of maps are looked at for one that can go.
const LOOKS: usize = 8;
