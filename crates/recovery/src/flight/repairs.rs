//! Text that was sent again and is not acknowledged.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Range;

use whimbrel_base::Instant;

use super::rates::Snapshot;

/// Ranges that were sent again, each byte with its last transmission: by place, as acknowledgments name
/// them, and by time, as their losses are judged. Each operation takes O(log repairs) for each that it ends.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    by_start: BTreeMap<u64, Repair>,
    by_time: BTreeSet<(Instant, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Repair {
    end: u64,
    at: Instant,
    snapshot: Snapshot,
}

/// A part of one that is not under way any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) at: Instant,
    pub(super) snapshot: Snapshot,
}

impl Repairs {
    /// True if there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// `range` was sent again `at`; what was there of it is out of date.
    pub(super) fn insert(&mut self, range: Range<u64>, at: Instant) {
        self.remove(range.clone());
        self.add(range, at, Snapshot::NONE);
    }

    fn add(&mut self, range: Range<u64>, at: Instant, snapshot: Snapshot) {
        if !range.is_empty() {
            self.by_start.insert(range.start, Repair { end: range.end, at, snapshot });
            self.by_time.insert((at, range.start));
        }
    }

    /// Sets the snapshot of the repair that begins at `start`.
    pub(super) fn set_snapshot(&mut self, start: u64, snapshot: Snapshot) {
        if let Some(repair) = self.by_start.get_mut(&start) {
            repair.snapshot = snapshot;
        }
    }

    /// The last repair that begins at `offset` or before it.
    fn reaching(&self, offset: u64) -> Option<(u64, Repair)> {
        self.by_start.range(..=offset).next_back().map(|(start, repair)| (*start, *repair))
    }

    /// Takes `range` out. Returns of the parts that were there the one sent last.
    pub(super) fn remove(&mut self, range: Range<u64>) -> Option<Removed> {
        let mut latest = None::<Removed>;
        while let Some(removed) = self.remove_last(range.clone()) {
            if latest.is_none_or(|latest| (latest.at, latest.end) < (removed.at, removed.end)) {
                latest = Some(removed);
            }
        }
        latest
    }

    /// Takes out of `range` the part behind all others.
    pub(super) fn remove_last(&mut self, range: Range<u64>) -> Option<Removed> {
        if self.is_empty() || range.is_empty() {
            return None;
        }
        let (start, Repair { end, at, snapshot }) =
            self.reaching(range.end - 1).filter(|(_, repair)| repair.end > range.start)?;
        self.by_start.remove(&start);
        self.by_time.remove(&(at, start));
        self.add(start..end.min(range.start), at, snapshot);
        self.add(start.max(range.end)..end, at, snapshot);
        let (start, end) = (start.max(range.start), end.min(range.end));
        Some(Removed { start, end, at, snapshot })
    }

    /// The first part of `within` that was not sent again.
    pub(super) fn gap(&self, within: Range<u64>) -> Option<Range<u64>> {
        let mut start = within.start;
        // Retransmitted segments are adjacent: those behind it are skipped together.
        while start < within.end
            && let Some((_, repair)) = self.reaching(start).filter(|(_, repair)| repair.end > start)
        {
            start = repair.end;
        }
        if start >= within.end {
            return None;
        }
        let next = self.by_start.range(start..within.end).next();
        Some(start..next.map_or(within.end, |(next, _)| *next))
    }

    /// The one sent first: when, and where.
    pub(super) fn oldest(&self) -> Option<(Instant, Range<u64>)> {
        let (at, start) = *self.by_time.first()?;
        self.by_start.get(&start).map(|repair| (at, start..repair.end))
    }

    /// The number of ranges.
    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    /// The number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.by_start.iter().map(|(start, repair)| repair.end - start).sum()
    }
}
