//! `whimbrel link`: a path of our making between two interfaces of the machine's, in real time.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use whimbrel_io::signals::Signals;
use whimbrel_io::{Stop, entropy};
use whimbrel_kernel::bridge::{BridgeCounters, Lateness, SentPacket};
use whimbrel_kernel::{Bridge, BridgeEnd};
use whimbrel_link::LinkConfig;

use crate::capture::{self, CapturePlan};
use crate::failure::{self, Failure};
use crate::quantity::{self, thousands};
use crate::{output, status};

mod packets;

use packets::PathCapture;

/// The two ends and the path between them, as they were typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// One end, a TUN interface, created if it does not exist, with the address if given:
    /// tun:NAME[,netns=NAMESPACE][,addr=ADDRESS/PREFIX].
    a: BridgeEnd,
    /// The other end.
    b: BridgeEnd,
    /// Properties of the path in both directions, for example rate=45M,delay=35ms,loss=0.1%: every key
    /// of -w mem:, in one word or in several.
    ///
    /// rate=RATE: bits per second. delay=TIME: one way. host-delay=TIME: time that B, a slow host,
    /// takes for each packet. jitter=TIME: up to this much more, in order. loss=PERCENT.
    /// burst-loss=ENTER:LEAVE[:LOSS]: of Gilbert and Elliott. drop=N[/K][+N[/K]…]: the K-th
    /// transmission (the first, if not given) of the N-th full segment of each connection.
    /// reorder=PERCENT[:TIME]. dup=PERCENT. corrupt=PERCENT. ecn=BYTES: mark from that queue on (0:
    /// all). queue=100p, 256k or 1bdp (of rate x 2 x delay, at least 16 full packets). mtu=BYTES.
    ///
    /// police=RATE:BURST: drop packets above this rate, without a queue. ack-batch=TIME:
    /// acknowledgments leave together each TIME. ack-filter: a newer acknowledgment replaces one in the
    /// queue. ecn-bleach: clear ECN codepoints. accecn-strip: remove Accurate ECN options.
    /// strip=wscale+sack+timestamps: remove these options. forget=TIME[:rst]: lose the packets of flows
    /// that were idle for this time, or reset them. inject=rst: reset flows at their first text.
    /// at=TIME:CHANGE, which may repeat: rate=, delay=, mtu= (silent), down or up, that long after the
    /// start. back.KEY=VALUE: only from B to A, for example back.rate=1M.
    #[arg(value_name = "KEY=VALUE")]
    path: Vec<String>,
    /// Properties of the path from B to A, if different.
    #[arg(long, value_name = "KEY=VALUE[,…]")]
    back: Option<LinkConfig>,
    /// End after this time.
    #[arg(short = 'z', long, value_name = "TIME", value_parser = quantity::some_time)]
    duration: Option<Duration>,
    /// Print a line after each such interval, of 100ms or more.
    #[arg(short, long, value_name = "TIME", value_parser = quantity::some_time, conflicts_with_all = ["json", "quiet"])]
    interval: Option<Duration>,
    /// Write every packet that either interface sends to this file (pcapng), with its outcome on the
    /// path as a comment, for example "lost: queue full". snap=N: only the first N bytes of each;
    /// filter=…, which must be the last: only these packets, as in filter=tcp port 80.
    #[arg(long, value_name = "FILE[,snap=N,filter=…]", value_parser = capture::parse)]
    pcap: Option<CapturePlan>,
    /// Seed of random losses and delays: the same packets at the same times have the same outcome
    /// [default: from the system's entropy].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON document (whimbrel.link/1) at the end instead.
    #[arg(long)]
    json: bool,
    /// Print only errors and the warning that packets were late.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
}

/// Carries packets until a signal or the duration ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.interval.is_some_and(|interval| interval < LOOK) {
        return Err(Failure::usage("--interval", "give 100ms or more"));
    }
    let typed = arguments.path.join(",");
    let there: LinkConfig = typed.parse().map_err(|error| Failure::usage("KEY=VALUE", error))?;
    if there.back.is_some() && arguments.back.is_some() {
        let text = "back.KEY sets the same direction: use only one of them";
        return Err(Failure::usage("--back", text));
    }
    if arguments.back.as_ref().is_some_and(|back| back.back.is_some()) {
        let text = "its keys have no prefix back.: leave it out, for example --back rate=1M";
        return Err(Failure::usage("--back", text));
    }
    let back = arguments.back.clone().unwrap_or_else(|| there.back());
    let seed = arguments.seed.map_or_else(entropy::seed, Ok).map_err(Failure::run)?;
    let ends = [arguments.a.clone(), arguments.b.clone()];
    let names = ends.each_ref().map(BridgeEnd::name);
    let mut packets =
        arguments.pcap.as_ref().map(|plan| PathCapture::begin(plan, names)).transpose()?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let mut bridge = Bridge::open(ends.clone(), [there, back], seed)?;
    if !arguments.json && !arguments.quiet {
        // Scripts wait for this line to know that the path is ready.
        output::print(&format!(
            "whimbrel {}  {} <-> {}  {typed}\n",
            env!("CARGO_PKG_VERSION"),
            arguments.a.name(),
            arguments.b.name(),
        ))?;
    }
    let began = Instant::now();
    let ran = carry(&mut bridge, &stop, arguments, began, packets.as_mut());
    let run = Run::of(&bridge, began);
    match (arguments.json, arguments.quiet) {
        (true, _) => output::print(&format!("{:#}\n", run.document(&typed, seed)))?,
        (false, false) => output::print(&run.table())?,
        (false, true) => {}
    }
    if run.is_late() {
        failure::warn(&run.warning());
    }
    ran?;
    packets.map_or(Ok(()), PathCapture::finish)
}

/// Carries packets for `--duration`. Prints the counters at each request and after each `--interval`.
fn carry(
    bridge: &mut Bridge,
    stop: &Stop,
    arguments: &Arguments,
    began: Instant,
    mut packets: Option<&mut PathCapture>,
) -> Result<(), Failure> {
    let mut intervals = Intervals::new(arguments.interval, bridge);
    let zero = bridge.clock().zero_since_1970();
    let mut on_sent = |packet: SentPacket<'_>| {
        if let Some(packets) = &mut packets {
            packets.write(&packet, zero);
        }
    };
    loop {
        let left = arguments.duration.map(|lasts| lasts.saturating_sub(began.elapsed()));
        if stop.is_set() || left.is_some_and(|left| left.is_zero()) {
            return Ok(());
        }
        bridge.run(stop, Some(left.map_or(LOOK, |left| left.min(LOOK))), &mut on_sent)?;
        status::answer(|| Run::of(bridge, began).table());
        intervals.follow(bridge, began.elapsed())?;
    }
}

/// The lines of `--interval`.
struct Intervals {
    length: Option<Duration>,
    /// When the current one began, since the start, and the counters then.
    since: Duration,
    before: [BridgeCounters; 2],
}

impl Intervals {
    fn new(length: Option<Duration>, bridge: &Bridge) -> Self {
        Self { length, since: Duration::ZERO, before: bridge.counters() }
    }

    /// Prints the line of an interval that is over at `now`, since the start.
    fn follow(&mut self, bridge: &Bridge, now: Duration) -> Result<(), Failure> {
        if self.length.is_none_or(|length| now < self.since + length) {
            return Ok(());
        }
        let passages = bridge.counters();
        let seconds = (now - self.since).as_secs_f64();
        let mut line = format!("{:>9.2} s", now.as_secs_f64());
        for (it, before) in passages.iter().zip(&self.before) {
            let rate = (it.link.delivered - before.link.delivered) as f64 / seconds;
            let lost = it.link.lost() - before.link.lost();
            let [rate, lost] = [rate as u64, lost].map(thousands);
            line += &format!("  {} -> {}: {rate:>9} packets/s, {lost} lost", it.from, it.to);
        }
        output::print(&format!("{line}\n"))?;
        (self.since, self.before) = (now, passages);
        Ok(())
    }
}

/// The result of a run.
struct Run<'b> {
    passages: [BridgeCounters; 2],
    lateness: &'b Lateness,
    took: Duration,
}

impl<'b> Run<'b> {
    fn of(bridge: &'b Bridge, began: Instant) -> Self {
        Self { passages: bridge.counters(), lateness: bridge.lateness(), took: began.elapsed() }
    }

    /// True if the path was slower than requested.
    fn is_late(&self) -> bool {
        self.lateness.percentile(99.0) > LATE
    }

    fn warning(&self) -> String {
        let [p99, most] = [self.lateness.percentile(99.0), self.lateness.max()].map(micros);
        format!(
            "1 % of packets left {p99} us late or more (at most {most} us), above the limit of {} \
             us: the machine was overloaded, and measurements over this path are not valid",
            micros(LATE)
        )
    }

    fn table(&self) -> String {
        let mut table = String::new();
        let heads = self.passages.each_ref().map(|it| format!("{} -> {}", it.from, it.to));
        let mut row = |name: &str, [a, b]: [String; 2]| {
            let line = format!("{name:<34}{a:>22}{b:>22}");
            table.push_str(line.trim_end());
            table.push('\n');
        };
        row(&format!("after {:.1} s", self.took.as_secs_f64()), heads);
        for (name, figure, is_always_shown) in ROWS {
            let figures = self.passages.each_ref().map(figure);
            if is_always_shown || figures.iter().any(|figure| *figure != Some(0)) {
                row(name, figures.map(|figure| figure.map_or_else(|| "-".into(), thousands)));
            }
        }
        let [p50, p99, most] =
            [self.lateness.percentile(50.0), self.lateness.percentile(99.0), self.lateness.max()]
                .map(micros);
        format!("{table}handed over late: p50 {p50} us, p99 {p99} us, at most {most} us\n")
    }

    fn document(&self, path: &str, seed: u64) -> Value {
        let directions = self.passages.each_ref().map(|passage| {
            let mut direction = output::link(&passage.link);
            direction["from"] = passage.from.clone().into();
            direction["to"] = passage.to.clone().into();
            direction["on_the_way"] = passage.on_the_way.into();
            direction["missed"] = passage.missed.into();
            direction["refused"] = passage.refused.into();
            direction
        });
        json!({
            "schema": "whimbrel.link/1",
            "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
            "path": path,
            "seed": seed,
            "seconds": self.took.as_secs_f64(),
            "directions": directions,
            "late_us": {
                "p50": micros(self.lateness.percentile(50.0)),
                "p99": micros(self.lateness.percentile(99.0)),
                "max": micros(self.lateness.max()),
            },
            "is_late": self.is_late(),
        })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A name, the figure of a direction, and whether it is shown though it is 0.
type Row = (&'static str, fn(&BridgeCounters) -> Option<u64>, bool);

const ROWS: [Row; 24] = [
    ("packets sent", |it| Some(it.link.sent), true),
    ("bytes sent", |it| Some(it.link.sent_bytes), true),
    ("packets delivered", |it| Some(it.link.delivered), true),
    ("still on the way", |it| Some(it.on_the_way), false),
    ("lost: queue full", |it| Some(it.link.lost_queue), true),
    ("lost: by chance", |it| Some(it.link.lost_random + it.link.lost_burst), true),
    ("lost: by drop=", |it| Some(it.link.lost_targeted), false),
    ("lost: policed", |it| Some(it.link.lost_policed), false),
    ("lost: flow forgotten", |it| Some(it.link.lost_forgotten), false),
    ("lost: link down", |it| Some(it.link.lost_down), false),
    ("lost: longer than the MTU", |it| Some(it.link.lost_too_long), false),
    ("lost: too much on the way", |it| Some(it.link.lost_crowded), false),
    ("acknowledgments replaced", |it| Some(it.link.lost_replaced), false),
    ("acknowledgments batched", |it| Some(it.link.batched), false),
    ("ECN bleached", |it| Some(it.link.bleached), false),
    ("AccECN options stripped", |it| Some(it.link.stripped), false),
    ("options stripped", |it| Some(it.link.options_stripped), false),
    ("resets forged", |it| Some(it.link.resets_forged), false),
    ("marked", |it| Some(it.link.marked), false),
    ("corrupted", |it| Some(it.link.corrupted), false),
    ("duplicated", |it| Some(it.link.duplicated), false),
    ("overtaken", |it| Some(it.link.reordered), false),
    ("never read from the interface", |it| it.missed, true),
    ("refused by the other interface", |it| Some(it.refused), false),
];

/// Interval between looks for requests of the counters.
const LOOK: Duration = Duration::from_millis(100);
/// Lateness above which the path is not the requested one.
const LATE: Duration = Duration::from_millis(1);
