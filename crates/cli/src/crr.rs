//! `whimbrel crr`: netperf's TCP_CRR (connect, request, response, close), TCP_RR and TCP_CC.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use whimbrel_apps::Transport;
use whimbrel_apps::load::{self, Answer, Ending, Exchange, Load, Until};
use whimbrel_apps::peer::{Parting, PeerServer, Role};
use whimbrel_tcp::Instant;
use whimbrel_wire::{Address, Endpoint};

use crate::drive::{self, Job, Ran};
use crate::failure::Failure;
use crate::load::{Closer, Outcome, done, errors, figure, figure_names, json, phases, steps};
use crate::load::{verdict, watch_line};
use crate::options::{Ground, GroundOptions, OutputOptions};
use crate::progress::Progress;
use crate::rules::Shorthand;
use crate::{output, quantity, size};

mod table;

/// What was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Whom to measure, as in 10.9.0.1:7; `whimbrel serve --echo` or `--respond` is one
    /// [default: a server in this process].
    #[arg(value_name = "ADDR:PORT")]
    target: Option<String>,
    #[command(flatten)]
    pub(crate) ground: GroundOptions,
    /// What a transaction is.
    #[arg(long, value_enum, default_value_t = Mode::Crr)]
    mode: Mode,
    /// End after that time [default: 10s].
    #[arg(short = 'l', short_alias = 'z', long, value_name = "TIME", value_parser = quantity::some_time)]
    duration: Option<Duration>,
    /// End after that many transactions.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    transactions: Option<u64>,
    /// Octets of the request and of the response, as in 1,1 or 64,16k.
    #[arg(short = 'r', long, value_name = "REQ,RESP", default_value = "1,1", value_parser = sizes)]
    sizes: (u64, u64),
    /// The ports that connections begin from, as in 49152-65535: short for
    /// -S net.ipv4.ip_local_port_range=….
    #[arg(long, value_name = "FIRST-LAST")]
    local_ports: Option<String>,
    /// How many connections there are at a time.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Who ends a connection, and so keeps its TIME-WAIT [default: server in crr, client in cc].
    #[arg(long, value_enum)]
    close: Option<Closer>,
    /// Transactions a second, falling due evenly; latency is then corrected for coordinated
    /// omission.
    #[arg(short = 'q', long, value_name = "RATE", value_parser = quantity::rate)]
    rate: Option<f64>,
    /// How long a transaction may take, and a connection to open.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::some_time)]
    timeout: Duration,
    #[command(flatten)]
    output: OutputOptions,
}

impl Arguments {
    /// What its own options set among the rules of the stack.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        self.local_ports.as_deref().map(Shorthand::local_ports).into_iter().collect()
    }
}

/// What a transaction is.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Connect, request, response, close.
    Crr,
    /// Request and response, on connections that stay.
    Rr,
    /// Connect and close.
    Cc,
}

/// What is meant.
struct Plan {
    ground: Ground,
    target: Option<Endpoint>,
    mode: Mode,
    sizes: (u64, u64),
    load: load::Plan,
}

/// Measures, and says what it measured.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.output.format(&["whimbrel"])?;
    let condition = arguments.output.condition(&figure_names())?;
    let plan = Plan::new(arguments)?;
    let mut job =
        CrrJob { plan: &plan, progress: Progress::new(steps(&plan.load), arguments.output.quiet) };
    let ran = drive::run(&mut job, &plan.ground, plan.target)?;
    job.progress.finish();

    let nothing = ran.outcome.judge(&ran.target.to_string());
    if format.is_none() {
        nothing.clone()?;
    }
    let text = match format {
        Some(_) => document(&plan, &ran),
        None => text(&plan, &ran),
    };
    if format.is_some() || arguments.output.output.is_some() || !arguments.output.quiet {
        output::write(&text, arguments.output.output.as_deref())?;
    }
    nothing?;
    let figure = |name: &str| figure(&ran.outcome, name);
    verdict(condition.as_ref(), arguments.output.fail_if.as_deref(), &figure)
}

impl Plan {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let target = arguments.target.as_deref().map(end).transpose()?;
        let ground =
            arguments.ground.ground(arguments.target.as_deref(), &arguments.shorthands())?;
        let sizes = match arguments.mode {
            Mode::Cc => (0, 0),
            Mode::Crr | Mode::Rr => arguments.sizes,
        };
        if arguments.mode != Mode::Cc && (sizes.0 == 0 || sizes.1 == 0) {
            let text = "a request and a response have at least one octet each, as in 1,1";
            return Err(Failure::usage("--sizes", text));
        }
        if sizes.0 > LONGEST_REQUEST {
            return Err(Failure::usage("--sizes", "a request has at most 1M octets: give less"));
        }
        let ending = ending(arguments.mode, arguments.close)?;
        Ok(Self {
            load: load_plan(arguments, sizes, ending),
            ground,
            target,
            mode: arguments.mode,
            sizes,
        })
    }
}

fn ending(mode: Mode, close: Option<Closer>) -> Result<Ending, Failure> {
    match (mode, close) {
        (Mode::Rr, None) => Ok(Ending::KeepAlive),
        (Mode::Rr, Some(_)) => {
            Err(Failure::usage("--close", "in rr connections stay: leave it out"))
        }
        (Mode::Cc, Some(Closer::Server)) => {
            let text = "in cc nobody asks the server for anything: give client or rst";
            Err(Failure::usage("--close", text))
        }
        (Mode::Crr, None | Some(Closer::Server)) => Ok(Ending::Server),
        (Mode::Cc, None) | (_, Some(Closer::Client)) => Ok(Ending::Client),
        (_, Some(Closer::Rst)) => Ok(Ending::Reset),
    }
}

fn load_plan(arguments: &Arguments, (request, answer): (u64, u64), ending: Ending) -> load::Plan {
    let until = match (arguments.transactions, arguments.duration) {
        (Some(count), _) => Until::Exchanges(count),
        (None, duration) => Until::Elapsed(duration.unwrap_or(DEFAULT_DURATION)),
    };
    load::Plan {
        // Whoever drives it says where the server is.
        target: Endpoint::new(Address::from_v4_octets([0; 4]), 0),
        exchange: Exchange {
            request: vec![b'q'; usize::try_from(request).unwrap_or(0)].into(),
            answer: Answer::Octets(answer),
        },
        connections: arguments.connections,
        until,
        rate: arguments.rate,
        ending,
        timeout: arguments.timeout,
        connect_timeout: arguments.timeout,
        warmup: Duration::ZERO,
        interval: Duration::from_secs(1),
    }
}

/// An address and a port.
pub(crate) fn end(text: &str) -> Result<Endpoint, Failure> {
    let at: SocketAddr = text.parse().map_err(|_| {
        let text = format!("{text:?}: give ADDR:PORT, as in 10.9.0.1:7 or [fd09::1]:7");
        Failure::usage("TARGET", text)
    })?;
    Ok(at.into())
}

/// Two sizes with a comma between them.
pub(crate) fn sizes(text: &str) -> Result<(u64, u64), String> {
    let (request, answer) = text.split_once(',').ok_or("give REQ,RESP, as in 1,1 or 64,16k")?;
    Ok((size::parse(request.trim())?, size::parse(answer.trim())?))
}

/// The transactions as a job of a driver.
struct CrrJob<'p> {
    plan: &'p Plan,
    progress: Progress,
}

impl Job for CrrJob<'_> {
    type Client<T: Transport> = Load<T>;
    type Server<T: Transport> = PeerServer<T>;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint) -> Load<T> {
        Load::new(load::Plan { target, ..self.plan.load.clone() })
    }

    fn server<T: Transport>(&self) -> PeerServer<T> {
        let (request, answer) = self.plan.sizes;
        let answer: Bytes = vec![b'a'; usize::try_from(answer).unwrap_or(0)].into();
        let role = match self.plan.mode {
            Mode::Cc => Role::Discard,
            Mode::Crr | Mode::Rr => Role::Respond { request, answer },
        };
        let parting = match self.plan.load.ending {
            Ending::Server => Parting::First,
            _ => Parting::Second,
        };
        PeerServer::new(role, parting)
    }

    fn watch<T: Transport>(&mut self, client: &Load<T>, now: Instant) {
        self.progress.show(done(client, now), || watch_line(client.record(), now, "trans/s"));
    }

    fn end<T: Transport>(&mut self, client: &mut Load<T>, net: &mut T, now: Instant) {
        client.end(net, now);
    }

    fn outcome<T: Transport>(&self, client: Load<T>) -> Outcome {
        Outcome { record: client.record().clone(), left: client.close(), earlier: Vec::new() }
    }
}

fn document(plan: &Plan, ran: &Ran<Outcome>) -> String {
    let mut document = output::document("whimbrel.crr/1", &plan.ground, ran);
    let mut config = json::config(&plan.load);
    config.insert("mode".into(), plan.mode.name().into());
    config.insert("sizes".into(), json!([plan.sizes.0, plan.sizes.1]));
    document.insert("config".into(), config.into());
    document.extend(json::results(&ran.outcome));
    format!("{:#}\n", Value::Object(document))
}

fn text(plan: &Plan, ran: &Ran<Outcome>) -> String {
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

const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// The longest request, octets: it is kept in one piece.
const LONGEST_REQUEST: u64 = 1 << 20;
