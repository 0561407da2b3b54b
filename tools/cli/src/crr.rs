//! `whimbrel crr`: netperf's TCP_CRR (connect, request, response, close), TCP_RR and TCP_CC.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use whimbrel_apps::load::{
    self, Confidence, Ending, Exchange, Level, Repeat, ResponseEnd, StopCondition,
};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::{Destination, Pace, Transport};
use whimbrel_wire::Endpoint;

use crate::congestion;
use crate::drive::{self, FinishedRun};
use crate::failure::Failure;
use crate::options::{
    Closer, OutputOptions, PaceOptions, ScreenOptions, StackOptions, StackSetup, answering_option,
};
use crate::page_file::PageOption;
use crate::report::{Form, Reporter};
use crate::rules::Shorthand;
use crate::runs::{
    LoadReporter, LocalServer, Outcome, RunsJob, errors, figure, figure_names, json, phases, work,
};
use crate::serving::{self, ContentPlan, NETSERVER, OtherServer};
use crate::target::{self, Typed};
use crate::{output, quantity, size};

mod table;

/// The command line of `whimbrel crr`, as it was typed.
#[derive(Args, Debug)]
#[command(mut_arg("json", |option| option.help(JSON_HELP)))]
pub(crate) struct Arguments {
    /// Server to measure, for example 10.9.0.1:12865: `whimbrel crr --server`, or any `serve --echo`
    /// [default: a server in this process]. With --server: where to listen [default: port 12865 of
    /// every address of the wire].
    #[arg(value_name = "HOST:PORT")]
    target: Option<String>,
    /// Run as the server until interrupted [default wire: that of `serve`].
    #[arg(long, conflicts_with_all = CLIENTS_OPTIONS)]
    server: bool,
    #[command(flatten)]
    pub(crate) setup: StackOptions,
    /// Steps of a transaction.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Crr)]
    mode: Mode,
    /// End after this time [default: 10s].
    #[arg(short = 'l', short_alias = 'z', long, value_name = "TIME", value_parser = quantity::some_time)]
    duration: Option<Duration>,
    /// End after this many transactions.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = quantity::whole::<u64>(1..=u64::MAX))]
    transactions: Option<u64>,
    /// Bytes of the request and of the response, for example 1,1 or 64,16k [default: 1,1].
    #[arg(short = 'r', long, value_name = "REQ,RESP", value_parser = size::pair)]
    sizes: Option<(u64, u64)>,
    /// Minimum and maximum number of runs (3 to 30, in either order); runs stop once the mean rate is
    /// as certain as --confidence requires.
    #[arg(short = 'i', long, value_name = "MIN,MAX", value_parser = iterations)]
    iterations: Option<(u32, u32)>,
    /// Required certainty of the mean rate: a confidence of 95 or 99 % and the width of its interval in
    /// percent [default: 99,5 with --iterations; --iterations is 3,10 with it].
    #[arg(short = 'I', long, value_name = "LEVEL,WIDTH", value_parser = confidence)]
    confidence: Option<Confidence>,
    /// Local ports to connect from, for example 49152-65535; short for -S
    /// net.ipv4.ip_local_port_range=….
    #[arg(long, value_name = "FIRST-LAST", value_parser = quantity::ports)]
    local_ports: Option<String>,
    #[arg(short = 'C', long, value_name = "NAME", help = congestion::help())]
    congestion: Option<String>,
    /// Connections open at the same time.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u32>(1..=1_000_000))]
    connections: u32,
    /// The side that closes a connection first, and so holds its TIME-WAIT [default: for crr the
    /// server, or with a HOST:PORT the client, because that server may wait for it; for cc the client].
    #[arg(long, value_enum, value_name = "WHO")]
    close: Option<Closer>,
    /// Transactions per second, sent at even intervals; latency is then corrected for coordinated
    /// omission.
    #[arg(short = 'q', long, value_name = "RATE", value_parser = quantity::rate)]
    rate: Option<f64>,
    /// Time limit of a transaction and of opening a connection.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::some_time)]
    timeout: Duration,
    /// Length of the intervals whose rates are printed.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::some_time)]
    interval: Duration,
    /// Pace of the server.
    #[command(flatten)]
    pace: PaceOptions,
    #[command(flatten)]
    page: PageOption,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    screen: ScreenOptions,
}

impl Arguments {
    /// The tunables set by its own options.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        Shorthand::of_client(self.local_ports.as_deref(), self.congestion.as_deref())
    }
}

/// Steps of a transaction.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Connect, request, response, close.
    Crr,
    /// Request and response, on persistent connections.
    Rr,
    /// Connect and close.
    Cc,
}

/// A measurement: its transactions, its wire, and its output.
struct CrrPlan {
    setup: StackSetup,
    target: Option<Endpoint>,
    mode: Mode,
    sizes: (u64, u64),
    load: load::LoadPlan,
    repeat: Repeat,
    pace: Pace,
}

/// Measures, and prints the result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.server {
        return serve(arguments);
    }
    let mut report = Reporter::new(&arguments.output, &["whimbrel"], &figure_names())?;
    let plan = CrrPlan::new(arguments)?;
    let page = arguments.page.open()?;
    report.open()?;
    plan.setup.announce(&arguments.output);
    let mut job = RunsJob {
        load: &plan.load,
        repeat: plan.repeat,
        unit: "trans/s",
        opposite: &plan,
        reporter: LoadReporter::new(&mut report, arguments.screen, &plan.load),
        agreement: Arc::default(),
        control: None,
    };
    let mut ran = drive::run(&mut job, &plan.setup, plan.target)?;
    ran.target = ran.outcome.target.filter(|_| plan.target.is_some()).unwrap_or(ran.target);

    let target = ran.target.to_string();
    report.expect(ran.outcome.judge(arguments.target.as_deref().unwrap_or(&target)))?;
    let figures = |name: &str| figure(&ran.outcome, name);
    if let Some(page) = page {
        page.write(&document(&plan, &ran))?;
    }
    let text = match report.form() {
        Form::Document(_) | Form::Stream => report.document(document(&plan, &ran), &figures),
        Form::Csv => json::csv(&ran.outcome),
        Form::Text => text(&plan, &ran) + &output::counters(&ran, report.detail()),
    };
    report.finish(&text)?;
    report.judge(&figures)?;
    plan.setup.judge_outcomes()
}

impl CrrPlan {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let work = work(arguments.connections, arguments.transactions);
        let setup =
            arguments.setup.setup(arguments.target.as_deref(), &arguments.shorthands(), work)?;
        let found = |text| find(text, setup.wire.is_kernel());
        let destinations = arguments.target.as_deref().map(found).transpose()?.unwrap_or_default();
        let target = destinations.first().map(|first| first.at);
        let sizes = exchange_sizes(arguments)?;
        let ending = ending(arguments.mode, arguments.close, target)?;
        let pace = pace(arguments, arguments.target.as_deref())?;
        let is_timed = arguments.transactions.is_none() && arguments.rate.is_none();
        if is_timed && pace == Pace::default() {
            setup.check_that_time_passes()?;
        }
        Ok(Self {
            load: load::LoadPlan { destinations, ..load_plan(arguments, sizes.0, sizes.1, ending) },
            repeat: repeat(arguments),
            pace,
            setup,
            target,
            mode: arguments.mode,
            sizes,
        })
    }
}

/// Bytes of a request and of its response.
fn exchange_sizes(arguments: &Arguments) -> Result<(u64, u64), Failure> {
    let sizes = match (arguments.mode, arguments.sizes) {
        (Mode::Cc, None) => return Ok((0, 0)),
        (Mode::Cc, Some(_)) => {
            let text = "--mode cc sends no request: leave it out, or use --mode crr or rr";
            return Err(Failure::usage("--sizes", text));
        }
        (Mode::Crr | Mode::Rr, sizes) => sizes.unwrap_or((1, 1)),
    };
    if sizes.0 == 0 || sizes.1 == 0 {
        let text = "a request and a response need at least one byte each, for example 1,1";
        return Err(Failure::usage("--sizes", text));
    }
    if sizes.0 > LONGEST_REQUEST {
        return Err(Failure::usage("--sizes", "a request has at most 1M bytes: use less"));
    }
    if sizes.1 > LONGEST_ANSWER {
        return Err(Failure::usage("--sizes", "a response has at most 16M bytes: use less"));
    }
    Ok(sizes)
}

/// At which pace the server goes that has no `target`.
fn pace(arguments: &Arguments, target: Option<&str>) -> Result<Pace, Failure> {
    let pace = arguments.pace.pace(target)?;
    match answering_option(pace).filter(|_| arguments.mode == Mode::Cc) {
        Some(option) => Err(Failure::usage(option, "--mode cc has no responses: leave it out")),
        None => Ok(pace),
    }
}

/// Serves as the other side for the other options, until interrupted.
fn serve(arguments: &Arguments) -> Result<(), Failure> {
    arguments.target.as_deref().map(end).transpose()?;
    let (request, answer) = exchange_sizes(arguments)?;
    let close_mode = match (arguments.mode, arguments.close) {
        (Mode::Crr, None) | (_, Some(Closer::Server)) => CloseMode::First,
        (Mode::Rr | Mode::Cc, None) | (_, Some(Closer::Client)) => CloseMode::Second,
        (_, Some(Closer::Rst)) => CloseMode::Reset,
    };
    serving::other(OtherServer {
        setup: &arguments.setup,
        shorthands: arguments.shorthands(),
        content: ContentPlan::Service(role(arguments.mode, request, answer), close_mode),
        port: NETSERVER,
        pace: pace(arguments, None)?,
        listen: arguments.target.as_deref(),
        output: &arguments.output,
    })
}

/// Role of the other side on each connection.
fn role(mode: Mode, request: u64, answer: u64) -> Role {
    let answer: Bytes = vec![b'a'; usize::try_from(answer).unwrap_or(0)].into();
    match mode {
        Mode::Cc => Role::Discard,
        Mode::Crr | Mode::Rr => Role::Respond { request, answer },
    }
}

fn repeat(arguments: &Arguments) -> Repeat {
    if arguments.iterations.is_none() && arguments.confidence.is_none() {
        return Repeat::times(1, Duration::ZERO);
    }
    let (least, most) = arguments.iterations.unwrap_or((LEAST_RUNS, 10));
    let sure = arguments.confidence.unwrap_or(Confidence { level: Level::P99, width: 0.05 });
    Repeat { least, until: Some(sure), most, gap: Duration::ZERO }
}

fn ending(mode: Mode, close: Option<Closer>, target: Option<Endpoint>) -> Result<Ending, Failure> {
    match (mode, close) {
        (Mode::Rr, None) => Ok(Ending::KeepAlive),
        (Mode::Rr, Some(_)) => {
            Err(Failure::usage("--close", "--mode rr keeps connections open: leave it out"))
        }
        (Mode::Cc, Some(Closer::Server)) => {
            let text = "crr --mode cc sends no request, so the server cannot close first: use \
                        --close \
                        client or rst";
            Err(Failure::usage("--close", text))
        }
        // If both sides waited for the other, no connection would close. A server that closes first
        // gets along with a client that closes, too.
        (Mode::Crr, None) if target.is_some() => Ok(Ending::Client),
        (Mode::Crr, None | Some(Closer::Server)) => Ok(Ending::Server),
        (Mode::Cc, None) | (_, Some(Closer::Client)) => Ok(Ending::Client),
        (_, Some(Closer::Rst)) => Ok(Ending::Reset),
    }
}

fn load_plan(arguments: &Arguments, request: u64, answer: u64, ending: Ending) -> load::LoadPlan {
    let exchange = Exchange {
        request: vec![b'q'; usize::try_from(request).unwrap_or(0)].into(),
        answer: ResponseEnd::Bytes(answer),
    };
    let lasts = arguments.duration.unwrap_or(DEFAULT_DURATION);
    let plan = load::LoadPlan::new(exchange, arguments.connections, lasts);
    load::LoadPlan {
        until: arguments.transactions.map_or(plan.until, StopCondition::Exchanges),
        rate: arguments.rate,
        ending,
        timeout: arguments.timeout,
        connect_timeout: arguments.timeout,
        interval: arguments.interval,
        ..plan
    }
}

/// The addresses of a host, with a port, in the order in which they are tried.
fn find(text: &str, over_kernel: bool) -> Result<Vec<Destination>, Failure> {
    let example = "give HOST:PORT, as in 10.9.0.1:7 or [fd09::1]:7";
    let refused = || Failure::usage("TARGET", format!("{text:?}: {example}"));
    let (host, port) =
        target::split(text).filter(|(host, _)| !host.is_empty()).ok_or_else(refused)?;
    let port = port.parse().map_err(|_| refused())?;
    if port == 0 {
        return Err(unheard(text));
    }
    target::look_up(host, port, over_kernel, Typed { option: "TARGET", example })
}

fn unheard(text: &str) -> Failure {
    Failure::usage("TARGET", format!("{text}: port 0 is not valid: use 1 to 65535"))
}

/// An address and a port.
pub(crate) fn end(text: &str) -> Result<Endpoint, Failure> {
    let at: SocketAddr = text.parse().map_err(|_| {
        let text = format!(
            "{text:?}: give ADDR:PORT, an address in numbers, as in 10.9.0.1:7 or [fd09::1]:7"
        );
        Failure::usage("TARGET", text)
    })?;
    match at.port() {
        0 => Err(unheard(text)),
        _ => Ok(at.into()),
    }
}

/// Minimum and maximum number of runs.
fn iterations(text: &str) -> Result<(u32, u32), String> {
    let count = |text: &str| text.trim().parse().ok();
    let pair = text.split_once(',').and_then(|(one, other)| Some((count(one)?, count(other)?)));
    pair.map(|(one, other): (u32, u32)| (one.min(other), one.max(other)))
        .filter(|(least, most)| *least >= LEAST_RUNS && *most <= load::MOST_RUNS)
        .ok_or_else(|| "give MIN,MAX of 3 to 30, as in 3,10".into())
}

/// A level and a width in percent.
fn confidence(text: &str) -> Result<Confidence, String> {
    let (level, width) = text.split_once(',').unwrap_or((text, "5"));
    let level = match level.trim() {
        "95" => Level::P95,
        "99" => Level::P99,
        other => {
            return Err(format!(
                "{other:?} is not a supported level: use 95 or 99, as in \
                                     99,5"
            ));
        }
    };
    let width = width.trim().trim_end_matches('%').parse().ok();
    let width = width.filter(|width| (0.1..=100.0).contains(width));
    let width: f64 = width.ok_or("give a width of 0.1 to 100 percent, as in 99,5")?;
    Ok(Confidence { level, width: width / 100.0 })
}

impl LocalServer for CrrPlan {
    type Server<T: Transport> = PeerServer<T>;

    fn server<T: Transport>(&self) -> PeerServer<T> {
        let close_mode = match self.load.ending {
            Ending::Server => CloseMode::First,
            _ => CloseMode::Second,
        };
        let pace = self.pace.shared_by(self.setup.shards.into());
        PeerServer::new(role(self.mode, self.sizes.0, self.sizes.1), close_mode).with_pace(pace)
    }
}

fn document(plan: &CrrPlan, ran: &FinishedRun<Outcome>) -> Value {
    let mut document = output::document("whimbrel.crr/1", &plan.setup, ran);
    let mut config = json::config(&plan.load);
    config.insert("mode".into(), plan.mode.name().into());
    config.insert("sizes".into(), json!([plan.sizes.0, plan.sizes.1]));
    config.insert("pace".into(), output::pace(plan.pace));
    document.insert("config".into(), config.into());
    document.extend(json::results(&ran.outcome));
    let runs = ran.outcome.earlier.iter().chain([&ran.outcome]);
    document.insert("runs".into(), runs.map(json::summary).collect());
    if let Some((sure, rates)) = judged(plan, &ran.outcome) {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        document.insert(
            "confidence".into(),
            json!({
                "level": sure.level.percent(),
                "width": sure.width,
                "mean_rate": mean,
                "half_width": sure.level.half_width(&rates),
                "holds": sure.holds(&rates),
            }),
        );
    }
    document.into()
}

/// Required certainty of the mean of the runs, and their rates.
fn judged(plan: &CrrPlan, outcome: &Outcome) -> Option<(Confidence, Vec<f64>)> {
    let runs = outcome.earlier.iter().chain([outcome]);
    plan.repeat.until.map(|sure| (sure, runs.map(|run| run.record.rate()).collect()))
}

fn text(plan: &CrrPlan, ran: &FinishedRun<Outcome>) -> String {
    let mut text = table::text(plan, ran);
    text.push('\n');
    for line in phases(&ran.outcome.record) {
        let _ = writeln!(text, "{line}");
    }
    text += &errors(&ran.outcome);
    text
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Crr => "crr",
            Self::Rr => "rr",
            Self::Cc => "cc",
        }
    }
}

/// The fewest runs whose mean is worth judging: netperf's bound.
const LEAST_RUNS: u32 = 3;
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// The longest request and response, bytes: each is kept in one piece.
const LONGEST_REQUEST: u64 = 1 << 20;
const LONGEST_ANSWER: u64 = 16 << 20;
/// Options without effect on a server.
const CLIENTS_OPTIONS: [&str; 14] = [
    "html",
    "server_profile",
    "server_set",
    "duration",
    "transactions",
    "iterations",
    "confidence",
    "local_ports",
    "connections",
    "rate",
    "timeout",
    "interval",
    "clock",
    "no_tui",
];
const JSON_HELP: &str = "Print one JSON document (whimbrel.crr/1) instead of text";
