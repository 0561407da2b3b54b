//! The result of a load, and the figures that conditions name.

use hdrhistogram::Histogram;
use whimbrel_apps::condition::{Figure, Measure};
use whimbrel_apps::load::{Finished, Runs, Unfinished};
use whimbrel_apps::{ConnError, Record, Transport};
use whimbrel_wire::Endpoint;

use crate::failure::Failure;
use crate::target::{at, each};
use crate::{descriptors, quantity};

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) record: Record,
    /// Unfinished work at its end.
    pub(crate) left: Unfinished,
    /// Address of the server, as far as it was found.
    pub(crate) target: Option<Endpoint>,
    /// The runs before it.
    pub(crate) earlier: Vec<Self>,
}

impl Outcome {
    /// The result of several runs: the last, and those before it.
    pub(crate) fn of<T: Transport>(runs: &Runs<T>) -> Self {
        let outcome = |run: &Finished| Self {
            record: run.record.clone(),
            left: run.close,
            target: Some(runs.current().plan().target),
            earlier: Vec::new(),
        };
        let mut earlier: Vec<_> = runs.finished().iter().map(outcome).collect();
        let current = runs.current();
        let last = earlier.pop().unwrap_or_else(|| Self {
            record: current.record().clone(),
            left: current.close(),
            target: Some(current.plan().target),
            earlier: Vec::new(),
        });
        Self { earlier, ..last }
    }

    /// Sums the results of a load's parts, run by run.
    pub(crate) fn sum(parts: Vec<Self>) -> Option<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for part in parts {
            let Self { record, left, target, earlier } = part;
            let last = Self { record, left, target, earlier: Vec::new() };
            for (place, run) in earlier.into_iter().chain([last]).enumerate() {
                match runs.get_mut(place) {
                    Some(sum) => {
                        sum.record += &run.record;
                        sum.left += run.left;
                    }
                    None => runs.push(run),
                }
            }
        }
        let last = runs.pop()?;
        Some(Self { earlier: runs, ..last })
    }

    /// Fails without any response, with the reason.
    pub(crate) fn judge(&self, target: &str) -> Result<(), Failure> {
        let record = &self.record;
        if record.answered() > 0 {
            return Ok(());
        }
        match record.conn_errors.iter().max_by_key(|(_, count)| **count) {
            Some((conn_error, count)) => Err(Failure::run(format!(
                "{target}: no response ({}): {}",
                self.reason(target, *conn_error, *count),
                remedy(record, *conn_error)
            ))),
            None => Err(Failure::run(format!(
                "{target}: no response in {}, with {} unanswered at the end: is the path up, and \
                 the run longer than a response takes?",
                quantity::show(record.elapsed()),
                quantity::of(self.left.in_flight, "request"),
            ))),
        }
    }

    /// A failure, its place and its count.
    fn reason(&self, target: &str, conn_error: ConnError, count: u64) -> String {
        let unreached = &self.record.unreached;
        if unreached.len() as u64 == self.record.failed() {
            return each(unreached);
        }
        let before = if unreached.is_empty() { String::new() } else { each(unreached) + "; " };
        let times = if count == 1 { "once".into() } else { format!("{count} times") };
        let at = self.target.map_or_else(String::new, |found| at(found, target));
        let about = about(&self.record, conn_error);
        format!("{before}{conn_error}{at}, {times}{about}")
    }

    /// The share of exchanges that were answered without an error, of those that were measured.
    pub(crate) fn success_rate(&self) -> f64 {
        let all = self.record.answered() + self.record.failed();
        if all == 0 { 0.0 } else { self.record.succeeded() as f64 / all as f64 }
    }
}

/// The figures that belong to an error, if there are any: `, ports 50000 to 50003`.
pub(super) fn about(record: &Record, conn_error: ConnError) -> String {
    match (conn_error, record.shortage) {
        (ConnError::PortsExhausted, Some(shortage)) => format!(", {shortage}"),
        (ConnError::NoDescriptor, _) => format!(", of {}", descriptors::own_limit()),
        (ConnError::HeadTooLong, _) => {
            format!(", {} bytes received without its end", quantity::thousands(record.longest_head))
        }
        _ => String::new(),
    }
}

/// Remedy of an error.
pub(super) fn remedy(record: &Record, conn_error: ConnError) -> String {
    match (conn_error, record.shortage) {
        (ConnError::PortsExhausted, Some(shortage)) => shortage.remedy(),
        _ => conn_error.remedy().into(),
    }
}

/// The share of connections' time that something held up, and what; the greatest first.
pub(crate) fn held(record: &Record) -> Vec<(f64, &'static str)> {
    let causes = [(record.held.ports, "no free port"), (record.held.syns, "SYNs unanswered")];
    let mut shares = causes.map(|(time, cause)| (record.share(time), cause)).to_vec();
    shares.retain(|(share, _)| *share > 0.0);
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    shares
}

/// The names that [`figure`] knows.
pub(crate) fn figure_names() -> Vec<(&'static str, Measure)> {
    let quantiles = QUANTILES.iter().map(|(name, _)| *name);
    let times = quantiles.chain(["min", "max", "mean"]).map(|name| (name, Measure::Time));
    let numbers = ["rps", "requests"].map(|name| (name, Measure::Number));
    let shares = ["errors", "success", "held"].map(|name| (name, Measure::Share));
    times.chain(numbers).chain(shares).collect()
}

/// A figure by its name: times in seconds, corrected if there was a rate; none if nothing was timed.
pub(crate) fn figure(outcome: &Outcome, name: &str) -> Option<Figure> {
    let record = &outcome.record;
    let latency = &record.corrected;
    let plain = |value: f64| Some(Figure { value, whole: 1.0 });
    let time = |seconds: f64| of_some(latency, |_| Figure { value: seconds, whole: 1.0 });
    let answered = record.answered();
    let all = answered + record.failed();
    if let Some((_, quantile)) = QUANTILES.iter().find(|(known, _)| *known == name) {
        return time(seconds(latency.value_at_quantile(*quantile)));
    }
    match name {
        "min" => time(seconds(latency.min())),
        "max" => time(seconds(latency.max())),
        "mean" => time(latency.mean() / 1e9),
        "rps" => plain(record.rate()),
        "requests" => plain(all as f64),
        "errors" => Some(Figure { value: (all - record.succeeded()) as f64, whole: all as f64 }),
        "held" => plain(held(record).iter().map(|(share, _)| share).sum()),
        "success" => Some(Figure { value: record.succeeded() as f64, whole: all as f64 }),
        _ => None,
    }
}

/// A `figure` of a histogram, unless it is empty.
pub(crate) fn of_some<R>(
    histogram: &Histogram<u64>,
    figure: impl FnOnce(&Histogram<u64>) -> R,
) -> Option<R> {
    (!histogram.is_empty()).then(|| figure(histogram))
}

/// A number of nanoseconds, in seconds.
pub(crate) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// The mean of a histogram of nanoseconds, in nanoseconds.
pub(crate) fn mean(histogram: &Histogram<u64>) -> u64 {
    histogram.mean() as u64
}

/// The quantiles of conditions and documents.
pub(crate) const QUANTILES: [(&str, f64); 9] = [
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];
