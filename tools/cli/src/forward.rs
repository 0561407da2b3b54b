//! `whimbrel forward`: accepts connections on the stack, and carries each on to a server by the kernel's
//! sockets.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use whimbrel_apps::proxy_header::ProxyVersion;
use whimbrel_io::signals::StatusRequest;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{Clock, Device, StackShard, Stop};
use whimbrel_stack::ListenerId;

use crate::capture::{self, CaptureOption};
use crate::control::ControlOption;
use crate::drive::{self, FinishedRun, KernelNet, StackState};
use crate::failure::Failure;
use crate::routes::RouteOptions;
use crate::rules::RuleOptions;
use crate::shards::ShardOptions;
use crate::{output, quantity, serving, streams, wires};
use board::{Board, Counts};
use dialer::Dialer;
use plan::ForwardPlan;
use port::{ForwardPort, Place};

mod board;
mod dialer;
mod plan;
mod port;
mod report;
mod server;

/// The command line of `whimbrel forward`, as it was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The wire.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_GATEWAYS, default_value = serving::DEFAULT_WIRE)]
    wire: String,
    /// Listen there: ADDR:PORT, NAME:PORT, or PORT on every address of the wire; may repeat.
    #[arg(short, long, value_name = "ADDR:PORT", required = true)]
    listen: Vec<String>,
    /// The server: unix:PATH or HOST:PORT, as the kernel's sockets reach it. Each connection is accepted
    /// first. If the server refuses it, or does not accept it within 5 s, the client is reset.
    #[arg(long, value_name = "SERVER")]
    to: String,
    /// Send the client's address and port to the server first, by this version of the PROXY protocol.
    /// The server must expect it: `listen … proxy_protocol` in nginx.
    #[arg(long, value_enum, value_name = "VERSION")]
    proxy_protocol: Option<ProxyOption>,
    /// The most connections that wait to be accepted, per address.
    #[arg(long, value_name = "N", default_value_t = serving::BACKLOG, value_parser = quantity::whole::<u32>(1..=u32::MAX.into()))]
    backlog: u32,
    /// Reset the flows that are open this long after a signal [default: wait until they end].
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    linger: Option<Duration>,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    #[command(flatten)]
    routes: RouteOptions,
    #[command(flatten)]
    shards: ShardOptions,
    #[command(flatten)]
    capture: CaptureOption,
    #[command(flatten)]
    control: ControlOption,
    /// Print one JSON document (whimbrel.forward/1) at the end instead of text.
    #[arg(long)]
    json: bool,
    /// Print only errors.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
}

/// A version of the PROXY protocol.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ProxyOption {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

impl From<ProxyOption> for ProxyVersion {
    fn from(option: ProxyOption) -> Self {
        match option {
            ProxyOption::V1 => Self::V1,
            ProxyOption::V2 => Self::V2,
        }
    }
}

/// The result of a run: the counts of all shards.
struct Forwarded {
    counts: Counts,
    elapsed: Duration,
}

/// Forwards until a signal, then until the open flows have ended.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = ForwardPlan::new(arguments)?;
    let question = StatusRequest::install().map_err(Failure::run)?;
    let ran = drive::measure(|stop| forward(&plan, arguments, stop, &question))?;
    match (arguments.json, arguments.quiet) {
        (true, _) => output::print(&format!("{:#}\n", report::document(&plan, &ran)))?,
        (false, false) => output::print(&report::summary(&ran.outcome.counts))?,
        (false, true) => {}
    }
    plan.setup.judge_outcomes()
}

/// Forwards on each queue of the wire.
fn forward(
    plan: &ForwardPlan,
    arguments: &Arguments,
    stop: &Stop,
    question: &StatusRequest,
) -> Result<FinishedRun<Forwarded>, Failure> {
    // On failure fewer flows are open at a time; refusals say so.
    let _as_it_is = whimbrel_io::descriptors::raise_limit();
    let clock = Clock::start();
    let mut stack = plan.setup.open(clock, stop, None)?;
    let _control = plan.setup.control.serve(&plan.setup.rules, &mut stack)?;
    let released = Stop::new().map_err(Failure::run)?;
    let board = Arc::new(Board::new(stack.len(), stop.clone(), released.clone()));
    let wakers: Vec<_> = stack.iter().map(|shard| shard.waker.clone()).collect();
    let offloads = stack.first().map(|first| first.device.capabilities());
    let headline = stack.first().map(|first| report::opening(plan, first)).unwrap_or_default();
    let shards = stack.into_iter().map(|mut shard| {
        let listen = |at: &_| shard.shard.listen(*at, plan.backlog).map_err(Failure::run);
        let listeners = plan.listen.iter().map(listen).collect::<Result<Vec<_>, _>>()?;
        Ok((shard, listeners))
    });
    let shards = shards.collect::<Result<Vec<_>, Failure>>()?;
    if !arguments.quiet {
        match arguments.json {
            true => streams::tell(&headline),
            false => output::print(&headline)?,
        }
    }
    let threads = plan.setup.threads(&released);
    let ended = threads.run(
        shards,
        |(shard, listeners)| run_shard(plan, shard, listeners, &board, [stop, &released]),
        || {
            let tell = |counts: &Counts| streams::tell(&report::status(clock.now(), counts));
            let on_drain = |counts: &Counts| {
                if !arguments.quiet && !arguments.json {
                    // The end reports a reader that is gone.
                    let _ = output::print(&report::draining(counts));
                }
            };
            board.stay(question, &wakers, tell, on_drain)
        },
    )?;
    board.judge()?;
    let (mut counts, mut steering) = (Counts::default(), SteeringCounters::default());
    for ended in &ended {
        counts += &ended.counts;
        steering += ended.steering;
    }
    let server = StackState::sum(ended.into_iter().map(|ended| ended.state));
    let elapsed = clock.now().since(whimbrel_base::Instant::ZERO);
    let target = plan.listen.first().copied().unwrap_or_else(report::nowhere);
    let ran = FinishedRun::over_the_kernel(Forwarded { counts, elapsed }, target);
    Ok(FinishedRun { server, steering, offloads, ..ran })
}

/// The result of a shard.
struct EndedShard {
    counts: Counts,
    state: StackState,
    steering: SteeringCounters,
}

/// Forwards on this thread until `stop`, and then until `released`.
fn run_shard(
    plan: &ForwardPlan,
    shard: StackShard,
    listeners: Vec<ListenerId>,
    board: &Arc<Board>,
    [stop, released]: [&Stop; 2],
) -> Result<EndedShard, Failure> {
    // A shard that ends early takes the others along, which may still wait for a signal.
    let _ends_all = EndOnDrop(board);
    let net = KernelNet::new().map_err(Failure::run)?;
    let dialer = Dialer::new(plan.server.clone());
    let (clock, number) = (shard.clock, shard.number);
    let place = Place { number, board: Arc::clone(board) };
    let port = ForwardPort::new(net, dialer, plan.proxy, listeners, place);
    let mut worker = shard.worker(port);
    worker.run(stop)?;
    let mut worker = worker.with_port(|shard, mut port| {
        port.begin_drain(shard, clock.now(), plan.linger);
        port
    });
    worker.run(released)?;
    capture::finish(worker.take_tap());
    let (device, shard, port) = worker.into_parts();
    Ok(EndedShard {
        counts: port.counts(&shard),
        state: StackState::of(&shard),
        steering: device.steering(),
    })
}

/// Ends all threads when this one ends.
struct EndOnDrop<'b>(&'b Board);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
