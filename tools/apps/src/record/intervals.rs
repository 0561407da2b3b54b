//! Rates over time: exchanges and bytes of each interval, and their spread.

use alloc::vec::Vec;
use core::ops::AddAssign;
use core::time::Duration;

/// Counts for each interval of a run, of equal length.
#[derive(Clone, Debug)]
pub struct Intervals {
    length: Duration,
    counts: Vec<Count>,
}

/// Counts of one interval.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Exchanges answered in the interval.
    pub exchanges: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Exchanges that failed in the interval.
    pub failed: u64,
}

whimbrel_base::sums!(Count { exchanges, bytes, failed });

/// Spread of the rates of the whole intervals.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// Number of intervals compared: those that lay within the run as a whole.
    pub intervals: usize,
    /// Lowest rate of an interval, exchanges per second.
    pub min: f64,
    /// Highest rate of an interval, exchanges per second.
    pub max: f64,
    /// The mean of the intervals' rates, per second.
    pub mean: f64,
    /// The standard deviation of the intervals' rates, per second.
    pub deviation: f64,
}

impl Spread {
    /// Coefficient of variation: the deviation as a share of the mean; 0 if that is 0.
    pub fn variation(&self) -> f64 {
        if self.mean > 0.0 { self.deviation / self.mean } else { 0.0 }
    }
}

impl Intervals {
    /// Intervals of this length, but at least a millisecond.
    pub fn new(length: Duration) -> Self {
        Self { length: length.max(Duration::from_millis(1)), counts: Vec::new() }
    }

    /// Length of each.
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// Counts of each interval so far; later ones without anything are missing until the run is
    /// over.
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Number of whole intervals after `elapsed`.
    pub fn whole(&self, elapsed: Duration) -> usize {
        self.place(elapsed)
    }

    /// Rates of the whole intervals after `elapsed`, exchanges per second.
    pub fn rates(&self, elapsed: Duration) -> Vec<f64> {
        let whole = self.place(elapsed);
        let seconds = self.length.as_secs_f64();
        let counts = (0..whole).map(|place| self.counts.get(place).map_or(0, |c| c.exchanges));
        counts.map(|count| count as f64 / seconds).collect()
    }

    /// Spread of the rates of the whole intervals; `None` if there is none.
    pub fn spread(&self, elapsed: Duration) -> Option<Spread> {
        let rates = self.rates(elapsed);
        let count = rates.len();
        let mean = rates.iter().sum::<f64>() / count.max(1) as f64;
        let squares = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>();
        (count > 0).then(|| Spread {
            intervals: count,
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: rates.iter().copied().fold(0.0, f64::max),
            mean,
            deviation: (squares / count as f64).sqrt(),
        })
    }

    /// Ends the run after `elapsed`: all of its time has an interval, and none begins at its end.
    /// Later counts were under way then, and belong to the last.
    pub(crate) fn close(&mut self, elapsed: Duration) {
        let places = elapsed.as_nanos().div_ceil(self.length.as_nanos());
        let places = usize::try_from(places).unwrap_or(MOST).clamp(1, MOST + 1);
        let late = self.counts.get(places..).unwrap_or_default().iter().copied();
        let late = late.fold(Count::default(), |mut sum, count| {
            sum += count;
            sum
        });
        self.counts.resize(places, Count::default());
        if let Some(last) = self.counts.last_mut() {
            *last += late;
        }
    }

    pub(crate) fn count(&mut self, since_begin: Duration, bytes: u64) {
        if let Some(count) = self.at(since_begin) {
            count.exchanges += 1;
            count.bytes += bytes;
        }
    }

    pub(crate) fn count_failed(&mut self, since_begin: Duration) {
        if let Some(count) = self.at(since_begin) {
            count.failed += 1;
        }
    }

    fn at(&mut self, since_begin: Duration) -> Option<&mut Count> {
        let place = self.place(since_begin).min(MOST);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, Count::default());
        }
        self.counts.get_mut(place)
    }

    fn place(&self, since_begin: Duration) -> usize {
        usize::try_from(since_begin.as_nanos() / self.length.as_nanos()).unwrap_or(MOST)
    }
}

/// Adds those of another thread, with the same start and length.
impl AddAssign<&Self> for Intervals {
    fn add_assign(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), Count::default());
        }
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += *others;
        }
    }
}

/// Most intervals kept: a day of seconds. Later counts belong to the last.
const MOST: usize = 86_400;

#[cfg(test)]
mod tests;
