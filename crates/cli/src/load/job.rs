//! The load as a job of a driver.

use whimbrel_apps::http::{FixedBody, HttpServer};
use whimbrel_apps::load::{self, Load, Until};
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
    type Client<T: Transport> = Load<T>;
    type Server<T: Transport> = HttpServer<FixedBody, T>;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint) -> Load<T> {
        Load::new(load::Plan { target, ..self.plan.load.clone() })
    }

    fn server<T: Transport>(&self) -> HttpServer<FixedBody, T> {
        HttpServer::new(FixedBody::new(self.plan.body), self.plan.limits)
    }

    fn watch<T: Transport>(&mut self, client: &Load<T>, now: Instant) {
        self.progress.show(done(client, now), || watch_line(client.record(), now, "req/s"));
    }

    fn end<T: Transport>(&mut self, client: &mut Load<T>, net: &mut T, now: Instant) {
        client.end(net, now);
    }

    fn outcome<T: Transport>(&self, client: Load<T>) -> Outcome {
        Outcome { record: client.record().clone(), left: client.close() }
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
