//! A stream's way through time: what it moved in each interval, and what its sender waited for.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_tcp::Instant;

use super::Totals;
use crate::transport::{Gauge, Limit};

/// One interval of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// When it began, since the transfer's beginning.
    pub from: Duration,
    /// When it ended.
    pub until: Duration,
    /// What it moved.
    pub moved: Totals,
    /// What the sender knew at its end, if the transport tells.
    pub gauge: Option<Gauge>,
    /// What the sender waited for.
    pub shares: Shares,
    /// Whether the totals leave it out.
    pub omitted: bool,
}

/// How long a sender waited for what.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shares {
    times: [Duration; Limit::ALL.len()],
}

impl Shares {
    /// How long it waited for this.
    pub const fn time(&self, limit: Limit) -> Duration {
        self.times[limit as usize]
    }

    /// What it waited for longest, and for which share of the time (0 to 1); `None` if no time
    /// passed.
    pub fn greatest(&self) -> Option<(Limit, f64)> {
        let total: Duration = self.times.iter().sum();
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.time(*limit))?;
        let share = self.time(longest).as_secs_f64() / total.as_secs_f64();
        (!total.is_zero()).then_some((longest, share))
    }

    fn add(&mut self, limit: Limit, time: Duration) {
        if let Some(total) = self.times.get_mut(limit as usize) {
            *total += time;
        }
    }
}

/// The intervals of a stream so far.
#[derive(Debug, Default)]
pub(crate) struct Series {
    samples: Vec<Sample>,
    /// The totals at the end of the last sample, and of the omitted part.
    last: Totals,
    omitted: Totals,
    /// What the sender waited for when it was last looked at, and when that was.
    waiting: Option<(Limit, Instant)>,
    in_interval: Shares,
    whole: Shares,
}

impl Series {
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    pub(crate) const fn shares(&self) -> &Shares {
        &self.whole
    }

    /// The totals without the omitted part.
    pub(crate) const fn counted(&self, totals: Totals) -> Totals {
        Totals {
            sent: totals.sent - self.omitted.sent,
            received: totals.received - self.omitted.received,
        }
    }

    /// Whether it is time to look again at what the sender waits for: asking costs, and a
    /// thousand times a second are enough for shares.
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        self.waiting.is_none_or(|(_, since)| now >= since + Duration::from_millis(1))
    }

    /// The sender waits for this from now on.
    pub(crate) fn look(&mut self, now: Instant, limit: Limit) {
        if let Some((waited_for, since)) = self.waiting.replace((limit, now)) {
            self.in_interval.add(waited_for, now.since(since));
            self.whole.add(waited_for, now.since(since));
        }
    }

    /// An interval is over.
    pub(crate) fn close_interval(
        &mut self,
        [from, until]: [Duration; 2],
        totals: Totals,
        gauge: Option<Gauge>,
        omitted: bool,
    ) {
        let moved = Totals {
            sent: totals.sent - self.last.sent,
            received: totals.received - self.last.received,
        };
        let shares = core::mem::take(&mut self.in_interval);
        self.last = totals;
        if omitted {
            self.omitted = totals;
            self.whole = Shares::default();
        }
        self.samples.push(Sample { from, until, moved, gauge, shares, omitted });
    }
}
