//! How connections opened: by how many SYNs, and for how long those tried that had not at the end.

use core::ops::AddAssign;
use core::time::Duration;

/// Connections that opened, by how many SYNs it took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SynCounts([u64; PLACES]);

impl SynCounts {
    /// Each number of SYNs from 1 on, and how many connections took so many; of the last, so many or more.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        (1..).zip(self.0)
    }

    /// Connections that took more than one.
    pub fn late(&self) -> u64 {
        self.0[1..].iter().sum()
    }

    /// Connections that are counted here.
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

/// Adds what another part of the same load counted.
impl AddAssign for SynCounts {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, others)| *own += others);
    }
}

/// Attempts to open that were under way at the end, by how long.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ages {
    counts: [u64; PLACES],
    oldest: Duration,
}

impl Ages {
    /// From how many seconds on, and how many attempts were that old and no older than the next says. The
    /// bounds are when a client repeats its SYN whose time-out begins at a second and doubles.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        BOUNDS.into_iter().zip(self.counts)
    }

    /// The age of the oldest; zero if there was none.
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

/// Adds what another part of the same load counted.
impl AddAssign for Ages {
    fn add_assign(&mut self, other: Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(own, others)| *own += others);
        self.oldest = self.oldest.max(other.oldest);
    }
}

/// How many classes there are of each.
const PLACES: usize = 8;
/// Where ages begin, seconds.
const BOUNDS: [u64; PLACES] = [0, 1, 3, 7, 15, 31, 63, 127];

#[cfg(test)]
mod tests;
