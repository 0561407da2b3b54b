//! Invariants of a flight between any two calls, for simulations and tests.

use core::iter;
use core::ops::Range;

use super::{Flight, Holes, Ranges};

impl Flight {
    /// Checks all invariants; an error names the one that fails.
    pub fn check(&self) -> Result<(), &'static str> {
        let records = &self.records;
        let mut before = (records.sent.front().map(|first| first.at), records.una);
        for sent in records.sent.iter() {
            if Some(sent.at) < before.0 || sent.end <= before.1 {
                return Err("first transmissions are not in the order of time and sequence");
            }
            before = (Some(sent.at), sent.end);
        }
        if before.1 != records.end {
            return Err("first transmissions do not end where SND.NXT is");
        }
        let rates = self.holes.as_ref().and_then(|holes| holes.rates.as_ref());
        if rates.is_some_and(|rates| rates.sent.len() != records.sent.len()) {
            return Err("not each first transmission has a sample of the delivery rate");
        }
        if self.pipe() != self.recounted() as u32 {
            return Err("pipe is not what a count of what was sent, held and lost says");
        }
        self.holes.as_deref().map_or(Ok(()), |holes| holes.check(records.una..records.end))
    }

    /// The pipe, transmission by transmission.
    fn recounted(&self) -> u64 {
        let mut start = self.una();
        let each = self.records.sent.iter().map(|sent| {
            let range = start..sent.end;
            start = sent.end;
            range
        });
        let not_held = each.flat_map(|range| gaps(self.sacked(), range));
        let under_way = not_held.flat_map(|range| gaps(self.lost(), range));
        under_way.map(|range| range.end - range.start).sum()
    }
}

impl Holes {
    fn check(&self, all: Range<u64>) -> Result<(), &'static str> {
        for ranges in [&self.sacked, &self.lost] {
            let outside = gaps(ranges, all.clone()).map(|gap| gap.end - gap.start).sum::<u64>();
            if outside + ranges.bytes() != all.end - all.start {
                return Err("something is held or lost that is not in flight");
            }
        }
        let is_again = |ranges: &Ranges| {
            let mut at = all.start;
            iter::from_fn(|| {
                let range = ranges.overlap(at..all.end)?;
                at = range.end;
                Some(range)
            })
            .any(|range| self.repairs.gap(range.clone()) != Some(range))
        };
        if is_again(&self.sacked) || is_again(&self.lost) {
            return Err("something is under way again that is held or lost");
        }
        Ok(())
    }
}

/// The parts of `within` that are in none of `ranges`.
fn gaps(ranges: &Ranges, within: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = within.start;
    iter::from_fn(move || {
        let gap = ranges.gap(at..within.end)?;
        at = gap.end;
        Some(gap)
    })
}
