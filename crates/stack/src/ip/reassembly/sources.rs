//! Who has how much of what waits to become whole.

use alloc::collections::{BTreeMap, BTreeSet};

use whimbrel_wire::{Address, Family};

/// Whom fragments count for: an IPv4 address, or the IPv6 network of 64 bits within which a host
/// may have any address (RFC 4291 2.5.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Source(Address);

impl Source {
    pub(super) fn of(addr: &Address) -> Self {
        match addr.family() {
            Family::V4 => Self(*addr),
            Family::V6 => {
                let network = u128::from_be_bytes(*addr.octets()) >> 64 << 64;
                Self(Address::from_octets(network.to_be_bytes()))
            }
        }
    }
}

/// Every source that has something here.
#[derive(Debug, Default)]
pub(super) struct Sources {
    shares: BTreeMap<Source, Share>,
    /// The same by how much they have.
    by_weight: BTreeSet<(usize, Source)>,
    /// The datagrams of each, in the order in which they began.
    by_age: BTreeSet<(Source, u64)>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Share {
    datagrams: usize,
    octets: usize,
}

impl Sources {
    /// Datagrams and octets of a source, and its oldest datagram; none if it has nothing here.
    pub(super) fn share(&self, source: &Source) -> Option<(usize, usize, u64)> {
        let share = self.shares.get(source)?;
        Some((share.datagrams, share.octets, self.oldest(source)?))
    }

    /// The oldest datagram of the source that has the most.
    pub(super) fn oldest_of_heaviest(&self) -> Option<u64> {
        let (_, heaviest) = self.by_weight.last()?;
        self.oldest(heaviest)
    }

    fn oldest(&self, source: &Source) -> Option<u64> {
        self.by_age.range((*source, 0)..=(*source, u64::MAX)).next().map(|(_, serial)| *serial)
    }

    /// Whether nobody has anything here.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shares.is_empty() && self.by_weight.is_empty() && self.by_age.is_empty()
    }

    /// A datagram of `source` began.
    pub(super) fn enter(&mut self, source: Source, serial: u64) {
        self.by_age.insert((source, serial));
        self.weigh(&source, |share| share.datagrams += 1);
    }

    /// A datagram of `source` takes so many octets more.
    pub(super) fn grow(&mut self, source: &Source, octets: usize) {
        self.weigh(source, |share| share.octets += octets);
    }

    /// A datagram of `source` is gone, which took so many octets.
    pub(super) fn leave(&mut self, source: &Source, serial: u64, octets: usize) {
        self.by_age.remove(&(*source, serial));
        self.weigh(source, |share| {
            share.datagrams -= 1;
            share.octets -= octets;
        });
    }

    fn weigh(&mut self, source: &Source, change: impl FnOnce(&mut Share)) {
        let share = self.shares.entry(*source).or_default();
        self.by_weight.remove(&(share.octets, *source));
        change(share);
        if share.datagrams == 0 {
            self.shares.remove(source);
        } else {
            self.by_weight.insert((share.octets, *source));
        }
    }
}
