//! Times at which exchanges fall due.

use core::time::Duration;

use whimbrel_base::Instant;

/// Times at which exchanges fall due: at a constant rate, or on demand.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    rate: Option<f64>,
    began: Instant,
    taken: u64,
}

impl Arrivals {
    pub(crate) const fn new(rate: Option<f64>, began: Instant) -> Self {
        Self { rate, began, taken: 0 }
    }

    /// Number of arrivals taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Time of the next one.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        self.due(self.taken).unwrap_or(now)
    }

    /// Takes the next one if it is due, and returns its time.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Instant> {
        let next = self.next(now);
        (next <= now).then(|| {
            self.taken += 1;
            next
        })
    }

    /// Number that fell due before `end` and were not taken.
    pub(crate) fn missed(&self, end: Instant) -> u64 {
        let Some(rate) = self.rate else { return 0 };
        let due = (end.since(self.began).as_secs_f64() * rate).ceil() as u64;
        due.saturating_sub(self.taken)
    }

    /// Missed arrivals: the time they were due, and how many were due about then. It takes few
    /// steps for any number of them.
    pub(crate) fn missed_by_time(&self, end: Instant) -> impl Iterator<Item = (Instant, u64)> {
        let missed = self.missed(end);
        let step = missed.div_ceil(STEPS).max(1);
        (0..missed.div_ceil(step)).filter_map(move |part| {
            let (first, count) = (part * step, step.min(missed - part * step));
            Some((self.due(self.taken + first + count / 2)?, count))
        })
    }

    /// Computed from the beginning each time, so that errors do not add up.
    fn due(&self, number: u64) -> Option<Instant> {
        let rate = self.rate?;
        Some(self.began + Duration::from_nanos((number as f64 * 1e9 / rate) as u64))
    }
}

/// Most steps in which missed arrivals are counted.
const STEPS: u64 = 10_000;

#[cfg(test)]
mod tests;
