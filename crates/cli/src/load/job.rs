//! The load as a job of a driver.

use whimbrel_apps::http::{FixedBody, HttpServer};
use whimbrel_apps::load::{self, Finished, Load, Runs, Until};
use whimbrel_apps::{Record, Transport};
use whimbrel_tcp::Instant;
use whimbrel_wire::Endpoint;

use super::figures::Outcome;
use super::plan::Plan;
use crate::drive::Job;
use crate::progress::{self, Progress};
use crate::quantity;

/// A load, and the server that it needs if nobody else is there.
pub(crate) struct LoadJob<'p> {
    plan: &'p Plan,
    progress: Progress,
}

impl<'p> LoadJob<'p> {
    pub(crate) fn new(plan: &'p Plan, quiet: bool) -> Self {
        Self { plan, progress: Progress::new(steps(&plan.load), quiet) }
    }

    /// The line of progress goes.
    pub(crate) fn finish(&self) {
        self.progress.finish();
    }
}

impl Job for LoadJob<'_> {
    type Client<T: Transport> = Runs<T>;
    type Server<T: Transport> = HttpServer<FixedBody, T>;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint) -> Runs<T> {
        let plan = load::Plan { target, ..self.plan.load.clone() };
        Runs::new(plan, self.plan.repeat, self.plan.gap)
    }

    fn server<T: Transport>(&self) -> HttpServer<FixedBody, T> {
        HttpServer::new(FixedBody::new(self.plan.body), self.plan.limits)
    }

    fn watch<T: Transport>(&mut self, client: &Runs<T>, now: Instant) {
        let load = client.current();
        self.progress.show(done(load, now), || watch_line(load.record(), now, "req/s"));
    }

    fn end<T: Transport>(&mut self, client: &mut Runs<T>, net: &mut T, now: Instant) {
        client.end(net, now);
    }

    fn outcome<T: Transport>(&self, client: Runs<T>) -> Outcome {
        let outcome = |run: &Finished| Outcome {
            record: run.record.clone(),
            left: run.close,
            earlier: Vec::new(),
        };
        let mut runs: Vec<_> = client.finished().iter().map(outcome).collect();
        let current = client.current();
        let last = runs.pop().unwrap_or_else(|| Outcome {
            record: current.record().clone(),
            left: current.close(),
            earlier: Vec::new(),
        });
        Outcome { earlier: runs, ..last }
    }
}

/// How many steps of its bar a load has.
pub(crate) fn steps(plan: &load::Plan) -> u64 {
    match plan.until {
        Until::Exchanges(count) => count,
        Until::Elapsed(time) => progress::steps(time),
    }
}

/// How many of them are done.
pub(crate) fn done<T: Transport>(client: &Load<T>, now: Instant) -> u64 {
    match client.plan().until {
        Until::Exchanges(_) => client.over(),
        Until::Elapsed(_) => progress::steps(now.since(client.record().began)),
    }
}

/// How it goes: the rate of the last interval that is whole, or else of all, and latencies.
pub(crate) fn watch_line(record: &Record, now: Instant, unit: &str) -> String {
    let elapsed = now.since(record.began);
    let rates = record.intervals.rates(elapsed);
    let overall = whimbrel_apps::record::per_second(record.answered(), elapsed);
    let rate = rates.last().copied().unwrap_or(overall);
    let at = |quantile| {
        let nanos = record.corrected.value_at_quantile(quantile);
        quantity::show(std::time::Duration::from_nanos(nanos))
    };
    format!(
        "{:>9} {unit}  p50 {}  p99 {}  max {}  errors {}",
        quantity::thousands(rate as u64),
        at(0.5),
        at(0.99),
        at(1.0),
        record.failed()
    )
}
