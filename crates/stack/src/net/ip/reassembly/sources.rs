//! Shares of sources in what waits to become whole.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Reverse;

use whimbrel_wire::{Address, Family};

/// The source that fragments count for: an IPv4 address, or the IPv6 network of 64 bits within which a host
/// may have any address (RFC 4291 2.5.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Source(Address);

impl Source {
    pub(super) fn of(addr: &Address) -> Self {
        match addr.family() {
            Family::V4 => Self(*addr),
            Family::V6 => {
                let network = u128::from_be_bytes(*addr.as_bytes()) >> 64 << 64;
                Self(Address::from_bytes(network.to_be_bytes()))
            }
        }
    }
}

/// Every source that has something here.
#[derive(Debug, Default)]
pub(super) struct Sources {
    shares: BTreeMap<Source, Share>,
    by_datagrams: BTreeSet<Rank>,
    by_bytes: BTreeSet<Rank>,
    /// The datagrams of each, in the order in which they began.
    by_age: BTreeSet<(Source, u64)>,
}

/// The place of a source among all, by one measure: the greatest has most, and among equals the oldest
/// datagram.
type Rank = (usize, Reverse<u64>, Source);

#[derive(Clone, Copy, Default, Debug)]
struct Share {
    datagrams: usize,
    bytes: usize,
    /// The number of its oldest datagram.
    oldest: u64,
}

/// The measure by which a bound was hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    Datagrams,
    Bytes,
}

impl Sources {
    /// Datagrams and bytes of a source, and its oldest datagram; none if it has nothing here.
    pub(super) fn share(&self, source: &Source) -> Option<(usize, usize, u64)> {
        self.shares.get(source).map(|share| (share.datagrams, share.bytes, share.oldest))
    }

    /// The oldest datagram of the source that has most by this measure.
    pub(super) fn oldest_of_greatest(&self, measure: Measure) -> Option<u64> {
        let ranks = match measure {
            Measure::Datagrams => &self.by_datagrams,
            Measure::Bytes => &self.by_bytes,
        };
        ranks.last().map(|(_, Reverse(oldest), _)| *oldest)
    }

    fn oldest(&self, source: &Source) -> Option<u64> {
        self.by_age.range((*source, 0)..=(*source, u64::MAX)).next().map(|(_, serial)| *serial)
    }

    /// True if no source has a share.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let ranks = self.by_datagrams.len() + self.by_bytes.len();
        self.shares.is_empty() && ranks == 0 && self.by_age.is_empty()
    }

    /// A datagram of `source` began.
    pub(super) fn enter(&mut self, source: Source, serial: u64) {
        self.by_age.insert((source, serial));
        self.weigh(&source, |share| share.datagrams += 1);
    }

    /// A datagram of `source` takes so many bytes more.
    pub(super) fn grow(&mut self, source: &Source, bytes: usize) {
        self.weigh(source, |share| share.bytes += bytes);
    }

    /// A datagram of `source` is gone, which took so many bytes.
    pub(super) fn leave(&mut self, source: &Source, serial: u64, bytes: usize) {
        self.by_age.remove(&(*source, serial));
        self.weigh(source, |share| {
            share.datagrams -= 1;
            share.bytes -= bytes;
        });
    }

    fn weigh(&mut self, source: &Source, change: impl FnOnce(&mut Share)) {
        let mut share = self.shares.get(source).copied().unwrap_or_default();
        let rank = |measure, share: &Share| (measure, Reverse(share.oldest), *source);
        self.by_datagrams.remove(&rank(share.datagrams, &share));
        self.by_bytes.remove(&rank(share.bytes, &share));
        change(&mut share);
        let Some(oldest) = self.oldest(source) else {
            self.shares.remove(source);
            return;
        };
        share.oldest = oldest;
        self.by_datagrams.insert(rank(share.datagrams, &share));
        self.by_bytes.insert(rank(share.bytes, &share));
        self.shares.insert(*source, share);
    }
}
