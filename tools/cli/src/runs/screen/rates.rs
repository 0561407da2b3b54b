//! Rates by quarters of a second for the screen: the load's own intervals may be of any length.

use std::collections::VecDeque;
use std::time::Duration;

use whimbrel_apps::record::per_second;

/// The rates so far.
#[derive(Default, Debug)]
pub(super) struct Sampler {
    samples: VecDeque<u64>,
    max: u64,
    last: Moment,
}

/// Progress of a load, by its own clock.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Moment {
    /// The number of the run.
    pub(super) run: usize,
    pub(super) elapsed: Duration,
    pub(super) answered: u64,
}

impl Sampler {
    /// It is as far as this. Looks may come late: their rate is then that of each quarter missed.
    pub(super) fn look(&mut self, now: Moment) {
        if now.run != self.last.run || now.answered < self.last.answered {
            self.last = Moment { run: now.run, ..Moment::default() };
        }
        let time = now.elapsed.saturating_sub(self.last.elapsed);
        let quarters = usize::try_from(time.as_nanos() / QUARTER.as_nanos()).unwrap_or(KEPT);
        if quarters == 0 {
            return;
        }
        let rate = per_second(now.answered - self.last.answered, time).round() as u64;
        self.samples.extend(std::iter::repeat_n(rate, quarters.min(KEPT)));
        self.samples.drain(..self.samples.len().saturating_sub(KEPT));
        self.max = self.max.max(rate);
        self.last = now;
    }

    /// Each, the latest at the end.
    pub(super) fn samples(&self) -> Vec<u64> {
        self.samples.iter().copied().collect()
    }

    /// That of the last second.
    pub(super) fn now(&self) -> u64 {
        let last: Vec<_> = self.samples.iter().rev().take(4).collect();
        last.iter().copied().sum::<u64>() / last.len().max(1) as u64
    }

    /// That of the best quarter.
    pub(super) const fn max(&self) -> u64 {
        self.max
    }
}

const QUARTER: Duration = Duration::from_millis(250);
/// Limit of the widest screen.
const KEPT: usize = 1_000;

#[cfg(test)]
mod tests;
