//! `whimbrel bulk`: how much goes through, as ttcp and iperf3 measure it.

use std::time::Duration;

use clap::{Args, ValueEnum};
use whimbrel_apps::Pace;
use whimbrel_apps::iperf3 as protocol;
use whimbrel_apps::iperf3_server::Settings;

use crate::congestion;
use crate::drive::{self, FinishedRun};
use crate::failure::Failure;
use crate::options::{OutputOptions, ScreenOptions, StackKind, StackOptions};
use crate::page_file::PageOption;
use crate::report::{Form, Reporter};
use crate::rules::Shorthand;
use crate::serving::{self, ContentPlan, OtherServer};
use crate::wrap::wrap;
use crate::{output, proc, quantity, size};

mod advice;
mod iperf3;
mod job;
mod json;
mod outcome;
mod path;
mod plan;
mod table;
mod target;

use outcome::{FIGURES, Outcome, StreamOutcome};
use path::PathFigures;
use plan::{BulkPlan, congestion};

/// The command line of `whimbrel bulk`, as it was typed.
#[derive(Args, Debug)]
#[command(mut_arg("json", |option| option.help(JSON_HELP)))]
#[command(mut_arg("fail_if", |option| option.help(FAIL_IF_HELP)))]
pub(crate) struct Arguments {
    /// Direction of the transfer.
    #[arg(value_enum, value_name = "send|recv", required_unless_present = "server")]
    way: Option<BulkDirection>,
    /// The other side, for example 10.9.0.1 or 10.9.0.1:5201: `iperf3 -s`, `whimbrel bulk --server`, or
    /// the kind given by --peer [default: a server in this process].
    #[arg(value_name = "HOST[:PORT]")]
    target: Option<String>,
    /// Serve `iperf3 -c` and `whimbrel bulk` until interrupted, one test at a time, all on one shard
    /// [default wire: that of `serve`].
    #[arg(short, long, conflicts_with_all = CLIENTS_OPTIONS)]
    server: bool,
    /// Address to listen at, with --server [default: port 5201 of every address of the wire].
    #[arg(long, value_name = "ADDR:PORT", requires = "server")]
    listen: Option<String>,
    /// Protocol of the other side [default: iperf3, or plain if it is in this process].
    #[arg(long, value_enum, value_name = "WHAT")]
    peer: Option<PeerKind>,
    /// Resolve a name to IPv4 addresses only.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Resolve a name to IPv6 addresses only.
    #[arg(short = '6', long)]
    ipv6: bool,
    #[command(flatten)]
    pub(crate) setup: StackOptions,
    /// End after this time [default: 10s].
    #[arg(short = 't', short_alias = 'z', long, value_name = "TIME", value_parser = quantity::some_time)]
    time: Option<Duration>,
    /// End when all streams together have transferred this many bytes, in equal shares.
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = size::some, conflicts_with_all = ["time", "omit"])]
    bytes: Option<u64>,
    /// Streams at the same time (with --bidir and iperf3 this many each way).
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u32>(1..=128))]
    parallel: u32,
    /// Reverse the direction: send receives, and recv sends.
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Transfer in both directions at once: with iperf3 on separate streams, else on each stream.
    #[arg(long)]
    bidir: bool,
    /// Minimum bytes of each send buffer, and of each receive buffer and its window; one number sets
    /// both. Short for -S buffers.send=… -S buffers.recv=…; with ",exact" also for -S
    /// buffers.send.max=… -S buffers.recv.max=…, so that none grows beyond it. With kernel:, the
    /// buffers of its sockets. An iperf3 server is asked for the same sizes (its -w).
    #[arg(long, value_name = "SNDBUF/RCVBUF[,exact]", value_parser = window, conflicts_with = "wscale")]
    window: Option<Window>,
    /// Bytes of each write and read.
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "128k", value_parser = size::parse)]
    length: u64,
    /// The maximum segment size, bytes.
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = quantity::whole::<u16>(88..=32_767))]
    mss: Option<u16>,
    #[arg(short = 'C', long, value_name = "NAME", help = congestion::help_with_kernel())]
    congestion: Option<String>,
    /// Send small segments at once (disable Nagle's algorithm).
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// Window scaling: as the buffer needs it, off, or this scale (0 to 14) with the largest receive
    /// buffer that it can advertise.
    #[arg(long, value_name = "auto|off|N", default_value = "auto", value_parser = wscale)]
    wscale: WindowScaling,
    /// The most bits per second that each stream sends, for example 45M.
    #[arg(short = 'b', long, value_name = "RATE", value_parser = quantity::rate)]
    bitrate: Option<f64>,
    /// The most bits per second that the TCP of each stream sends, what it sends again included, for
    /// example 45M, at least 32k: segments leave spread over time (SO_MAX_PACING_RATE). A server of iperf3's
    /// protocol is asked for the same rate, which iperf3 3.12 itself does not keep. With -b the application
    /// writes so much; with --fq-rate it writes what the send buffer takes.
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    fq_rate: Option<f64>,
    /// Exclude this time at the start from the totals.
    #[arg(short = 'O', long, value_name = "TIME", value_parser = quantity::duration)]
    omit: Option<Duration>,
    /// Length of the intervals.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = quantity::some_time)]
    interval: Duration,
    /// Time limit for a stream to open and to end; with --server, for each of a client's steps before
    /// and after its test.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::some_time)]
    timeout: Duration,
    /// Request the output of an iperf3 server, and print it.
    #[arg(long)]
    get_server_output: bool,
    #[command(flatten)]
    page: PageOption,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    screen: ScreenOptions,
}

/// Sizes of buffers, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Window {
    send: u64,
    recv: u64,
    /// True if the sizes are maxima, too.
    exact: bool,
}

/// Window scaling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WindowScaling {
    /// As the largest receive buffer needs it.
    Auto,
    /// Windows are not scaled: 65,535 bytes are the most.
    Off,
    /// The shift count that is announced, 0 to 14 (RFC 7323 2.3).
    By(u8),
}

/// Which way bytes go.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum BulkDirection {
    /// To the other side.
    Send,
    /// From the other side.
    Recv,
}

/// Protocol of the other side.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum PeerKind {
    /// iperf3's protocol, as `iperf3 -s` and `whimbrel bulk --server` do.
    Iperf3,
    /// No protocol: it only reads or sends, as `whimbrel serve --sink` and `--chargen` do.
    Plain,
}

/// Transfers, and prints the result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.server {
        return be_server(arguments);
    }
    let mut report = Reporter::new(&arguments.output, &["whimbrel", "iperf3"], &FIGURES)?;
    let plan = BulkPlan::new(arguments)?;
    path::check(&plan, report.names())?;
    let page = arguments.page.open()?;
    report.open()?;
    plan.setup.announce(&arguments.output);
    let mut job = job::BulkJob::new(&plan, &mut report, arguments.screen);
    let mut ran = drive::run(&mut job, &plan.setup, plan.target)?;
    if plan.target.is_some() {
        ran.target = ran.outcome.target;
    }

    let typed = arguments.target.as_deref();
    if !ran.outcome.moved_anything() {
        ran.outcome.judge(ran.target, typed)?;
    }
    let path = PathFigures::of(&plan, &ran);
    let figures = |name: &str| ran.outcome.figure(name).or_else(|| path.figure(name));
    if let Some(page) = page {
        page.write(&json::document(&plan, &ran, &path))?;
    }
    let text = match report.form() {
        Form::Document("iperf3") => iperf3::document(&plan, &ran),
        Form::Document(_) | Form::Stream => {
            report.document(json::document(&plan, &ran, &path), &figures)
        }
        Form::Csv => json::csv(&ran.outcome),
        Form::Text => {
            let advice = wrap(&advice::text(&plan, &ran.outcome), 2);
            let mut text = table::text(&plan, &ran) + &path.text() + &advice;
            if let Some(theirs) =
                ran.outcome.theirs.as_ref().and_then(|it| it.server_output.as_ref())
            {
                text += "\nServer output:\n";
                // The margin marks them as another program's lines.
                text.extend(theirs.lines().map(|line| format!("  {line}\n")));
            }
            text + &output::counters(&ran, report.detail())
        }
    };
    report.finish(&text)?;
    ran.outcome.judge(ran.target, typed)?;
    report.judge(&figures)?;
    plan.setup.judge_outcomes()
}

/// Is the other side until it is interrupted.
fn be_server(arguments: &Arguments) -> Result<(), Failure> {
    let kernel = arguments.setup.typed_wire()? == Some("kernel:");
    serving::other(OtherServer {
        setup: &arguments.setup,
        shorthands: arguments.shorthands(),
        content: ContentPlan::Iperf3(Settings {
            timeout: arguments.timeout,
            idle: IDLE,
            congestion: match kernel {
                true => proc::congestion_control(),
                false => congestion(&arguments.setup.rules.rules(&arguments.shorthands())?),
            },
            effort: drive::effort,
            documents: arguments.output.json.is_some() || arguments.output.json_stream,
        }),
        port: protocol::PORT,
        pace: Pace::default(),
        listen: arguments.listen.as_deref(),
        output: &arguments.output,
    })
}

impl Arguments {
    /// True if it uses the kernel's sockets.
    pub(super) fn is_over_the_kernel(&self) -> bool {
        match (self.setup.wire.as_deref(), self.setup.stack) {
            (Some(wire), _) => wire == "kernel:",
            (None, Some(whose)) => whose == StackKind::Kernel,
            (None, None) => self.target.is_some(),
        }
    }

    /// The tunables set by its own options.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        // The kernel's buffers are set on each socket.
        let window = self.window.filter(|_| !self.is_over_the_kernel());
        let window = window.map(|Window { send, recv, exact }| {
            let floors = [("buffers.send", send), ("buffers.recv", recv)];
            let most = [("buffers.send.max", send), ("buffers.recv.max", recv)];
            let buffers = floors.into_iter().chain(most.into_iter().filter(|_| exact));
            buffers.map(|(name, bytes)| ("--window", name, bytes.to_string())).collect()
        });
        let wscale = match self.wscale {
            WindowScaling::Auto => Vec::new(),
            WindowScaling::Off => {
                vec![("--wscale", "net.ipv4.tcp_window_scaling", "off".into())]
            }
            WindowScaling::By(scale) => {
                let most = u64::from(u16::MAX) << scale;
                let buffers = [("buffers.recv", most), ("buffers.recv.max", most)];
                buffers.map(|(name, bytes)| ("--wscale", name, bytes.to_string())).to_vec()
            }
        };
        let congestion = self.congestion.as_deref().filter(|_| !self.is_over_the_kernel());
        let all: Vec<_> = window.unwrap_or_default();
        let all = all.into_iter().chain(wscale);
        let all = all.map(|(option, name, value)| Shorthand { option, name, value });
        all.chain(congestion.map(Shorthand::congestion)).collect()
    }
}

/// `auto`, `off`, or a scale.
fn wscale(text: &str) -> Result<WindowScaling, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(WindowScaling::Auto),
        ("off", _) => Ok(WindowScaling::Off),
        (_, Ok(scale @ 0..=14)) => Ok(WindowScaling::By(scale)),
        _ => Err("give auto, off, or a scale of 0 to 14".into()),
    }
}

/// Both buffers in bytes, given as `SIZE` or as `SNDBUF/RCVBUF`; behind that `,exact` if neither may grow.
fn window(text: &str) -> Result<Window, String> {
    let (sizes, exact) = match text.split_once(',') {
        None => (text, false),
        Some((sizes, "exact")) => (sizes, true),
        Some((_, other)) => {
            return Err(format!("{other:?} after the sizes is unknown: use \",exact\" or nothing"));
        }
    };
    let (send, recv) = sizes.split_once('/').unwrap_or((sizes, sizes));
    Ok(Window { send: size::parse(send)?, recv: size::parse(recv)?, exact })
}

/// Time without transfer after which a server ends a test: iperf3's --rcv-timeout.
const IDLE: Duration = Duration::from_secs(120);
/// Options without effect on a server.
const CLIENTS_OPTIONS: [&str; 24] = [
    "html",
    "server_profile",
    "server_set",
    "way",
    "target",
    "peer",
    "ipv4",
    "ipv6",
    "time",
    "bytes",
    "parallel",
    "reverse",
    "bidir",
    "length",
    "mss",
    "congestion",
    "no_delay",
    "bitrate",
    "fq_rate",
    "omit",
    "interval",
    "get_server_output",
    "clock",
    "no_tui",
];
const JSON_HELP: &str = "Print one JSON document (whimbrel.bulk/1) instead of text; =iperf3: as \
                         iperf3 prints it. With \
     --server: one for each test, as iperf3 -s prints it, and one of the server at the end \
     (whimbrel.serve/1)";
const FAIL_IF_HELP: &str = "Exit with code 3 if this is true of the result, for example \
                            'bitrate<900M || again>1%': \
     bitrate, sent, received, retransmits, again (segments sent again, a number or % of all), and \
     over mem: with a \
     rate wait.mean and wait.p99, the time in its queue, for example wait.p99>20ms";
