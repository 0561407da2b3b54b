//! Ports that are never drawn (`net.ipv4.ip_local_reserved_ports`), and sets of ports as bits.

use alloc::boxed::Box;

use super::PortRange;
use super::range::Words;

/// Up to 16 ranges of ports, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReservedPorts {
    stretches: [(u16, u16); Self::MOST],
    len: u8,
}

impl ReservedPorts {
    /// Limit of ranges.
    pub const MOST: usize = 16;

    /// The set of no ports.
    pub const NONE: Self = Self { stretches: [(0, 0); Self::MOST], len: 0 };

    /// Creates a set of these ranges; `None` if there are more than 16, or one ends before it
    /// begins.
    pub fn new(stretches: &[(u16, u16)]) -> Option<Self> {
        let mut reserved = Self::NONE;
        reserved.stretches.get_mut(..stretches.len())?.copy_from_slice(stretches);
        reserved.len = stretches.len() as u8;
        stretches.iter().all(|(first, last)| first <= last).then_some(reserved)
    }

    /// Iterates over the ranges: first and last port.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.stretches.iter().copied().take(usize::from(self.len))
    }

    /// True if `port` is one of them.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        self.iter().any(|(first, last)| first <= port && port <= last)
    }
}

/// The ports that may be drawn: a range without those reserved.
#[derive(Debug)]
pub struct Drawable {
    range: PortRange,
    reserved: ReservedPorts,
    /// The reserved ports as bits; `None` if there are none.
    bits: Option<PortBits>,
    count: u32,
}

impl Drawable {
    /// Creates the set of the ports of `range` that are not `reserved`.
    pub fn new(range: PortRange, reserved: ReservedPorts) -> Self {
        let bits = (reserved != ReservedPorts::NONE).then(|| PortBits::of(&reserved));
        let taken = bits.as_ref().map_or(0, |bits| bits.count(range));
        Self { range, reserved, bits, count: range.count() - taken }
    }

    /// True if it was created from these.
    pub fn is(&self, range: PortRange, reserved: ReservedPorts) -> bool {
        (self.range, self.reserved) == (range, reserved)
    }

    /// Returns the range, including reserved ports.
    #[inline]
    pub const fn range(&self) -> PortRange {
        self.range
    }

    /// Returns the number of ports.
    #[inline]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// True if `port` may be drawn.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        self.range.contains(port) && !self.bits.as_ref().is_some_and(|bits| bits.contains(port))
    }
}

/// The reserved ports of the range.
impl Words for Drawable {
    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.bits.as_ref().map_or(0, |bits| bits.word(index))
    }

    #[inline]
    fn next_with_gap(&self, index: usize) -> usize {
        self.bits.as_ref().map_or(index, |bits| bits.next_with_gap(index))
    }
}

/// A set of ports: a bit for each, 8 KiB.
#[derive(Debug)]
pub struct PortBits {
    words: Box<[u64; WORDS]>,
    /// A bit for each word that has all of its 64 ports, so that a search skips it.
    full: [u64; WORDS / 64],
}

/// Creates an empty set, which takes 8 KiB like any other.
impl Default for PortBits {
    fn default() -> Self {
        Self { words: Box::new([0; WORDS]), full: [0; WORDS / 64] }
    }
}

impl PortBits {
    /// Returns the set of the `reserved` ports.
    pub fn of(reserved: &ReservedPorts) -> Self {
        let mut bits = Self::default();
        for (first, last) in reserved.iter() {
            for port in first..=last {
                bits.insert(port);
            }
        }
        bits
    }

    /// True if the set has `port`.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        self.word(usize::from(port / 64)) & bit(port) != 0
    }

    /// Adds a port; returns whether it was missing.
    #[inline]
    pub fn insert(&mut self, port: u16) -> bool {
        let missing = !self.contains(port);
        let word = &mut self.words[usize::from(port / 64)];
        *word |= bit(port);
        if *word == u64::MAX {
            self.full[usize::from(port / 4096)] |= bit(port / 64);
        }
        missing
    }

    /// Removes a port; returns whether it was in the set.
    #[inline]
    pub fn remove(&mut self, port: u16) -> bool {
        let there = self.contains(port);
        self.words[usize::from(port / 64)] &= !bit(port);
        self.full[usize::from(port / 4096)] &= !bit(port / 64);
        there
    }

    /// Removes all ports of `others`.
    pub fn remove_all(&mut self, others: &Self) {
        for (index, others) in others.words.iter().enumerate() {
            self.words[index] &= !others;
            if *others != 0 {
                self.full[index / 64] &= !(1 << (index % 64));
            }
        }
    }

    /// Returns the 64 ports from `64 * index` on, a bit for each.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.words[index % WORDS]
    }

    /// Returns the first word from `index` on that lacks a port; 1,024 if none does.
    #[inline]
    pub fn next_with_gap(&self, index: usize) -> usize {
        let mut within = u64::MAX << (index % 64);
        for (place, full) in self.full.iter().enumerate().skip(index / 64) {
            let gaps = !full & within;
            if gaps != 0 {
                return place * 64 + gaps.trailing_zeros() as usize;
            }
            within = u64::MAX;
        }
        WORDS
    }

    /// Returns how many ports of the range it has.
    fn count(&self, range: PortRange) -> u32 {
        (range.first()..=range.last()).filter(|port| self.contains(*port)).count() as u32
    }
}

const fn bit(port: u16) -> u64 {
    1 << (port % 64)
}

const WORDS: usize = 1024;
