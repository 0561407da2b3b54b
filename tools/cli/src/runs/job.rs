//! A load as a job of a driver: `load`'s, and `crr`'s.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_apps::http::{FixedBody, HttpServer};
use whimbrel_apps::load::{self, FastOpen, Repeat, Runs, StopCondition};
use whimbrel_apps::record::Intervals;
use whimbrel_apps::{Model, Part, Transport};
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use super::agreement::ShardAgreement;
use super::control::LoadControl;
use super::figures::Outcome;
use super::json;
use super::plan::LoadRunPlan;
use super::progress::{LoadProgress, RunState};
use super::screen::Screen;
use crate::drive::{Job, Watch};
use crate::options::ScreenOptions;
use crate::progress::{self, Progress};
use crate::report::Reporter;

/// Runs of a load, of which each shard has a part, and a server if none is elsewhere.
pub(crate) struct RunsJob<'p, O> {
    /// The plan of each run; its target is set once it is known.
    pub(crate) load: &'p load::LoadPlan,
    /// Number of runs.
    pub(crate) repeat: Repeat,
    /// Unit of the rates.
    pub(crate) unit: &'static str,
    pub(crate) opposite: &'p O,
    pub(crate) reporter: LoadReporter<'p>,
    /// Agreement of the shards on the number of runs.
    pub(crate) agreement: Arc<ShardAgreement>,
    /// Controls during the run, if there are any. In virtual time there are none.
    pub(crate) control: Option<Arc<LoadControl>>,
}

/// A server of a load in this process.
pub(crate) trait LocalServer {
    type Server<T: Transport>: Model<T>;

    /// A server for it.
    fn server<T: Transport>(&self) -> Self::Server<T>;

    /// Number of threads that share a load over the kernel's sockets.
    fn kernel_threads(&self) -> u32 {
        1
    }
}

/// Reports of a load's progress.
pub(crate) struct LoadReporter<'r> {
    report: &'r mut Reporter,
    progress: Progress,
    /// Instead of a line of progress, if there is one.
    screen: Option<Screen>,
    /// The run, and its first unreported interval.
    next: (usize, usize),
}

impl<'r> LoadReporter<'r> {
    /// Begins with nothing reported.
    pub(crate) fn new(
        report: &'r mut Reporter,
        screen: ScreenOptions,
        plan: &load::LoadPlan,
    ) -> Self {
        let progress = report.progress(steps(plan), screen);
        Self { report, progress, screen: None, next: (0, 0) }
    }

    /// The reporter with this screen, if there is one.
    pub(crate) fn on(self, screen: Option<Screen>) -> Self {
        Self { screen, ..self }
    }

    /// True if reports are wanted before the end.
    pub(crate) fn is_asked(&self) -> bool {
        self.screen.is_some() || self.progress.is_shown() || self.report.is_followed()
    }

    /// Reports ended intervals and runs, and the progress.
    pub(crate) fn follow(&mut self, parts: &[LoadProgress], until: StopCondition, unit: &str) {
        let Some(progress) = LoadProgress::sum(parts) else { return };
        for (number, run) in progress.runs.iter().enumerate().skip(self.next.0) {
            self.intervals(&run.intervals, run.elapsed, run.whole());
            if run.state == RunState::UnderWay {
                break;
            }
            self.next = (number + 1, 0);
        }
        match &mut self.screen {
            Some(screen) => screen.show(progress),
            None => self.progress.show(progress.steps(until), || progress.line(unit)),
        }
    }

    /// Reports the rest at the end.
    pub(crate) fn finish(&mut self, outcome: &Outcome) {
        for run in outcome.earlier.iter().chain([outcome]).skip(self.next.0) {
            let record = &run.record;
            let all = record.intervals.counts().len();
            self.intervals(&record.intervals, record.elapsed(), all);
            self.next = (self.next.0 + 1, 0);
        }
        self.progress.finish();
        self.screen = None;
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

impl<O: LocalServer> Job for RunsJob<'_, O> {
    type Client<T: Transport> = Runs<T>;
    type Server<T: Transport> = O::Server<T>;
    type Progress = LoadProgress;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint, part: Part) -> Runs<T> {
        let runs = Runs::new(load::LoadPlan { target, ..self.load.part(part) }, self.repeat);
        let runs = match &self.control {
            None => runs,
            Some(control) => runs.with_controls(control.clone(), part),
        };
        match part.of {
            1 => runs,
            of => {
                self.agreement.expect(of);
                runs.with_agreement(self.agreement.clone(), part.number)
            }
        }
    }

    fn server<T: Transport>(&self) -> O::Server<T> {
        self.opposite.server()
    }

    fn fast_opens(&self) -> u32 {
        match self.load.fast_open {
            FastOpen::Off => 0,
            FastOpen::On => self.load.connections,
        }
    }

    fn kernel_threads(&self) -> u32 {
        self.opposite.kernel_threads()
    }

    fn is_followed(&self) -> bool {
        self.reporter.is_asked() || self.control.is_some()
    }

    fn progress<T: Transport>(client: &Runs<T>, net: Option<&T>, now: Instant) -> LoadProgress {
        LoadProgress::of(client, net, now)
    }

    fn watch(&mut self, progress: &[LoadProgress]) -> Watch {
        self.reporter.follow(progress, self.load.until, self.unit);
        match self.control.as_ref().is_some_and(|control| control.has_ended()) {
            false => Watch::GoOn,
            true => Watch::End,
        }
    }

    fn end<T: Transport>(mut client: Runs<T>, net: &mut T, now: Instant) -> Outcome {
        client.end(net, now);
        Outcome::of(&client)
    }

    fn conclude(&mut self, parts: Vec<Outcome>) -> Option<Outcome> {
        let outcome = Outcome::sum(parts)?;
        self.reporter.finish(&outcome);
        Some(outcome)
    }
}

impl LocalServer for LoadRunPlan {
    type Server<T: Transport> = HttpServer<FixedBody, T>;

    fn server<T: Transport>(&self) -> HttpServer<FixedBody, T> {
        let pace = self.pace.shared_by(self.parts());
        HttpServer::new(FixedBody::new(self.body), self.limits).with_pace(pace)
    }

    fn kernel_threads(&self) -> u32 {
        self.threads
    }
}

/// Number of steps of a load's progress bar.
fn steps(plan: &load::LoadPlan) -> u64 {
    match plan.until {
        StopCondition::Exchanges(count) => count,
        StopCondition::Elapsed(time) => progress::steps(time),
    }
}
