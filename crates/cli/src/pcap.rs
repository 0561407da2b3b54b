//! `whimbrel pcap`: a host that listens nowhere, and a capture of all that passes it.
//!
//! It gets frames by having a wire of its own. What other processes' stacks see is not to be had
//! without asking them.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use whimbrel_io::signals::Signals;
use whimbrel_io::{
    Activity, Clock, Device, PacketWire, PcapWire, Port, Stop, Tun, UnixWire, Waker, WireSpec,
    Worker, entropy,
};
use whimbrel_stack::{Shard, ShardConfig};
use whimbrel_tcp::Instant;

use crate::capture::{self, CapturePlan, Place, Rotate};
use crate::failure::Failure;
use crate::quantity::{self, thousands};
use crate::rules::{RuleOptions, Rules};

/// What was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Where frames come from.
    #[arg(short, long, value_name = "SPEC", help = WIRE_HELP)]
    wire: String,
    /// Write into this file, or with - to the standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// End after this many frames.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time, as in duration:10.
    #[arg(short, long, value_name = "duration:TIME", value_parser = autostop)]
    autostop: Option<Duration>,
    /// Go on in another file (FILE_00002 …) beyond a size, and keep the last N of them, as in
    /// filesize:100M,files:5.
    #[arg(short = 'b', long, value_name = "filesize:SIZE[,files:N]", value_parser = ring)]
    ring: Option<Rotate>,
    /// Write only that many octets of each frame.
    #[arg(short, long, value_name = "OCTETS", value_parser = capture::snap)]
    snap: Option<usize>,
    /// Print nothing but errors.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    /// Which frames, in a part of pcap-filter's language, as in: tcp port 80 and not host 10.0.0.7.
    /// There are ip, ip6, arp, tcp, udp, icmp, icmp6, [src|dst] host, net, port and portrange, less,
    /// greater, tcp[tcpflags], and, or, not and parentheses.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

/// What is meant.
struct Plan {
    wire: WireSpec,
    typed: String,
    capture: CapturePlan,
    lasts: Option<Duration>,
    rules: Rules,
}

/// Captures until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let clock = Clock::start();
    let summary = match &plan.wire {
        WireSpec::Tun(config) | WireSpec::Tap(config) => {
            watch(&plan, Tun::open(config)?, clock, &stop)
        }
        WireSpec::Packet(config) => watch(&plan, PacketWire::open(config)?, clock, &stop),
        WireSpec::Unix(config) => watch(&plan, UnixWire::open(config)?, clock, &stop),
        WireSpec::Pcap(config) => {
            watch(&plan, PcapWire::open(config, clock, stop.clone())?, clock, &stop)
        }
        _ => Err(Failure::usage("--wire", NO_WIRE)),
    }?;
    if !arguments.quiet {
        // Nobody may be there to read it: the capture is whole all the same.
        let _ = writeln!(std::io::stderr(), "{summary}");
    }
    Ok(())
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let wire: WireSpec = arguments.wire.parse().map_err(|it| Failure::usage("--wire", it))?;
    if matches!(wire, WireSpec::Mem(_) | WireSpec::Kernel) {
        return Err(Failure::usage("--wire", NO_WIRE));
    }
    if wire.queues() > 1 {
        let text = format!("{} queues: a capture has one shard, give one queue", wire.queues());
        return Err(Failure::usage("--wire", text));
    }
    let place = match arguments.output.to_str() {
        Some("-") => Place::Output,
        _ => Place::File(arguments.output.clone()),
    };
    if place == Place::Output && arguments.ring.is_some() {
        return Err(Failure::usage("--ring", "several files need a name: give -o FILE"));
    }
    if place == Place::Output && std::io::stdout().is_terminal() {
        let text = "a terminal shows no pcapng: give -o FILE, or pipe it into tshark -r -";
        return Err(Failure::usage("--output", text));
    }
    let filter = (!arguments.filter.is_empty()).then(|| arguments.filter.join(" "));
    let filter = filter.map(|text| text.parse().map_err(|it| Failure::usage("FILTER", it)));
    let everything = CapturePlan::new(place);
    Ok(Plan {
        capture: CapturePlan {
            snap: arguments.snap.unwrap_or(everything.snap),
            rotate: arguments.ring,
            filter: filter.transpose()?,
            most: arguments.count.unwrap_or(everything.most),
            ..everything
        },
        wire,
        typed: arguments.wire.clone(),
        lasts: arguments.autostop,
        rules: arguments.rules.rules(&[])?,
    })
}

/// Drives a host over `device` until `stop` is set. Returns what there is to say of it.
fn watch<D: Device>(plan: &Plan, device: D, clock: Clock, stop: &Stop) -> Result<String, Failure> {
    let capabilities = device.capabilities();
    let shard = Shard::new(ShardConfig {
        tunables: plan.rules.tunables.clone(),
        secrets: entropy::secrets().map_err(Failure::run)?,
        capabilities,
        addresses: plan.wire.addresses().to_vec(),
        routes: plan.wire.routes(),
    })
    .map_err(Failure::run)?;
    let tap = plan.capture.open(&plan.typed, capabilities.medium, Some(clock))?;
    let port = Onlooker { until: plan.lasts.map(|lasts| clock.now() + lasts), stop: stop.clone() };
    let waker = Waker::new().map_err(Failure::run)?;
    let tap = tap.until(stop.clone());
    let mut worker = Worker::new(device, shard, port, clock, waker).with_tap(Some(tap));
    worker.run(stop).map_err(Failure::run)?;
    let frames = worker.take_tap().map_or(Ok(0), capture::frames)?;
    let drops = refusals(worker.shard());
    Ok(format!("{} frames captured; {drops}", thousands(frames)))
}

/// What the stack refused, by reason: `dropped: 31 NO_SOCKET, 4 TCP_CSUM`.
pub(crate) fn refusals(shard: &Shard) -> String {
    let segments = shard.counters().drops().map(|(reason, count)| (reason.name(), count));
    let packets = shard.ip_counters().drops().map(|(reason, count)| (reason.name(), count));
    let all = segments.chain(packets).filter(|(_, count)| *count > 0);
    let all: Vec<_> = all.map(|(name, count)| format!("{} {name}", thousands(count))).collect();
    if all.is_empty() { "none dropped".into() } else { format!("dropped: {}", all.join(", ")) }
}

/// Lets the stack do what it does by itself.
struct Onlooker {
    until: Option<Instant>,
    stop: Stop,
}

impl Port for Onlooker {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

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

const NO_WIRE: &str = "nothing can be captured there: give tun:, tap:, packet:, unix: or pcap:; what \
                       serve, load, crr and bulk do is captured by their --pcap FILE";
const WIRE_HELP: &str = "Where frames come from: a host with the addresses given is put there, \
                         which answers pings and refuses connections: tun:NAME,addr=ADDRESS/PREFIX, \
                         tap:NAME,…, packet:IF,addr=ADDRESS/PREFIX, unix:PATH,addr=ADDRESS/PREFIX, \
                         or a capture for it to judge: pcap:FILE,addr=ADDRESS/PREFIX[,speed=max]";
