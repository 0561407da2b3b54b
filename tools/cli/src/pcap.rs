//! `whimbrel pcap`: a host that listens nowhere, and a capture of all that passes it.
//!
//! It gets frames from its own wire, or with `--pid` those of a running stack, by its control socket.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use whimbrel_base::Instant;
use whimbrel_io::rules::Rules;
use whimbrel_io::signals::Signals;
use whimbrel_io::{
    Activity, Clock, DuplicateAddressDetection, Port, ShardThreads, StackConfig, StackShard,
    StackWorker, Stop, Tap, WireSpec, Worker, entropy, stack,
};
use whimbrel_link::filter::Filter;
use whimbrel_stack::Shard;

use crate::attach::HostOption;
use crate::capture::{self, CapturePlan, Place, Rotate};
use crate::failure::Failure;
use crate::quantity::{self, thousands};
use crate::refusals::refusals;
use crate::rules::RuleOptions;
use crate::wrap::wrap;
use crate::{streams, wires};

mod running;

/// The command line of `whimbrel pcap`, as it was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The wire.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_CAPTURES, required_unless_present = "pid")]
    wire: Option<String>,
    /// Capture what a running whimbrel receives and sends, by its control socket: the process by its
    /// number, its command or the path of its socket. It never waits for this command: it drops and
    /// counts packets that this is too slow for.
    #[arg(long, value_name = "PROCESS", conflicts_with_all = ["wire", "RuleOptions"])]
    pid: Option<String>,
    #[command(flatten)]
    host: HostOption,
    /// Write to this file (-: standard output).
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// End after this many packets.
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX))]
    count: Option<u64>,
    /// End after this time, for example duration:10.
    #[arg(short, long, value_name = "duration:TIME", value_parser = autostop)]
    autostop: Option<Duration>,
    /// Start a new file (FILE_00002 …) beyond this size, and keep the last N, for example
    /// filesize:100M,files:5.
    #[arg(short = 'b', long, value_name = "filesize:SIZE[,files:N]", value_parser = ring)]
    ring: Option<Rotate>,
    /// Write only the first bytes of each packet.
    #[arg(short, long, value_name = "BYTES", value_parser = capture::snap)]
    snap: Option<usize>,
    /// Print only errors.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    /// Packets to capture, in a subset of the pcap-filter language, for example: tcp port 80 and not
    /// host 10.0.0.7. It has ip, ip6, arp, tcp, udp, icmp, icmp6, [src|dst] host, net, port and
    /// portrange, less, greater, tcp[tcpflags], and, or, not and parentheses.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

/// A capture: the wire to read, and the packets to write.
struct PcapPlan {
    wire: WireSpec,
    typed: String,
    capture: CapturePlan,
    lasts: Option<Duration>,
    rules: Rules,
}

/// Captures until a signal or a limit ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(process) = &arguments.pid {
        return running::run(process, arguments);
    }
    let plan = plan(arguments)?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let summary = watch(&plan, &stop)?;
    if !arguments.quiet {
        // The capture is complete even if standard error is closed.
        streams::tell(&format!("{}\n", wrap(&summary, 4)));
    }
    plan.capture.outcome.judge()
}

fn plan(arguments: &Arguments) -> Result<PcapPlan, Failure> {
    if arguments.host.host.is_some() {
        return Err(Failure::usage("--host", "is for --pid: a wire has one host here"));
    }
    let typed = arguments.wire.clone().unwrap_or_default();
    let wire: WireSpec = typed.parse().map_err(|it| Failure::usage("--wire", it))?;
    if wire.is_kernel() || wire.mem_link().is_some() {
        return Err(Failure::usage("--wire", wires::NOTHING_TO_CAPTURE));
    }
    if wire.queues() > 1 && arguments.count.is_some() {
        let text = format!("each of the {} queues counts separately: use one queue", wire.queues());
        return Err(Failure::usage("--count", text));
    }
    let place = place(arguments)?;
    let everything = CapturePlan::new(place);
    Ok(PcapPlan {
        capture: CapturePlan {
            snap: arguments.snap.unwrap_or(everything.snap),
            rotate: arguments.ring,
            filter: filter(arguments)?,
            most: arguments.count.unwrap_or(everything.most),
            option: OUTPUT,
            ..everything
        },
        wire,
        typed,
        lasts: arguments.autostop,
        rules: arguments.rules.rules(&[])?,
    })
}

/// The packets to capture, if not all.
fn filter(arguments: &Arguments) -> Result<Option<Filter>, Failure> {
    let filter = (!arguments.filter.is_empty()).then(|| arguments.filter.join(" "));
    let filter = filter.map(|text| text.parse().map_err(|it| Failure::usage("FILTER", it)));
    filter.transpose()
}

/// Destination of the capture.
fn place(arguments: &Arguments) -> Result<Place, Failure> {
    let place = match arguments.output.to_str() {
        Some("-") => Place::Output,
        _ => Place::File(arguments.output.clone()),
    };
    if place == Place::Output && arguments.ring.is_some() {
        return Err(Failure::usage("--ring", "several files need a name: use -o FILE"));
    }
    if place == Place::Output && std::io::stdout().is_terminal() {
        let text = "pcapng is binary and not for a terminal: use -o FILE, or pipe it into tshark \
                    -r -";
        return Err(Failure::usage(OUTPUT, text));
    }
    Ok(place)
}

/// Drives a shard of a host at each queue of the wire, until `stop` is set. Returns the summary.
fn watch(plan: &PcapPlan, stop: &Stop) -> Result<String, Failure> {
    let (clock, secrets) = (Clock::start(), entropy::secrets().map_err(Failure::run)?);
    let config = StackConfig::new(&plan.wire, plan.rules.tunables.clone(), secrets);
    // It is no host that others are to reach: it looks on.
    let config = StackConfig { dad: DuplicateAddressDetection::Off, ..config };
    let shards = stack::open(&plan.wire, config, clock, stop)?;
    let shards = plan.capture.tap(shards, &plan.typed, Some(stop))?;
    let until = plan.lasts.map(|lasts| clock.now() + lasts);
    let worker = |shard: StackShard| shard.worker(IdlePort { until, stop: stop.clone() });
    let workers = shards.into_iter().map(worker);
    let run = |mut worker: StackWorker<IdlePort>| {
        worker.run(stop)?;
        Ok::<_, Failure>(worker)
    };
    let threads = ShardThreads { stop, processors: &[] };
    let mut workers = threads.run(workers, run, || stop.wait().map_err(Failure::run))?;
    // The frames of a failed worker are unknown.
    let frames = workers.iter_mut().filter_map(Worker::take_tap).map(Tap::finish);
    let frames = frames.sum::<std::io::Result<u64>>().map(thousands);
    let drops = refusals(workers.iter().map(Worker::shard));
    Ok(format!("{} frames captured; {drops}", frames.unwrap_or_else(|_| "not all".into())))
}

/// Drives a stack without an application.
struct IdlePort {
    until: Option<Instant>,
    stop: Stop,
}

impl Port for IdlePort {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        while shard.poll_event().is_some() {}
        if self.until.is_some_and(|until| now >= until) {
            self.stop.set();
        }
        Activity::Idle
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.until
    }
}

fn autostop(typed: &str) -> Result<Duration, String> {
    let example = || format!("{typed:?}: give duration:TIME, as in duration:10 or duration:500ms");
    quantity::duration(typed.strip_prefix("duration:").ok_or_else(example)?)
}

fn ring(typed: &str) -> Result<Rotate, String> {
    let example =
        || format!("{typed:?}: give filesize:SIZE[,files:N], as in filesize:100M,files:5");
    let (size, files) = match typed.split_once(",files:") {
        Some((size, files)) => (size, capture::files(files)?),
        None => (typed, 0),
    };
    let rotate = capture::rotate(size.strip_prefix("filesize:").ok_or_else(example)?)?;
    Ok(Rotate { files, ..rotate })
}

const OUTPUT: &str = "--output";
