//! A stream over time: its bytes in each interval, and the limits that its sender waited for.

use alloc::vec::Vec;
use core::time::Duration;

use super::Totals;
use crate::transport::{Limit, Limited, SenderStats};

/// One interval of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Start, since the transfer's beginning.
    pub from: Duration,
    /// End, since the transfer's beginning.
    pub until: Duration,
    /// Bytes moved in the interval.
    pub moved: Totals,
    /// The sender's statistics at the end of the interval, if the transport has them.
    pub sender_stats: Option<SenderStats>,
    /// Shares of the time by the limit that the sender waited for.
    pub shares: Shares,
    /// True if the totals leave it out.
    pub omitted: bool,
}

/// Time that a sender waited for each limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shares {
    times: [Duration; Limit::ALL.len()],
}

impl Shares {
    /// Time spent waiting for `limit`.
    pub const fn time(&self, limit: Limit) -> Duration {
        self.times[limit as usize]
    }

    /// Share of the time (0 to 1) spent waiting for `limit`.
    pub fn share(&self, limit: Limit) -> f64 {
        let total: Duration = self.times.iter().sum();
        if total.is_zero() { 0.0 } else { self.time(limit).as_secs_f64() / total.as_secs_f64() }
    }

    /// The limit waited for longest, and its share of the time (0 to 1); `None` if no time passed.
    pub fn greatest(&self) -> Option<(Limit, f64)> {
        let total: Duration = self.times.iter().sum();
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.time(*limit))?;
        let share = self.time(longest).as_secs_f64() / total.as_secs_f64();
        (!total.is_zero()).then_some((longest, share))
    }

    /// Adds the shares of another stream.
    pub fn add(&mut self, other: &Self) {
        for (total, time) in self.times.iter_mut().zip(other.times) {
            *total += time;
        }
    }
}

/// Waiting times of a sender up to one moment, from its transport and from itself.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Waited {
    /// Waiting times that the transport counts.
    pub(crate) limited: Limited,
    /// Time without data to send.
    pub(crate) idle: Duration,
}

impl Waited {
    /// Divides `whole`, the time from `earlier` until now, by limit.
    ///
    /// The peer's window and the full buffer are counted by the transport. Of the rest, the
    /// application has the time in which it gave no data, even if some was under way.
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
    /// Most samples kept.
    keep: usize,
    /// End of the last interval.
    until: Duration,
    /// The totals at the end of the last sample, and of the omitted part.
    last: Totals,
    omitted: Totals,
    /// Waiting times at the end of the last sample.
    waited: Waited,
    whole: Shares,
}

/// State of a stream at one moment.
pub(crate) struct StreamState {
    /// Totals so far.
    pub(crate) totals: Totals,
    /// Statistics of its sender, if the transport has them.
    pub(crate) sender_stats: Option<SenderStats>,
    /// Time in which the application had no data to send.
    pub(crate) idle: Duration,
}

impl Series {
    /// A series of at most `keep` intervals; the totals count all.
    pub(crate) fn keeping(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// End of the last interval.
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

    /// Closes an interval with its stream's state at the end; `omitted` ones do not count in the
    /// totals.
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
