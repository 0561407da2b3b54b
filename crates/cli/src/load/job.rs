//! The load as a job of a driver.

use std::time::Duration;

use whimbrel_apps::http::{FixedBody, HttpServer};
use whimbrel_apps::load::{self, Runs, Until};
use whimbrel_apps::record::Intervals;
use whimbrel_apps::{Part, Transport};
use whimbrel_tcp::Instant;
use whimbrel_wire::Endpoint;

use super::course::{Course, Life};
use super::figures::Outcome;
use super::json;
use super::plan::Plan;
use crate::drive::Job;
use crate::progress::{self, Progress};
use crate::report::Report;

/// A load, and the server that it needs if nobody else is there.
pub(crate) struct LoadJob<'p, 'o> {
    plan: &'p Plan,
    told: Told<'p, 'o>,
}

/// Whoever follows a load, and what they know already.
pub(crate) struct Told<'r, 'o> {
    report: &'r mut Report<'o>,
    progress: Progress,
    /// The run, and its first interval that was not told of.
    next: (usize, usize),
}

impl<'r, 'o> Told<'r, 'o> {
    /// Nothing was told yet.
    pub(crate) fn new(report: &'r mut Report<'o>, plan: &load::Plan) -> Self {
        let progress = report.progress(steps(plan));
        Self { report, progress, next: (0, 0) }
    }

    /// Whether anybody follows.
    pub(crate) fn is_asked(&self) -> bool {
        self.progress.is_shown() || self.report.is_followed()
    }

    /// Tells of what is over, and how it goes.
    pub(crate) fn follow(&mut self, parts: &[Course], (until, unit): (Until, &str)) {
        let Some(course) = Course::sum(parts) else { return };
        for (number, run) in course.runs.iter().enumerate().skip(self.next.0) {
            self.intervals(&run.intervals, run.elapsed, run.whole());
            if run.life == Life::UnderWay {
                break;
            }
            self.next = (number + 1, 0);
        }
        self.progress.show(course.steps(until), || course.line(unit));
    }

    /// Tells of what was not told yet, at the end of all.
    pub(crate) fn finish(&mut self, outcome: &Outcome) {
        for run in outcome.earlier.iter().chain([outcome]).skip(self.next.0) {
            let record = &run.record;
            let all = record.intervals.counts().len();
            self.intervals(&record.intervals, record.elapsed(), all);
            self.next = (self.next.0 + 1, 0);
        }
        self.progress.finish();
    }

    fn intervals(&mut self, intervals: &Intervals, elapsed: Duration, until: usize) {
        let (run, from) = self.next;
        for place in from..until {
            let interval = || json::in_run(run, json::interval(intervals, place, elapsed));
            self.report.interval(interval);
        }
        self.next = (run, from.max(until));
    }
}

impl<'p, 'o> LoadJob<'p, 'o> {
    pub(crate) const fn new(plan: &'p Plan, told: Told<'p, 'o>) -> Self {
        Self { plan, told }
    }
}

impl Job for LoadJob<'_, '_> {
    type Client<T: Transport> = Runs<T>;
    type Server<T: Transport> = HttpServer<FixedBody, T>;
    type Course = Course;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint, part: Part) -> Runs<T> {
        let plan = load::Plan { target, ..self.plan.load.part(part) };
        Runs::new(plan, self.plan.repeat)
    }

    fn server<T: Transport>(&self) -> HttpServer<FixedBody, T> {
        HttpServer::new(FixedBody::new(self.plan.body), self.plan.limits)
    }

    fn is_followed(&self) -> bool {
        self.told.is_asked()
    }

    fn course<T: Transport>(client: &Runs<T>, now: Instant) -> Course {
        Course::of(client, now)
    }

    fn watch(&mut self, courses: &[Course]) {
        self.told.follow(courses, (self.plan.load.until, "req/s"));
    }

    fn end<T: Transport>(mut client: Runs<T>, net: &mut T, now: Instant) -> Outcome {
        client.end(net, now);
        Outcome::of(&client)
    }

    fn conclude(&mut self, parts: Vec<Outcome>) -> Option<Outcome> {
        let outcome = Outcome::sum(parts)?;
        self.told.finish(&outcome);
        Some(outcome)
    }
}

/// How many steps of its bar a load has.
fn steps(plan: &load::Plan) -> u64 {
    match plan.until {
        Until::Exchanges(count) => count,
        Until::Elapsed(time) => progress::steps(time),
    }
}
