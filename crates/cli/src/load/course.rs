//! How far a load is, for whoever follows it: of one client, or of those of several shards together.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use whimbrel_apps::load::{Runs, States, Until};
use whimbrel_apps::record::{Intervals, per_second};
use whimbrel_apps::transport::Standing;
use whimbrel_apps::{Model, Record, Transport, Trouble};
use whimbrel_base::Instant;

use crate::{progress, quantity};

/// The runs so far, the last of which may be under way.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(super) runs: Vec<Run>,
    /// Latencies of the last one, corrected.
    pub(super) latency: Histogram<u64>,
    /// Its answers by status.
    pub(super) answers: BTreeMap<u16, u64>,
    /// What failed of it, by the reason.
    pub(super) troubles: BTreeMap<Trouble, u64>,
    /// What its connections do.
    pub(super) states: States,
    /// What the transport holds, if it tells.
    pub(super) standing: Option<Standing>,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) intervals: Intervals,
    /// How long it lasted, or has lasted.
    pub(super) elapsed: Duration,
    pub(super) life: Life,
    pub(super) answered: u64,
    failed: u64,
    /// Exchanges that are over, those of the warm-up included.
    pub(super) over: u64,
}

/// Whether a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    UnderWay,
    Over,
}

impl Course {
    /// Of one client at this moment, and of its transport.
    pub(crate) fn of<T: Transport>(runs: &Runs<T>, net: Option<&T>, now: Instant) -> Self {
        let current = runs.current();
        let record = current.record();
        let finished = runs.finished().iter().map(|run| {
            let over = run.record.answered() + run.record.failed();
            Run::of(&run.record, run.record.elapsed(), Life::Over, over)
        });
        let under_way = (current.has_begun() && !current.is_done())
            .then(|| Run::of(record, current.elapsed(now), Life::UnderWay, current.over()));
        Self {
            runs: finished.chain(under_way).collect(),
            latency: record.corrected.clone(),
            answers: record.statuses.clone(),
            troubles: record.troubles.clone(),
            states: current.states(),
            standing: net.and_then(T::standing),
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
            add(&mut sum.troubles, &part.troubles);
            sum.states += part.states;
            sum.standing = match (sum.standing, part.standing) {
                (Some(mut all), Some(one)) => {
                    all += one;
                    Some(all)
                }
                (one, other) => one.or(other),
            };
        }
        Some(sum)
    }

    /// How many steps of its bar it has done.
    pub(crate) fn steps(&self, until: Until) -> u64 {
        let Some(run) = self.runs.last() else { return 0 };
        match until {
            Until::Exchanges(_) => run.over,
            Until::Elapsed(_) => progress::steps(run.elapsed),
        }
    }

    /// How it goes: the rate of the last interval that is whole, or else of all, and latencies.
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
    fn of(record: &Record, elapsed: Duration, life: Life, over: u64) -> Self {
        Self {
            intervals: record.intervals.clone(),
            elapsed,
            life,
            answered: record.answered(),
            failed: record.failed(),
            over,
        }
    }

    /// What another client did in the same run. While one of them is under way, no interval is whole
    /// that is not whole for it.
    fn add(&mut self, other: &Self) {
        self.intervals += &other.intervals;
        (self.elapsed, self.life) = match (self.life, other.life) {
            (Life::Over, Life::Over) => (self.elapsed.max(other.elapsed), Life::Over),
            (Life::Over, Life::UnderWay) => (other.elapsed, Life::UnderWay),
            (Life::UnderWay, Life::Over) => (self.elapsed, Life::UnderWay),
            (Life::UnderWay, Life::UnderWay) => (self.elapsed.min(other.elapsed), Life::UnderWay),
        };
        self.answered += other.answered;
        self.failed += other.failed;
        self.over += other.over;
    }

    /// How many intervals can be told of.
    pub(super) fn whole(&self) -> usize {
        match self.life {
            Life::Over => self.intervals.counts().len(),
            Life::UnderWay => self.intervals.whole(self.elapsed),
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
