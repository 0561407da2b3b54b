//! Waiting times of frames in a queue: a distribution of bounded size.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::AddAssign;
use core::time::Duration;

use whimbrel_base::Instant;

/// A distribution of times. The mean is exact, and a percentile at most 1/128 too high.
#[derive(Clone, Debug)]
pub struct Waits {
    /// Earlier frames are not counted.
    from: Instant,
    /// Times below 128 ns have a place each; from there on 128 places share each power of two.
    counts: Box<[u64]>,
    total: u64,
    sum: Duration,
    max: Duration,
}

impl Waits {
    /// An empty distribution of frames that come from `from` on.
    pub fn new(from: Instant) -> Self {
        let counts = vec![0; Self::PLACES].into();
        Self { from, counts, total: 0, sum: Duration::ZERO, max: Duration::ZERO }
    }

    pub(crate) fn count(&mut self, came: Instant, wait: Duration) {
        if came < self.from {
            return;
        }
        if let Some(count) = self.counts.get_mut(place_of(wait)) {
            *count += 1;
        }
        self.total += 1;
        self.sum += wait;
        self.max = self.max.max(wait);
    }

    /// Mean of all times; `None` if there are none.
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.sum.as_nanos().checked_div(u128::from(self.total))?;
        Some(Duration::from_nanos(nanos as u64))
    }

    /// Time that `percent` of the frames did not exceed; `None` if there are none.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        let rank = (self.total * u64::from(percent)).div_ceil(100).max(1);
        let mut passed = 0;
        let place = self.counts.iter().position(|count| {
            passed += count;
            passed >= rank
        })?;
        Some(longest_at(place).min(self.max))
    }

    /// Power of two from which on times share the last place: 2.4 hours.
    const LONGEST_BITS: usize = 43;
    const PLACES: usize = (Self::LONGEST_BITS - SHARE_BITS as usize + 1) << SHARE_BITS;
}

/// Adds the times of another queue.
impl AddAssign<&Self> for Waits {
    fn add_assign(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

fn place_of(wait: Duration) -> usize {
    let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    let shift = nanos.max(1).ilog2().saturating_sub(SHARE_BITS);
    let place = ((shift as usize) << SHARE_BITS) + (nanos >> shift) as usize;
    place.min(Waits::PLACES - 1)
}

/// Longest time counted at `place`.
fn longest_at(place: usize) -> Duration {
    let shift = (place >> SHARE_BITS).saturating_sub(1);
    let first = (place - (shift << SHARE_BITS)) as u64;
    Duration::from_nanos(((first + 1) << shift) - 1)
}

/// The power of two of the places that each power of two has: 2^7.
const SHARE_BITS: u32 = 7;

#[cfg(test)]
mod tests;
