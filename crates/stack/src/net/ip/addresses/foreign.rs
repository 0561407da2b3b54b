//! Addresses of others that this host speaks for, numbered like its own while something refers to them.
//!
//! A host that takes packets for any address cannot list them beforehand. One gets a number when a segment
//! for it arrives, behind those of the host's own addresses, and keeps it for as long as a record, or an
//! answer that waits to leave, has that number: these are counted.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use whimbrel_wire::Address;

use super::FIRST_LOOPBACK;

/// The numbered addresses of others.
#[derive(Debug)]
pub(super) struct ForeignAddresses {
    /// The number of the first place.
    first: u16,
    places: Vec<Place>,
    free: Vec<u16>,
    index_of: BTreeMap<Address, u16>,
    /// Those that nothing referred to at some time since the last sweep, each once.
    unreferred: Vec<u16>,
}

#[derive(Debug)]
struct Place {
    addr: Address,
    /// Number of records and answers that refer to it.
    references: u32,
    /// It is to be swept if it still has none.
    unreferred: bool,
}

impl ForeignAddresses {
    /// None yet, numbered from `first` on.
    pub(super) const fn new(first: u16) -> Self {
        Self {
            first,
            places: Vec::new(),
            free: Vec::new(),
            index_of: BTreeMap::new(),
            unreferred: Vec::new(),
        }
    }

    /// The least number that one of them can have.
    pub(super) const fn first(&self) -> u16 {
        self.first
    }

    pub(super) fn get(&self, index: u16) -> Option<&Address> {
        self.place(index).map(|place| &place.addr)
    }

    pub(super) fn index_of(&self, addr: &Address) -> Option<u16> {
        self.index_of.get(addr).copied()
    }

    /// Returns the number of foreign addresses.
    pub(super) fn len(&self) -> usize {
        self.index_of.len()
    }

    /// Returns the number of further addresses that can have one.
    pub(super) fn spare(&self) -> usize {
        usize::from(FIRST_LOOPBACK - self.first) - self.index_of.len()
    }

    /// The number of `addr`, which it gets if it has none; `None` if none is left. Unless something refers to
    /// it by then, [`ForeignAddresses::sweep`] takes it back.
    pub(super) fn intern(&mut self, addr: Address) -> Option<u16> {
        if let Some(known) = self.index_of(&addr) {
            return Some(known);
        }
        let place = Place { addr, references: 0, unreferred: true };
        let index = match self.free.pop() {
            Some(index) => {
                *self.places.get_mut(usize::from(index.checked_sub(self.first)?))? = place;
                index
            }
            None => {
                let next = usize::from(self.first) + self.places.len();
                let index = u16::try_from(next).ok().filter(|index| *index < FIRST_LOOPBACK)?;
                self.places.push(place);
                index
            }
        };
        self.index_of.insert(addr, index);
        self.unreferred.push(index);
        Some(index)
    }

    /// One more has this number.
    pub(super) fn hold(&mut self, index: u16) {
        if let Some(place) = self.place_mut(index) {
            place.references += 1;
        }
    }

    /// One less has this number. Without any it is free with the next sweep, not before: a segment of the
    /// same burst may have been read with it.
    pub(super) fn release(&mut self, index: u16) {
        let Some(place) = self.place_mut(index) else { return };
        debug_assert!(place.references > 0, "address {index} has more releases than references");
        place.references = place.references.saturating_sub(1);
        if place.references == 0 && !place.unreferred {
            place.unreferred = true;
            self.unreferred.push(index);
        }
    }

    /// Takes back the numbers that nothing refers to.
    pub(super) fn sweep(&mut self) {
        while let Some(index) = self.unreferred.pop() {
            let Some(place) = self.place_mut(index) else { continue };
            place.unreferred = false;
            if place.references == 0 {
                let addr = place.addr;
                self.index_of.remove(&addr);
                self.free.push(index);
            }
        }
        if self.index_of.is_empty() && !self.places.is_empty() {
            // Nothing is left of a scan that is over.
            (self.places, self.free) = (Vec::new(), Vec::new());
        }
    }

    fn place(&self, index: u16) -> Option<&Place> {
        self.places.get(usize::from(index.checked_sub(self.first)?))
    }

    fn place_mut(&mut self, index: u16) -> Option<&mut Place> {
        self.places.get_mut(usize::from(index.checked_sub(self.first)?))
    }
}

#[cfg(test)]
mod tests;
