//! A stream's way through time: what it moved in each interval, and what its sender waited for.

use alloc::vec::Vec;
use core::time::Duration;

use super::Totals;
use crate::transport::{Limit, Limited, SenderStats};

/// One interval of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// When it began, since the transfer's beginning.
    pub from: Duration,
    /// When it ended, since the transfer's beginning.
    pub until: Duration,
    /// Bytes that it moved within the interval.
    pub moved: Totals,
    /// What the sender knew at its end, if the transport tells.
    pub sender_stats: Option<SenderStats>,
    /// What the sender waited for.
    pub shares: Shares,
    /// True if the totals leave it out.
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

    /// For which share of the time (0 to 1) it waited for this.
    pub fn share(&self, limit: Limit) -> f64 {
        let total: Duration = self.times.iter().sum();
        if total.is_zero() { 0.0 } else { self.time(limit).as_secs_f64() / total.as_secs_f64() }
    }

    /// What it waited for longest, and for which share of the time (0 to 1); `None` if no time
    /// passed.
    pub fn greatest(&self) -> Option<(Limit, f64)> {
        let total: Duration = self.times.iter().sum();
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.time(*limit))?;
        let share = self.time(longest).as_secs_f64() / total.as_secs_f64();
        (!total.is_zero()).then_some((longest, share))
    }

    /// With those of another stream.
    pub fn add(&mut self, other: &Self) {
        for (total, time) in self.times.iter_mut().zip(other.times) {
            *total += time;
        }
    }
}

/// What a sender counted up to one moment: of its transport, and of itself.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Waited {
    /// By what its transport kept it from sending.
    pub(crate) limited: Limited,
    /// For how long it had nothing to give.
    pub(crate) idle: Duration,
}

impl Waited {
    /// How `whole`, the time from `earlier` until now, was spent.
    ///
    /// What the peer's window or the full buffer took is theirs. Of the rest, the application has
    /// what it gave nothing in, be something still under way or not.
    fn shares(&self, earlier: &Self, whole: Duration) -> Shares {
        let (now, then) = (&self.limited, &earlier.limited);
        let rwnd = now.rwnd.saturating_sub(then.rwnd);
        let sndbuf = now.sndbuf.saturating_sub(then.sndbuf);
        let under_way = now.cwnd.saturating_sub(then.cwnd);
        let rest = whole.saturating_sub(rwnd + sndbuf);
        let idle = self.idle.saturating_sub(earlier.idle);
        let app = rest.saturating_sub(under_way).max(idle.min(rest));
        let mut times = [Duration::ZERO; Limit::ALL.len()];
        times[Limit::App as usize] = app;
        times[Limit::Rwnd as usize] = rwnd;
        times[Limit::Cwnd as usize] = rest.saturating_sub(app);
        times[Limit::Sndbuf as usize] = sndbuf;
        Shares { times }
    }
}

/// The intervals of a stream so far.
#[derive(Debug, Default)]
pub(crate) struct Series {
    samples: Vec<Sample>,
    /// How many are kept at most.
    keep: usize,
    /// When the last interval ended.
    until: Duration,
    /// The totals at the end of the last sample, and of the omitted part.
    last: Totals,
    omitted: Totals,
    /// What was counted at the end of the last sample.
    waited: Waited,
    whole: Shares,
}

/// How far a stream is.
pub(crate) struct StreamState {
    /// What it moved so far.
    pub(crate) totals: Totals,
    /// What its sender counts, if the transport tells.
    pub(crate) sender_stats: Option<SenderStats>,
    /// For how long the application had nothing to give so far.
    pub(crate) idle: Duration,
}

impl Series {
    /// One that keeps so many intervals at most; the totals have all.
    pub(crate) fn keeping(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// When the last interval ended.
    pub(crate) const fn until(&self) -> Duration {
        self.until
    }

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

    /// An interval is over, at whose end its stream is so far; `omitted` ones count for no total.
    pub(crate) fn close_interval(&mut self, until: Duration, stream: StreamState, omitted: bool) {
        let StreamState { totals, sender_stats, idle } = stream;
        let from = core::mem::replace(&mut self.until, until);
        let moved = Totals {
            sent: totals.sent - self.last.sent,
            received: totals.received - self.last.received,
        };
        let shares = sender_stats.map_or(Shares::default(), |sender_stats| {
            let waited = Waited { limited: sender_stats.limited, idle };
            let earlier = core::mem::replace(&mut self.waited, waited);
            waited.shares(&earlier, until.saturating_sub(from))
        });
        self.last = totals;
        if omitted {
            self.omitted = totals;
        } else {
            self.whole.add(&shares);
        }
        if self.samples.len() < self.keep {
            self.samples.push(Sample { from, until, moved, sender_stats, shares, omitted });
        }
    }
}

#[cfg(test)]
mod tests;
