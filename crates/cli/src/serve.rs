//! `whimbrel serve`: an HTTP/1.1 server, or one of bytes, on the stack.

use std::sync::Arc;

use clap::Args;
use whimbrel_io::signals::Question;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{Clock, Device, KeySource, StackShard, Steered, Stop};
use whimbrel_stack::{ListenerId, Shard};

use crate::capture::{self, CaptureOption};
use crate::congestion;
use crate::drive::{self, Ran, StackState};
use crate::failure::Failure;
use crate::load::Switch;
use crate::options::{OutputOptions, PaceOptions};
use crate::pcap::refusals;
use crate::quantity::{self, thousands};
use crate::routes::RouteOptions;
use crate::rules::{RuleOptions, Shorthand};
use crate::shards::ShardOptions;
use crate::{size, wires};

mod access_log;
mod answers;
mod closing;
mod content;
mod files;
mod h2;
mod json;
mod kernel;
mod plan;
mod port;
mod report;
mod server;
mod totals;

use access_log::AccessLog;
use answers::ShardAnswers;
use closing::Closing;
use plan::ServePlan;
pub(crate) use plan::{ContentPlan, NETSERVER, OtherServer};
use port::{Place, ServePort};
use report::ServeReporter;
use server::Server;
use totals::{ShardTotals, Totals};

/// The command line of `whimbrel serve`, as it was typed.
#[derive(Args, Debug)]
#[command(mut_arg("json", |option| option.help(JSON_HELP)))]
#[command(mut_arg("fail_if", |option| option.help(FAIL_IF_HELP)))]
pub(crate) struct Arguments {
    /// Where frames go.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_SERVERS, default_value = plan::DEFAULT_WIRE)]
    wire: String,
    /// Where to listen.
    #[arg(short, long, value_name = "ADDR:PORT", help = LISTEN_HELP)]
    listen: Vec<String>,
    /// The most connections that wait to be accepted, per address.
    #[arg(long, value_name = "N", default_value_t = plan::BACKLOG, value_parser = quantity::whole::<u32>(1..=u32::MAX.into()))]
    backlog: u32,
    /// Accept data with SYNs (TCP Fast Open, RFC 7413), in up to N handshakes at a time and
    /// address. A request may then be carried out twice: a network can repeat a SYN.
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u32>(1..=u32::MAX.into()))]
    fastopen: Option<u32>,
    /// When to answer a SYN with a cookie and keep no record of it: auto (when half-open
    /// connections have reached their bound), always or off [default: auto].
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "off"])]
    syncookies: Option<String>,
    #[arg(short = 'C', long, value_name = "NAME", help = congestion::help())]
    congestion: Option<String>,
    /// Share SYN cookies with a group of servers, as behind a balancer that deals segments to any
    /// of them: they have one key, 32 hexadecimal digits in a file or in a variable, and clocks
    /// within 40 s.
    #[arg(long, value_name = "file:PATH|env:NAME")]
    cookie_group: Option<KeySource>,
    /// Answer GET of any path with this many bytes (k, M, G: powers of 1,024), and POST or PUT with
    /// the length and CRC-32 of what was sent.
    #[arg(long, value_name = "SIZE", default_value = "128", value_parser = size::parse)]
    body: u64,
    /// Speak HTTP/2, too, with clients that begin with it (RFC 9113 3.3: no TLS, no Upgrade), as curl
    /// --http2-prior-knowledge does; with all others HTTP/1.1.
    #[arg(long, conflicts_with = "RoleOptions")]
    h2c: bool,
    /// Append a line for each request to this file, or with - to the standard output, in the combined
    /// format of web servers' logs. The server never waits for it: what a disk does not keep up with
    /// is lost, and counted.
    #[arg(long, value_name = "FILE", conflicts_with = "RoleOptions")]
    access_log: Option<std::path::PathBuf>,
    /// Serve the files below this directory instead.
    #[arg(long, value_name = "DIR", conflicts_with = "body")]
    file_root: Option<std::path::PathBuf>,
    /// Let PUT create and replace files below the directory.
    #[arg(long, requires = "file_root")]
    upload: bool,
    /// The longest request body.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size::parse)]
    max_body: u64,
    /// Answer 408 to a request whose head takes longer. (HTTP/2: a connection without a request is
    /// closed after a minute, whatever else it sends.)
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::some_time, conflicts_with = "RoleOptions")]
    head_timeout: std::time::Duration,
    /// Whether a connection serves more than one request, if its client asks for it.
    #[arg(long, value_enum, value_name = "SWITCH", default_value_t = Switch::On, conflicts_with = "RoleOptions")]
    keepalive: Switch,
    /// End each connection after this many requests, as web servers do that count them: by Connection:
    /// close in the last response.
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX), conflicts_with_all = ["RoleOptions", "h2c", "keepalive"])]
    requests_per_connection: Option<u64>,
    /// Who closes first, and so holds the TIME-WAIT [default: server for HTTP, client for --echo
    /// and its like].
    #[arg(long, value_enum, value_name = "WHO")]
    close: Option<Closer>,
    #[command(flatten)]
    capture: CaptureOption,
    #[command(flatten)]
    shards: ShardOptions,
    #[command(flatten)]
    role: RoleOptions,
    #[command(flatten)]
    pace: PaceOptions,
    /// Seed of the stack's keys, for tests: who knows it can guess them [default: random].
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    #[command(flatten)]
    routes: RouteOptions,
}

impl Arguments {
    /// The options that are short for `-S`.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        let cookies = self.syncookies.as_deref().map(Shorthand::syn_cookies);
        cookies.into_iter().chain(self.congestion.as_deref().map(Shorthand::congestion)).collect()
    }
}

/// What to serve instead of the web: at most one of them.
#[derive(Args, Debug)]
#[group(multiple = false, conflicts_with_all = ["body", "file_root"])]
pub(crate) struct RoleOptions {
    /// Send back what comes (RFC 862), by default on port 7.
    #[arg(long)]
    echo: bool,
    /// Read and throw away (RFC 863), by default on port 9.
    #[arg(long)]
    discard: bool,
    /// Send characters without end (RFC 864), by default on port 19.
    #[arg(long)]
    chargen: bool,
    /// Read to the end, then answer how many bytes came, by default on port 5201.
    #[arg(long)]
    sink: bool,
    /// Answer each request of REQ bytes with RESP bytes, by default on port 12865.
    #[arg(long, value_name = "REQ,RESP", value_parser = size::pair)]
    respond: Option<(u64, u64)>,
}

/// Who closes first.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closer {
    /// This side.
    Server,
    /// The peer.
    Client,
    /// The peer, and this side answers with a reset (not for HTTP).
    Rst,
}

/// Serves until it is interrupted.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reporter = reporter(&arguments.output)?;
    start(ServePlan::new(arguments)?, reporter)
}

/// Serves for another command until it is interrupted.
pub(crate) fn other(server: OtherServer<'_>) -> Result<(), Failure> {
    let reporter = reporter(server.output)?;
    let plan = ServePlan::other(server)?;
    if matches!(plan.content, ContentPlan::Iperf3(_)) && plan.setup.shards > 1 {
        let text = "a test of iperf3's is one shard's work: leave it out, and queues= of the wire";
        return Err(Failure::usage("--shards", text));
    }
    start(plan, reporter)
}

/// Whom it tells what it does.
fn reporter(options: &OutputOptions) -> Result<report::Reporter, Failure> {
    report::Reporter::new(options, &["whimbrel"], &json::FIGURES)
}

/// Whom a server tells of itself, and who ends it.
struct ServeControl<'s> {
    report: ServeReporter,
    stop: &'s Stop,
    clock: Clock,
    /// Asks how it is.
    question: &'s Question,
}

/// What is left of a server.
struct Served {
    /// What tells it, on the first shard.
    report: Option<ServeReporter>,
    /// What it did, as a line of people's tells it.
    totals: Totals,
    /// What became of a capture that was replayed to it.
    replayed: Option<String>,
}

fn start(mut plan: ServePlan, mut reporter: report::Reporter) -> Result<(), Failure> {
    // Each shard opens its own: whether that can be done is known before the wire is taken.
    drop(Server::<Shard>::open(&plan)?);
    reporter.open()?;
    if access_log::is_standard_output(&plan.access_log) {
        reporter.leave_standard_output();
    }
    plan.log = plan.access_log.as_deref().map(AccessLog::open).transpose()?;
    let report = ServeReporter::new(reporter);
    let question = Question::install().map_err(Failure::run)?;
    let ran = drive::measure(|stop| serve_wire(&plan, report, stop, &question))?;
    ServeReporter::conclude(&plan, ran)
}

fn serve_wire(
    plan: &ServePlan,
    report: ServeReporter,
    stop: &Stop,
    question: &Question,
) -> Result<Ran<Served>, Failure> {
    let reporter = ServeControl { report, stop, clock: Clock::start(), question };
    match plan.setup.wire.is_kernel() {
        true => kernel::serve(plan, reporter),
        false => serve(plan, reporter),
    }
}

/// Serves at each queue of the wire until it is stopped, then lets everything go.
fn serve(plan: &ServePlan, reporter: ServeControl<'_>) -> Result<Ran<Served>, Failure> {
    let ServeControl { mut report, stop, clock, question } = reporter;
    let stack = plan.setup.open(clock, stop, plan.group)?;
    let shard_totals = Arc::new(ShardTotals::new(stack.len()));
    let answers = ShardAnswers::new(stack.len(), plan.log.clone());
    let awake: Vec<_> = stack.iter().map(|shard| shard.waker.clone()).collect();
    let offloads = stack.first().map(|first| first.device.capabilities());
    let headline = headline(&stack);
    let place = |number| Place::new(number, Arc::clone(&shard_totals), Arc::clone(&answers));
    let mut shards = Vec::new();
    for mut shard in stack {
        let listeners = listen(plan, &mut shard.shard)?;
        shards.push(ServedShard { place: place(shard.number), shard, listeners });
    }
    report.begin(plan, &headline);
    if let Some(first) = shards.first_mut() {
        first.place.report = Some(report);
    }
    let threads = plan.setup.threads(stop);
    let ended = threads.run(
        shards,
        |shard| shard.serve(plan, stop),
        || answers.stay(question, stop, &awake, clock),
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
    let ran = Ran::over_the_kernel(served, plan.target());
    Ok(Ran { server, steering, seed: plan.setup.seed, offloads, ..ran })
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

/// What is left of it.
struct Ended {
    /// What is to print the summary, if it has it.
    report: Option<ServeReporter>,
    shard: Shard,
    /// Its queue stays until all have ended: without it the kernel would deal its flows to the others.
    device: Steered,
}

impl ServedShard {
    /// Serves on this thread until it is stopped, then lets everything go.
    fn serve(self, plan: &ServePlan, stop: &Stop) -> Result<Ended, Failure> {
        let Self { shard, listeners, place } = self;
        let (clock, port) =
            (shard.clock, ServePort::new(Server::open(plan)?, listeners.clone(), place));
        let mut worker = shard.worker(port);
        worker.run(stop)?;

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

fn listen(plan: &ServePlan, shard: &mut Shard) -> Result<Vec<ListenerId>, Failure> {
    let listen = |at: &_| {
        let listener = shard.listen(*at, plan.backlog).map_err(Failure::run)?;
        shard.set_fast_open(listener, plan.fast_open);
        Ok(listener)
    };
    plan.listen.iter().map(listen).collect()
}

const JSON_HELP: &str = "Print one JSON document (whimbrel.serve/1) at the end instead of text";
const FAIL_IF_HELP: &str =
    "Exit with code 3 if this is true of the result, as in 'failed>1% || overflows>0'";
const LISTEN_HELP: &str =
    "Listen there; may repeat [default: the port of what is served, on every address of the stack]";
