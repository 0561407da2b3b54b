//! Disjoint ranges of a stream, ordered.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// A set of stream offsets, kept as disjoint ranges that do not touch. Empty it takes no memory of its own;
/// each operation takes O(log ranges), and as much again for each range that it ends.
#[derive(Debug)]
pub struct Ranges {
    /// The end of each, by its start.
    ends: BTreeMap<u64, u64>,
    /// The number of offsets in all of them.
    bytes: u64,
}

impl Default for Ranges {
    fn default() -> Self {
        Self::NONE
    }
}

impl Ranges {
    /// A set without a range, which has no memory.
    pub const NONE: Self = Self { ends: BTreeMap::new(), bytes: 0 };

    /// True if there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The number of offsets in them.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The range with the lowest offsets; `None` if there is no range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ends.first_key_value().map(|(start, end)| *start..*end)
    }

    /// One past the highest offset.
    pub fn end(&self) -> Option<u64> {
        self.ends.last_key_value().map(|(_, end)| *end)
    }

    /// True if the offset is in one of them.
    pub fn contains(&self, offset: u64) -> bool {
        self.reaching(offset).is_some_and(|(_, end)| end > offset)
    }

    /// The range that begins at `offset` or before it, and is the last to do so.
    fn reaching(&self, offset: u64) -> Option<(u64, u64)> {
        self.ends.range(..=offset).next_back().map(|(start, end)| (*start, *end))
    }

    /// The first part of `within` that is in none of them.
    pub fn gap(&self, within: Range<u64>) -> Option<Range<u64>> {
        let mut start = within.start;
        if let Some((_, end)) = self.reaching(start) {
            start = start.max(end);
        }
        if start >= within.end {
            return None;
        }
        // No two ranges touch: what follows one is a gap.
        let next = self.ends.range(start..within.end).next();
        Some(start..next.map_or(within.end, |(next, _)| *next))
    }

    /// The first part of `within` that is in one of them.
    pub fn overlap(&self, within: Range<u64>) -> Option<Range<u64>> {
        if self.is_empty() || within.is_empty() {
            return None;
        }
        let reaching = self.reaching(within.start).filter(|(_, end)| *end > within.start);
        let next = || self.ends.range(within.clone()).next().map(|(start, end)| (*start, *end));
        let (start, end) = reaching.or_else(next)?;
        Some(start.max(within.start)..end.min(within.end))
    }

    /// Adds a range, parts of which may be there.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Whatever it meets or touches becomes one with it, from behind.
        while let Some((other, other_end)) = self.reaching(end).filter(|(_, end)| *end >= start) {
            self.ends.remove(&other);
            self.bytes -= other_end - other;
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ends.insert(start, end);
        self.bytes += end - start;
    }

    /// Takes a range out, parts of which may not be there.
    pub fn remove(&mut self, range: Range<u64>) {
        if self.is_empty() || range.is_empty() {
            return;
        }
        // From behind: what stays beyond the range is put back once.
        while let Some((start, end)) =
            self.reaching(range.end - 1).filter(|(_, end)| *end > range.start)
        {
            self.ends.remove(&start);
            self.bytes -= end - start;
            for (start, end) in [(start, end.min(range.start)), (start.max(range.end), end)] {
                if start < end {
                    self.ends.insert(start, end);
                    self.bytes += end - start;
                }
            }
        }
    }

    /// Takes out whatever lies below `offset`.
    #[inline]
    pub fn remove_below(&mut self, offset: u64) {
        if !self.is_empty() {
            self.remove(0..offset);
        }
    }

    /// Takes all ranges out of the set.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
