//! Distribution of the lateness of packets, in microseconds.

use std::time::Duration;

/// A distribution of times: a bin for each microsecond below ten milliseconds, and one for all
/// later ones.
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

    /// Returns the time that `percent` percent of the packets did not exceed, in whole
    /// microseconds, rounded down. Zero if there were none; the maximum if it lies beyond ten
    /// milliseconds.
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

    /// Returns the maximum so far.
    pub const fn max(&self) -> Duration {
        self.most
    }
}

/// Number of bins, one a microsecond. Later packets share one bin, because finer differences do not
/// matter there.
const MICROS: usize = 10_000;

#[cfg(test)]
mod tests;
