//! Servers on the stack: HTTP/1.1 or HTTP/2, bytes, and iperf3's, for `serve`, `crr` and `bulk`.

use std::sync::Arc;

use whimbrel_io::signals::Signals;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{Clock, Device, StackShard, Steered, Stop};
use whimbrel_stack::{ListenerId, Shard};

use crate::capture;
use crate::drive::{self, FinishedRun, StackState};
use crate::failure::Failure;
use crate::options::OutputOptions;
use crate::quantity::thousands;
use crate::refusals::refusals;
use crate::report::Reporter;

mod access_log;
mod answers;
mod closing;
mod content;
mod draining;
mod files;
mod h2;
mod json;
mod kernel;
mod notify;
mod passed;
mod plan;
mod port;
mod report;
mod server;
mod supervision;
mod totals;

use access_log::AccessLog;
pub(crate) use access_log::is_standard_output;
use answers::ShardAnswers;
use closing::Closing;
use draining::{Drain, Draining};
pub(crate) use plan::{
    BACKLOG, ContentPlan, DEFAULT_WIRE, NETSERVER, OtherServer, Protocol, ServePlan, SitePlan,
    Uploads, check_wire, default_wire, listen,
};
use port::{Place, ServePort};
use report::ServeReporter;
pub(crate) use report::left_over;
use server::Server;
use supervision::Supervision;
use totals::{ShardTotals, Totals};

/// Serves for `crr` or `bulk` until interrupted.
pub(crate) fn other(server: OtherServer<'_>) -> Result<(), Failure> {
    let reporter = reporter(server.output)?;
    let plan = ServePlan::other(server)?;
    if matches!(plan.content, ContentPlan::Iperf3(_)) && plan.setup.shards > 1 {
        let text = "an iperf3 test runs on one shard: leave it out, and queues= of the wire";
        return Err(Failure::usage("--shards", text));
    }
    start(plan, reporter)
}

/// The reporter for `options`.
pub(crate) fn reporter(options: &OutputOptions) -> Result<Reporter, Failure> {
    Reporter::new(options, &["whimbrel"], &json::FIGURES)
}

/// The reporter of a server, and the signal that ends it.
struct ServeControl<'s> {
    report: ServeReporter,
    stop: &'s Stop,
    clock: Clock,
    supervision: &'s mut Supervision,
    signals: &'s Signals,
}

/// The result of a server.
struct Served {
    /// The printer, on the first shard.
    report: Option<ServeReporter>,
    /// Its counts, as printed in a line for people.
    totals: Totals,
    /// Result of a capture that was replayed to it.
    replayed: Option<String>,
}

/// Serves by `plan` until interrupted, and prints the result.
pub(crate) fn start(mut plan: ServePlan, mut reporter: Reporter) -> Result<(), Failure> {
    // Each shard opens its own: whether that can be done is known before the wire is taken.
    drop(Server::<Shard>::open(&plan)?);
    reporter.open()?;
    if is_standard_output(&plan.access_log) {
        reporter.leave_standard_output();
    }
    plan.log = plan.access_log.as_deref().map(AccessLog::open).transpose()?;
    let report = ServeReporter::new(reporter);
    let mut supervision = Supervision::install()?;
    let install = match supervision.manager.is_there() {
        true => Signals::install_without_hangup,
        false => Signals::install,
    };
    let ran = drive::measure_until(install, |stop, signals| {
        let clock = Clock::start();
        let supervision = &mut supervision;
        serve_wire(&plan, ServeControl { report, stop, clock, supervision, signals })
    })?;
    ServeReporter::conclude(&plan, ran)
}

fn serve_wire(
    plan: &ServePlan,
    reporter: ServeControl<'_>,
) -> Result<FinishedRun<Served>, Failure> {
    match plan.setup.wire.is_kernel() {
        true => kernel::serve(plan, reporter),
        false => serve(plan, reporter),
    }
}

/// Serves at each queue of the wire until it is stopped, then lets everything go.
fn serve(plan: &ServePlan, reporter: ServeControl<'_>) -> Result<FinishedRun<Served>, Failure> {
    let ServeControl { mut report, stop, clock, supervision, signals } = reporter;
    let mut stack = plan.setup.open(clock, stop, plan.group)?;
    let _control = plan.setup.control.serve(&plan.setup.rules, &mut stack)?;
    let shard_totals = Arc::new(ShardTotals::new(stack.len()));
    let answers = ShardAnswers::new(stack.len(), plan.log.clone());
    let awake: Vec<_> = stack.iter().map(|shard| shard.waker.clone()).collect();
    let offloads = stack.first().map(|first| first.device.capabilities());
    let headline = headline(&stack);
    let place = |number| Place::new(number, Arc::clone(&shard_totals), Arc::clone(&answers));
    let mut shards = Vec::new();
    for mut shard in stack {
        let listeners = open_listeners(plan, &mut shard.shard)?;
        shards.push(ServedShard { place: place(shard.number), shard, listeners });
    }
    report.begin(plan, &headline);
    supervision.manager.ready();
    if let Some(first) = shards.first_mut() {
        first.place.report = Some(report);
    }
    let drain = Drain::new(shards.len()).map_err(Failure::run)?;
    let threads = plan.setup.threads(stop);
    let ended = threads.run(
        shards,
        |shard| shard.serve(plan, stop, signals, &drain),
        || {
            let ended = answers.stay(supervision, stop, &awake, clock);
            let drains = plan.drains(signals);
            supervision.manager.stopping(if drains { "draining" } else { "ending" });
            ended
        },
    )?;
    let mut steering = SteeringCounters::default();
    ended.iter().for_each(|shard| steering += shard.device.steering());
    let replayed = ended.first().filter(|_| plan.setup.wire.is_capture()).map(|only| {
        let frames = thousands(only.device.counters().rx_frames);
        format!("{frames} frames; {}", refusals([&only.shard]))
    });
    let server = StackState::sum(ended.iter().map(|shard| StackState::of(&shard.shard)));
    let report = ended.into_iter().find_map(|shard| shard.report);
    let served = Served { report, totals: shard_totals.total(), replayed };
    let ran = FinishedRun::over_the_kernel(served, plan.target());
    Ok(FinishedRun { server, steering, seed: plan.setup.seed, offloads, ..ran })
}

/// The wire, for people, and how many shards are on it if there are several.
fn headline(stack: &[StackShard]) -> String {
    let wire = stack.first().map(|first| first.device.about()).unwrap_or_default();
    match stack.len() {
        1 => wire,
        shards => format!("{wire}  shards={shards}"),
    }
}

/// A shard that serves, with all that it needs.
struct ServedShard {
    shard: StackShard,
    listeners: Vec<ListenerId>,
    place: Place,
}

/// The result of a shard.
struct Ended {
    /// The printer of the summary, if this shard has it.
    report: Option<ServeReporter>,
    shard: Shard,
    /// Its queue stays until all have ended: without it the kernel would deal its flows to the others.
    device: Steered,
}

impl ServedShard {
    /// Serves on this thread until it is stopped, then lets everything go.
    fn serve(
        self,
        plan: &ServePlan,
        stop: &Stop,
        signals: &Signals,
        drain: &Arc<Drain>,
    ) -> Result<Ended, Failure> {
        let Self { shard, listeners, place } = self;
        let (clock, port) =
            (shard.clock, ServePort::new(Server::open(plan)?, listeners.clone(), place));
        let mut worker = shard.worker(port);
        worker.run(stop)?;
        if plan.drains(signals) {
            let (now, open) = (clock.now(), listeners.clone());
            let mut draining = worker.with_port(|_, port| {
                Draining::new(port, open, [now, now + plan.drain], Arc::clone(drain))
            });
            draining.run(drain.drained())?;
            worker = draining.with_port(|_, draining| draining.served);
        }

        let released = Stop::new().map_err(Failure::run)?;
        let mut worker = worker.with_port(|shard, mut port| {
            for listener in listeners {
                shard.close_listener(listener);
            }
            port.shut_down(shard);
            Closing::new(port, clock.now(), released.clone())
        });
        worker.run(&released)?;
        capture::finish(worker.take_tap());
        worker.end_trace();
        let (device, shard, closing) = worker.into_parts();
        let report = closing.served.finish(&shard);
        Ok(Ended { report, shard, device })
    }
}

fn open_listeners(plan: &ServePlan, shard: &mut Shard) -> Result<Vec<ListenerId>, Failure> {
    let listen = |at: &_| {
        let listener = shard.listen(*at, plan.backlog).map_err(Failure::run)?;
        shard.set_fast_open(listener, plan.fast_open);
        Ok(listener)
    };
    plan.listen.iter().map(listen).collect()
}
