//! Numbers of SYNs that connections took to open, and ages of the attempts open at the end.

use core::ops::AddAssign;
use core::time::Duration;

/// Opened connections by the number of SYNs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SynCounts([u64; PLACES]);

impl SynCounts {
    /// Numbers of SYNs from 1 on, and the connections that took so many; the last has that many or
    /// more.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        (1..).zip(self.0)
    }

    /// Connections that took more than one SYN.
    pub fn late(&self) -> u64 {
        self.0[1..].iter().sum()
    }

    /// All connections counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, syns: u32) {
        let place = (syns.max(1) as usize - 1).min(PLACES - 1);
        if let Some(count) = self.0.get_mut(place) {
            *count += 1;
        }
    }
}

/// Adds the counts of another part of the load.
impl AddAssign for SynCounts {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, others)| *own += others);
    }
}

/// Attempts to open that were under way at the end, by age.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ages {
    counts: [u64; PLACES],
    oldest: Duration,
}

impl Ages {
    /// Lower bounds in seconds, and the attempts from each to the next. The bounds are the times at
    /// which a client repeats its SYN with a time-out of a second that doubles.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        BOUNDS.into_iter().zip(self.counts)
    }

    /// Age of the oldest; zero if there was none.
    pub const fn oldest(&self) -> Duration {
        self.oldest
    }

    pub(crate) fn count(&mut self, age: Duration) {
        let place = BOUNDS.iter().rposition(|from| age >= Duration::from_secs(*from));
        if let Some(count) = self.counts.get_mut(place.unwrap_or(0)) {
            *count += 1;
        }
        self.oldest = self.oldest.max(age);
    }
}

/// Adds the counts of another part of the load.
impl AddAssign for Ages {
    fn add_assign(&mut self, other: Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(own, others)| *own += others);
        self.oldest = self.oldest.max(other.oldest);
    }
}

/// Number of classes of each.
const PLACES: usize = 8;
/// Lower bounds of ages, seconds.
const BOUNDS: [u64; PLACES] = [0, 1, 3, 7, 15, 31, 63, 127];

#[cfg(test)]
mod tests;
