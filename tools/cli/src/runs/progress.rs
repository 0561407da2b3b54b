//! Progress of a load, for watchers: of one client, or of those of several shards together.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use whimbrel_apps::load::{Runs, States, StopCondition};
use whimbrel_apps::record::{Intervals, per_second};
use whimbrel_apps::transport::StackUsage;
use whimbrel_apps::{ConnError, Model, Record, Transport};
use whimbrel_base::Instant;

use crate::{progress, quantity};

/// The runs so far, the last of which may be under way.
#[derive(Clone, Debug)]
pub(crate) struct LoadProgress {
    pub(super) runs: Vec<Run>,
    /// Latencies of the last one, corrected.
    pub(super) latency: Histogram<u64>,
    /// Its answers by status.
    pub(super) answers: BTreeMap<u16, u64>,
    /// Its failures, by reason.
    pub(super) conn_errors: BTreeMap<ConnError, u64>,
    /// States of its connections.
    pub(super) states: States,
    /// Memory and ports of the transport, if known.
    pub(super) stack_usage: Option<StackUsage>,
}

/// One of several runs, so far.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) intervals: Intervals,
    /// Its duration so far.
    pub(super) elapsed: Duration,
    pub(super) state: RunState,
    pub(super) answered: u64,
    failed: u64,
    /// Exchanges that are over, those of the warm-up included.
    pub(super) over: u64,
}

/// State of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunState {
    UnderWay,
    Over,
}

impl LoadProgress {
    /// Of one client at this moment, and of its transport.
    pub(crate) fn of<T: Transport>(runs: &Runs<T>, net: Option<&T>, now: Instant) -> Self {
        let current = runs.current();
        let record = current.record();
        let finished = runs.finished().iter().map(|run| {
            let over = run.record.answered() + run.record.failed();
            Run::of(&run.record, run.record.elapsed(), RunState::Over, over)
        });
        let under_way = (current.has_begun() && !current.is_done())
            .then(|| Run::of(record, current.elapsed(now), RunState::UnderWay, current.over()));
        Self {
            runs: finished.chain(under_way).collect(),
            latency: record.corrected.clone(),
            answers: record.statuses.clone(),
            conn_errors: record.conn_errors.clone(),
            states: current.states(),
            stack_usage: net.and_then(T::stack_usage),
        }
    }

    /// Of all clients: the runs that each of them has begun.
    pub(crate) fn sum(parts: &[Self]) -> Option<Self> {
        let (first, others) = parts.split_first()?;
        let mut sum = first.clone();
        for part in others {
            sum.runs.truncate(part.runs.len());
            sum.runs.iter_mut().zip(&part.runs).for_each(|(run, more)| run.add(more));
            sum.latency += &part.latency;
            add(&mut sum.answers, &part.answers);
            add(&mut sum.conn_errors, &part.conn_errors);
            sum.states += part.states;
            sum.stack_usage = match (sum.stack_usage, part.stack_usage) {
                (Some(mut all), Some(one)) => {
                    all += one;
                    Some(all)
                }
                (one, other) => one.or(other),
            };
        }
        Some(sum)
    }

    /// Number of completed steps of its bar.
    pub(crate) fn steps(&self, until: StopCondition) -> u64 {
        let Some(run) = self.runs.last() else { return 0 };
        match until {
            StopCondition::Exchanges(_) => run.over,
            StopCondition::Elapsed(_) => progress::steps(run.elapsed),
        }
    }

    /// One line of progress: the rate of the last complete interval, or else of all, and latencies.
    pub(crate) fn line(&self, unit: &str) -> String {
        let Some(run) = self.runs.last() else { return String::new() };
        let rates = run.intervals.rates(run.elapsed);
        let overall = per_second(run.answered, run.elapsed);
        let rate = rates.last().copied().unwrap_or(overall);
        let at = |quantile| {
            let nanos = self.latency.value_at_quantile(quantile);
            quantity::show(Duration::from_nanos(nanos))
        };
        format!(
            "{:>9} {unit}  p50 {}  p99 {}  max {}  errors {}",
            quantity::thousands(rate as u64),
            at(0.5),
            at(0.99),
            at(1.0),
            run.failed
        )
    }
}

impl Run {
    fn of(record: &Record, elapsed: Duration, state: RunState, over: u64) -> Self {
        Self {
            intervals: record.intervals.clone(),
            elapsed,
            state,
            answered: record.answered(),
            failed: record.failed(),
            over,
        }
    }

    /// Adds another client's counts of the same run. An interval is complete once it is complete for
    /// each running client.
    fn add(&mut self, other: &Self) {
        self.intervals += &other.intervals;
        (self.elapsed, self.state) = match (self.state, other.state) {
            (RunState::Over, RunState::Over) => (self.elapsed.max(other.elapsed), RunState::Over),
            (RunState::Over, RunState::UnderWay) => (other.elapsed, RunState::UnderWay),
            (RunState::UnderWay, RunState::Over) => (self.elapsed, RunState::UnderWay),
            (RunState::UnderWay, RunState::UnderWay) => {
                (self.elapsed.min(other.elapsed), RunState::UnderWay)
            }
        };
        self.answered += other.answered;
        self.failed += other.failed;
        self.over += other.over;
    }

    /// Number of complete intervals.
    pub(super) fn whole(&self) -> usize {
        match self.state {
            RunState::Over => self.intervals.counts().len(),
            RunState::UnderWay => self.intervals.whole(self.elapsed),
        }
    }
}

fn add<K: Ord + Copy>(counts: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *counts.entry(*key).or_default() += count;
    }
}

#[cfg(test)]
mod tests;
