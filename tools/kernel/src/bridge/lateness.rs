//! How late packets are, to the microsecond.

use std::time::Duration;

/// A distribution of times: each microsecond below ten milliseconds by itself, what is later together.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Box<[u64]>,
    total: u64,
    most: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; MICROS + 1].into(), total: 0, most: Duration::ZERO }
    }
}

impl Lateness {
    pub(super) fn note(&mut self, late: Duration) {
        let micros = usize::try_from(late.as_micros()).unwrap_or(MICROS).min(MICROS);
        if let Some(count) = self.counts.get_mut(micros) {
            *count += 1;
        }
        self.total += 1;
        self.most = self.most.max(late);
    }

    /// The time that so many percent of the packets did not exceed, whole microseconds rounded down;
    /// zero if there were none, the greatest of all if that lies beyond ten milliseconds.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = (self.total as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut passed = 0;
        let place = self.counts.iter().position(|count| {
            passed += count;
            passed >= rank
        });
        match place {
            Some(MICROS) => self.most,
            Some(micros) => Duration::from_micros(micros as u64),
            None => Duration::ZERO,
        }
    }

    /// The greatest lateness of a frame so far.
    pub const fn max(&self) -> Duration {
        self.most
    }
}

/// What is later than this counts together: whoever looks wants to know whether it is one, and not
/// whether it is ten or eleven.
const MICROS: usize = 10_000;

#[cfg(test)]
mod tests;
