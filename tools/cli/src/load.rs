//! `whimbrel load`: an HTTP/1.1 load, and its measurements.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::drive::{self, FinishedRun};
use crate::failure::Failure;
use crate::options::{Closer, OutputOptions, PaceOptions, ScreenOptions, StackOptions, Switch};
use crate::page_file::PageOption;
use crate::report::{Form, Reporter};
use crate::rules::Shorthand;
use crate::runs::{
    LoadControl, LoadReporter, LoadRunPlan, Outcome, RunsJob, Screen, figure, figure_names, json,
    oha, text,
};
use crate::{capture, congestion, output, quantity, size};

mod plan;

/// The command line of `whimbrel load`, as it was typed.
#[derive(Args, Debug)]
#[command(mut_arg("json", |option| option.help(JSON_HELP)))]
pub(crate) struct Arguments {
    /// URL to load, for example http://10.9.0.1:8080/path [default: a server in this process].
    #[arg(value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    pub(crate) setup: StackOptions,
    /// Local ports to connect from, for example 49152-65535; short for -S
    /// net.ipv4.ip_local_port_range=….
    #[arg(long, value_name = "FIRST-LAST", value_parser = quantity::ports)]
    local_ports: Option<String>,
    /// Local addresses to connect from, in turn: on a device, those of its addr=; over mem:, any of
    /// 10.0.0.0/24.
    #[arg(long, value_name = "A[,B…]", value_delimiter = ',', value_parser = quantity::address)]
    local_addr: Vec<IpAddr>,
    #[arg(short = 'C', long, value_name = "NAME", help = congestion::help())]
    congestion: Option<String>,
    /// Connections open at the same time.
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = quantity::whole::<u32>(1..=1_000_000))]
    connections: u32,
    /// Threads that share the connections, only with -w kernel:; for this stack use --shards.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u32>(1..=1024))]
    threads: u32,
    /// End after this many requests.
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["duration", "warmup"], value_parser = quantity::whole::<u64>(1..=u64::MAX))]
    requests: Option<u64>,
    /// End after this time [default: 10s].
    #[arg(short = 'z', long, value_name = "TIME", value_parser = quantity::some_time)]
    duration: Option<Duration>,
    /// Requests per second, sent at even intervals without waiting for responses. Latency is then
    /// measured from the time when each was due (corrected for coordinated omission).
    #[arg(short = 'q', long, value_name = "RATE", value_parser = quantity::rate)]
    rate: Option<f64>,
    /// With --rate: measure latency from the time when a request was due, not when it was sent.
    #[arg(long, value_enum, value_name = "SWITCH", default_value_t = Switch::On, requires = "rate")]
    latency_correction: Switch,
    /// Open a new connection for each request.
    #[arg(short = 'K', long)]
    no_keepalive: bool,
    /// Send the first request of a connection in its SYN (TCP Fast Open, RFC 7413), once the server has
    /// granted a cookie. The server may execute a request twice.
    #[arg(long)]
    fastopen: bool,
    /// The side that closes a connection first if it is not kept alive, and so holds its TIME-WAIT.
    #[arg(long, value_enum, value_name = "WHO", default_value_t = Closer::Server, requires = "no_keepalive")]
    close: Closer,
    /// The request's method.
    #[arg(short, long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// A header field, for example 'Accept: text/html'; may repeat.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// The request's body.
    #[arg(short = 'd', long, value_name = "TEXT", conflicts_with = "data_file")]
    data: Option<String>,
    /// The request's body, from a file.
    #[arg(short = 'D', long, value_name = "FILE")]
    data_file: Option<PathBuf>,
    /// Time limit of a request.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::some_time)]
    timeout: Duration,
    /// Time limit of opening a connection.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::some_time)]
    connect_timeout: Duration,
    /// Load for this time before measuring.
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time)]
    warmup: Option<Duration>,
    /// Run this many times on the same stack; a run's TIME-WAIT connections remain for the next run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u32>(1..=1000))]
    repeat: u32,
    /// The pause between two runs.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::duration, requires = "repeat")]
    gap: Duration,
    /// Length of the intervals whose rates are printed.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = quantity::some_time)]
    interval: Duration,
    /// Bytes in each response of the server in this process.
    #[arg(long, value_name = "SIZE", default_value = "128", value_parser = size::parse, conflicts_with = "url")]
    body: u64,
    /// The server in this process ends each connection after this many requests, by Connection: close
    /// in the last response.
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX), conflicts_with_all = ["url", "no_keepalive"])]
    requests_per_connection: Option<u64>,
    /// Pace of the server in this process.
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

/// Loads, and prints the result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Reporter::new(&arguments.output, &["whimbrel", "oha"], &figure_names())?;
    let plan = plan::new(arguments)?;
    let page = arguments.page.open()?;
    report.open()?;
    plan.setup.announce(&arguments.output);
    let control = Arc::new(LoadControl::new(plan.load.connections, plan.parts()));
    let screen = Screen::of(&plan, arguments.screen, &report, &control);
    if screen.is_some() {
        plan.setup.outcomes().for_each(capture::CaptureOutcome::hold_back);
    }
    let control = screen.is_some().then_some(control);
    // A screen replaces the progress line.
    let line = ScreenOptions { no_tui: arguments.screen.no_tui || screen.is_some() };
    let reporter = LoadReporter::new(&mut report, line, &plan.load).on(screen);
    let mut ran = carry_out(&plan, reporter, control)?;
    ran.target = ran.outcome.target.filter(|_| plan.target.is_some()).unwrap_or(ran.target);

    report.expect(judge_success(&plan, &ran))?;
    // What shall not be so of the last run shall not be so of any.
    let is_bad = |run: &&Outcome| report.met(&|name| figure(run, name)).is_some();
    let judged = ran.outcome.earlier.iter().find(is_bad).unwrap_or(&ran.outcome);
    let figures = |name: &str| figure(judged, name);
    if let Some(page) = page {
        page.write(&json::document(&plan, &ran))?;
    }
    let text = match report.form() {
        Form::Document("oha") => oha::document(&ran.outcome),
        Form::Document(_) | Form::Stream => report.document(json::document(&plan, &ran), &figures),
        Form::Csv => json::csv(&ran.outcome),
        Form::Text => text(&plan, &ran) + &output::counters(&ran, report.detail()),
    };
    report.finish(&text)?;
    report.judge(&figures)?;
    plan.setup.judge_outcomes()
}

/// Runs the load. A watcher sees its progress and may control it.
fn carry_out(
    plan: &LoadRunPlan,
    reporter: LoadReporter<'_>,
    control: Option<Arc<LoadControl>>,
) -> Result<FinishedRun<Outcome>, Failure> {
    let mut job = RunsJob {
        load: &plan.load,
        repeat: plan.repeat,
        unit: "req/s",
        opposite: plan,
        reporter,
        agreement: Arc::default(),
        control,
    };
    drive::run(&mut job, &plan.setup, plan.target)
}

/// A load of which nothing was answered measured nothing.
fn judge_success(plan: &LoadRunPlan, ran: &FinishedRun<Outcome>) -> Result<(), Failure> {
    ran.outcome
        .judge(&plan.url.as_ref().map_or_else(|| ran.target.to_string(), |url| url.to_string()))
}

const JSON_HELP: &str =
    "Print one JSON document (whimbrel.load/1) instead of text; =oha: as oha prints it";

#[cfg(test)]
mod tests;
