//! `whimbrel bulk`: how much goes through, as ttcp and iperf3 measure it.

use std::time::Duration;

use clap::{Args, ValueEnum};
use whimbrel_apps::bulk::{self, Bulk, Direction, Sample, Shares, Totals, Until};
use whimbrel_apps::condition::Figure;
use whimbrel_apps::peer::{Parting, PeerServer, Role};
use whimbrel_apps::{Model, Transport, Trouble};
use whimbrel_tcp::Instant;
use whimbrel_wire::Endpoint;

use crate::crr;
use crate::drive::{self, Job, Ran};
use crate::failure::Failure;
use crate::load::verdict;
use crate::options::{Ground, GroundOptions, OutputOptions};
use crate::progress::{self, Progress};
use crate::rules::Shorthand;
use crate::{output, quantity, size};

mod iperf3;
mod json;
mod table;

/// What was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Which way octets go: to the other side, or from it.
    #[arg(value_enum, value_name = "send|recv")]
    way: Way,
    /// The other side, as in 10.9.0.1:5201: `whimbrel serve --sink` to send to, `--chargen` to
    /// receive from [default: a server in this process].
    #[arg(value_name = "ADDR:PORT")]
    target: Option<String>,
    #[command(flatten)]
    pub(crate) ground: GroundOptions,
    /// End after that time [default: 10s].
    #[arg(short = 't', short_alias = 'z', long, value_name = "TIME", value_parser = quantity::some_time)]
    time: Option<Duration>,
    /// End when each stream has moved that many octets.
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = size::parse, conflicts_with_all = ["time", "omit"])]
    bytes: Option<u64>,
    /// Streams side by side.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    parallel: u32,
    /// The other way round: send receives, and recv sends.
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Both ways at once, on each stream.
    #[arg(long)]
    bidir: bool,
    /// Octets of each send buffer, and of each receive buffer and so of the window; one number is
    /// for both. Short for -S buffers.send=… -S buffers.recv=… -S buffers.recv.max=….
    #[arg(long, value_name = "SNDBUF/RCVBUF", value_parser = window)]
    window: Option<(u64, u64)>,
    /// Octets handed over at a time.
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "128k", value_parser = size::parse)]
    length: u64,
    /// The most bits a second that each stream sends, as in 45M.
    #[arg(short = 'b', long, value_name = "RATE", value_parser = quantity::rate)]
    bitrate: Option<f64>,
    /// Leave that time at the beginning out of the totals.
    #[arg(short = 'O', long, value_name = "TIME", value_parser = quantity::duration)]
    omit: Option<Duration>,
    /// The length of the intervals.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = quantity::some_time)]
    interval: Duration,
    /// How long a stream may take to open, and to end.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::some_time)]
    timeout: Duration,
    #[command(flatten)]
    output: OutputOptions,
}

/// Which way octets go.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// To the other side.
    Send,
    /// From the other side.
    Recv,
}

/// What is meant.
struct Plan {
    ground: Ground,
    target: Option<Endpoint>,
    bulk: bulk::Plan,
}

/// What is left of a transfer.
struct Outcome {
    streams: Vec<StreamOutcome>,
    elapsed: Duration,
    trouble: Option<Trouble>,
    retransmits: Option<u64>,
}

/// What is left of a stream.
struct StreamOutcome {
    local: Option<Endpoint>,
    samples: Vec<Sample>,
    counted: Totals,
    totals: Totals,
    shares: Shares,
    /// What the other side says came, octets.
    confirmed: Option<u64>,
}

/// Transfers, and says how much.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.output.format(&["whimbrel", "iperf3"])?;
    let condition = arguments.output.condition(&FIGURES)?;
    let plan = Plan::new(arguments)?;
    let steps = match plan.bulk.until {
        Until::Elapsed(time) => progress::steps(time + plan.bulk.omit),
        Until::Octets(count) => count * u64::from(plan.bulk.streams),
    };
    let progress = Progress::new(steps, arguments.output.quiet);
    let mut job = BulkJob { plan: &plan, progress, began: None, retransmits: None };
    let ran = drive::run(&mut job, &plan.ground, plan.target)?;
    job.progress.finish();

    if !ran.outcome.moved_anything() {
        ran.outcome.judge(ran.target)?;
    }
    let text = match format {
        Some("iperf3") => iperf3::document(&plan, &ran),
        Some(_) => json::document(&plan, &ran),
        None => table::text(&plan, &ran),
    };
    if format.is_some() || arguments.output.output.is_some() || !arguments.output.quiet {
        output::write(&text, arguments.output.output.as_deref())?;
    }
    ran.outcome.judge(ran.target)?;
    let figure = |name: &str| ran.outcome.figure(name);
    verdict(condition.as_ref(), arguments.output.fail_if.as_deref(), &figure)
}

impl Arguments {
    /// What its own options set among the rules of the stack.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        let Some((send, recv)) = self.window else { return Vec::new() };
        let set = |(name, octets): (_, u64)| Shorthand {
            option: "--window",
            name,
            value: octets.to_string(),
        };
        let buffers = [("buffers.send", send), ("buffers.recv", recv), ("buffers.recv.max", recv)];
        buffers.map(set).into()
    }
}

impl Plan {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let target = arguments.target.as_deref().map(crr::end).transpose()?;
        let ground =
            arguments.ground.ground(arguments.target.as_deref(), &arguments.shorthands())?;
        let sends = (arguments.way == Way::Send) != arguments.reverse;
        let direction = match (arguments.bidir, sends) {
            (true, _) => Direction::Both,
            (false, true) => Direction::Send,
            (false, false) => Direction::Receive,
        };
        if arguments.bitrate.is_some() && direction == Direction::Receive {
            let text = "the other side sends, as fast as it goes: limit it there, or give send";
            return Err(Failure::usage("--bitrate", text));
        }
        let block = usize::try_from(arguments.length).ok().filter(|l| (1..=MOST_BLOCK).contains(l));
        let block = block.ok_or_else(|| Failure::usage("--length", "give 1 to 16M octets"))?;
        Ok(Self {
            ground,
            target,
            bulk: bulk::Plan {
                // Whoever drives it says where the other side is.
                target: target
                    .unwrap_or(Endpoint::new(whimbrel_wire::Address::from_v4_octets([0; 4]), 0)),
                direction,
                streams: arguments.parallel,
                until: match (arguments.bytes, arguments.time) {
                    (Some(count), _) => Until::Octets(count),
                    (None, time) => Until::Elapsed(time.unwrap_or(DEFAULT_TIME)),
                },
                rate: arguments.bitrate.map(|rate| rate as u64),
                block,
                omit: arguments.omit.unwrap_or_default(),
                interval: arguments.interval,
                timeout: arguments.timeout,
            },
        })
    }
}

impl Outcome {
    fn moved_anything(&self) -> bool {
        self.streams.iter().any(|stream| stream.totals != Totals::default())
    }

    /// Fails if the transfer broke off, or more was sent than came.
    fn judge(&self, target: Endpoint) -> Result<(), Failure> {
        if let Some(trouble) = self.trouble {
            return Err(Failure::run(format!("{target}: {trouble}: {}", trouble.remedy())));
        }
        let lacking = self.streams.iter().find_map(|stream| {
            let confirmed = stream.confirmed?;
            (confirmed != stream.totals.sent).then_some((stream.totals.sent, confirmed))
        });
        match lacking {
            Some((sent, came)) => Err(Failure::run(format!(
                "{target}: {sent} octets were sent on a stream and the other side has {came}"
            ))),
            None => Ok(()),
        }
    }

    /// What was sent and received, without what was omitted.
    fn counted(&self) -> Totals {
        self.streams.iter().fold(Totals::default(), |sum, stream| Totals {
            sent: sum.sent + stream.counted.sent,
            received: sum.received + stream.counted.received,
        })
    }

    fn figure(&self, name: &str) -> Option<Figure> {
        let Totals { sent, received } = self.counted();
        let bits = |octets: u64| whimbrel_apps::record::per_second(octets * 8, self.elapsed);
        let value = match name {
            "bitrate" => bits(sent.max(received)),
            "sent" => sent as f64,
            "received" => received as f64,
            "retransmits" => self.retransmits? as f64,
            _ => return None,
        };
        Some(Figure { value, whole: 1.0 })
    }
}

/// The transfer as a job of a driver.
struct BulkJob<'p> {
    plan: &'p Plan,
    progress: Progress,
    began: Option<Instant>,
    retransmits: Option<u64>,
}

impl Job for BulkJob<'_> {
    type Client<T: Transport> = Bulk<T>;
    type Server<T: Transport> = PeerServer<T>;
    type Outcome = Outcome;

    fn client<T: Transport>(&self, target: Endpoint) -> Bulk<T> {
        Bulk::new(bulk::Plan { target, ..self.plan.bulk.clone() })
    }

    fn server<T: Transport>(&self) -> PeerServer<T> {
        let role = match self.plan.bulk.direction {
            Direction::Send => Role::Sink,
            Direction::Receive | Direction::Both => Role::Chargen,
        };
        PeerServer::new(role, Parting::Second)
    }

    fn watch<T: Transport>(&mut self, client: &Bulk<T>, now: Instant) {
        if !client.has_begun() {
            return;
        }
        let began = *self.began.get_or_insert(now);
        let moved = client.streams().iter().map(|stream| stream.totals());
        let octets: u64 = moved.map(|totals| totals.sent.max(totals.received)).sum();
        let done = match self.plan.bulk.until {
            Until::Elapsed(_) => progress::steps(now.since(began)),
            Until::Octets(_) => octets,
        };
        self.progress.show(done, || {
            let rate = whimbrel_apps::record::per_second(octets * 8, now.since(began));
            format!("{}  {}", size::display(octets), table::bitrate(rate))
        });
    }

    fn end<T: Transport>(&mut self, client: &mut Bulk<T>, net: &mut T, now: Instant) {
        if !client.is_done() {
            client.end(net, now);
        }
        let of_streams = || {
            let last = |stream: &bulk::Stream<T::Id>| stream.samples().last()?.gauge?.retransmits;
            client.streams().iter().map(last).sum()
        };
        self.retransmits = net.retransmits().or_else(of_streams);
    }

    fn outcome<T: Transport>(&self, client: Bulk<T>) -> Outcome {
        let stream = |stream: &bulk::Stream<T::Id>| StreamOutcome {
            local: stream.local(),
            samples: stream.samples().to_vec(),
            counted: stream.counted(),
            totals: stream.totals(),
            shares: *stream.shares(),
            confirmed: stream.confirmed(),
        };
        Outcome {
            streams: client.streams().iter().map(stream).collect(),
            elapsed: client.elapsed(),
            trouble: client.trouble(),
            retransmits: self.retransmits,
        }
    }
}

/// `SIZE`, or `SNDBUF/RCVBUF`.
fn window(text: &str) -> Result<(u64, u64), String> {
    let (send, recv) = text.split_once('/').unwrap_or((text, text));
    Ok((size::parse(send)?, size::parse(recv)?))
}

/// What `--fail-if` can name.
const FIGURES: [&str; 4] = ["bitrate", "sent", "received", "retransmits"];
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// The largest block, octets: it is kept in one piece.
const MOST_BLOCK: usize = 16 << 20;
