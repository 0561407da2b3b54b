//! The load as a job of a driver.

use std::time::Duration;

use whimbrel_apps::http::{FixedBody, HttpServer};
use whimbrel_apps::load::{self, Load, Runs, Until};
use whimbrel_apps::{Model, Record, Transport};
use whimbrel_tcp::Instant;
use whimbrel_wire::Endpoint;

use super::figures::Outcome;
use super::json;
use super::plan::Plan;
use crate::drive::Job;
use crate::progress::{self, Progress};
use crate::quantity;
use crate::report::Report;

/// A load, and the server that it needs if nobody else is there.
pub(crate) struct LoadJob<'p, 'o> {
    plan: &'p Plan,
    progress: Progress,
    told: Told<'p, 'o>,
}

/// Whoever follows a load, and what they know already.
pub(crate) struct Told<'r, 'o> {
    report: &'r mut Report<'o>,
    /// The run, and its first interval that was not told of.
    next: (usize, usize),
}

impl<'r, 'o> Told<'r, 'o> {
    /// Nothing was told yet.
    pub(crate) const fn new(report: &'r mut Report<'o>) -> Self {
        Self { report, next: (0, 0) }
    }

    /// Tells of what is over.
    pub(crate) fn follow<T: Transport>(&mut self, runs: &Runs<T>, now: Instant) {
        for run in runs.finished().iter().skip(self.next.0) {
            let record = &run.record;
            let elapsed = record.elapsed();
            self.intervals(record, elapsed, record.intervals.counts().len());
            self.next = (self.next.0 + 1, 0);
        }
        if runs.current().has_begun() && !runs.current().is_done() {
            self.follow_record(runs.current().record(), now);
        }
    }

    /// Tells of the intervals of a run under way that are over.
    fn follow_record(&mut self, record: &Record, now: Instant) {
        if now >= record.began {
            let elapsed = now.since(record.began);
            self.intervals(record, elapsed, record.intervals.whole(elapsed));
        }
    }

    fn intervals(&mut self, record: &Record, elapsed: Duration, until: usize) {
        let (run, from) = self.next;
        for place in from..until {
            let interval = || json::in_run(run, json::interval(record, place, elapsed));
            self.report.interval(interval);
        }
        self.next = (run, from.max(until));
    }
}

impl<'p, 'o> LoadJob<'p, 'o> {
    pub(crate) fn new(plan: &'p Plan, progress: Progress, told: Told<'p, 'o>) -> Self {
        Self { plan, progress, told }
    }

    /// The same as `watch` for what several threads measured together, of which so many exchanges
    /// are over.
    pub(super) fn watch_together(&mut self, record: &Record, over: u64, now: Instant) {
        self.told.follow_record(record, now);
        let done = match self.plan.load.until {
            Until::Exchanges(_) => over,
            Until::Elapsed(_) => progress::steps(now.since(record.began)),
        };
        self.progress.show(done, || watch_line(record, now, "req/s"));
    }

    /// The run of several threads is over: tells of what was not told of yet.
    pub(super) fn end_together(&mut self, record: &Record) {
        self.told.intervals(record, record.elapsed(), record.intervals.counts().len());
    }

    /// The line of progress goes.
    pub(crate) fn finish(&self) {
        self.progress.finish();
    }
}

impl Job for LoadJob<'_, '_> {
    type Client<T: Transport> = Runs<T>;
    type Server<T: Transport> = HttpServer<FixedBody, T>;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint) -> Runs<T> {
        let plan = load::Plan { target, ..self.plan.load.clone() };
        Runs::new(plan, self.plan.repeat)
    }

    fn server<T: Transport>(&self) -> HttpServer<FixedBody, T> {
        HttpServer::new(FixedBody::new(self.plan.body), self.plan.limits)
    }

    fn watch<T: Transport>(&mut self, client: &Runs<T>, now: Instant) {
        self.told.follow(client, now);
        let load = client.current();
        self.progress.show(done(load, now), || watch_line(load.record(), now, "req/s"));
    }

    fn end<T: Transport>(&mut self, client: &mut Runs<T>, net: &mut T, now: Instant) {
        client.end(net, now);
        self.told.follow(client, now);
    }

    fn outcome<T: Transport>(&self, client: Runs<T>) -> Outcome {
        Outcome::of(&client)
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
        quantity::show(Duration::from_nanos(nanos))
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
