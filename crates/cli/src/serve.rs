//! `whimbrel serve`: an HTTP/1.1 server, or one of bytes, on the stack.

use std::sync::Arc;
use std::thread;

use clap::Args;
use whimbrel_base::Secrets;
use whimbrel_io::signals::Question;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{
    Clock, Device, KeySource, PacketConfig, PacketWire, PcapConfig, PcapWire, Steered, Stop, Tap,
    Tun, TunConfig, UnixWire, Waker, WireSpec, Worker,
};
use whimbrel_stack::{Capabilities, ListenerId, Medium, Shard, ShardConfig};

use crate::capture::{self, CaptureOption, CapturePlan};
use crate::drive::{self, Ran, StackState, SteeringOf};
use crate::failure::Failure;
use crate::load::Switch;
use crate::options::{OutputOptions, PaceOptions};
use crate::pcap::refusals;
use crate::quantity::{self, thousands};
use crate::rules::{RuleOptions, Shorthand};
use crate::shards::{self, EndsAll, ShardOptions};
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

/// What was typed.
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
}

impl Arguments {
    /// The options that are short for `-S`.
    pub(crate) fn shorthands(&self) -> Vec<Shorthand> {
        self.syncookies.as_deref().map(Shorthand::syn_cookies).into_iter().collect()
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
    /// Whoever tells it.
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
    let ran = drive::measure(|stop| serve_wire(&plan, report, (stop, &question)))?;
    ServeReporter::conclude(&plan, ran)
}

fn serve_wire(
    plan: &ServePlan,
    report: ServeReporter,
    (stop, question): (&Stop, &Question),
) -> Result<Ran<Served>, Failure> {
    let clock = Clock::start();
    let reporter = ServeControl { report, stop, clock, question };
    match &plan.setup.wire {
        WireSpec::Kernel => kernel::serve(plan, reporter),
        WireSpec::Tun(config) | WireSpec::Tap(config) => {
            let tuns = Tun::open_queues(config)?;
            let headline =
                tuns.first().map_or_else(String::new, |tun| about_interface(config, tun));
            serve_queues(plan, tuns, reporter, &headline)
        }
        WireSpec::Packet(config) => {
            let wires = PacketWire::open_fanout(config)?;
            let headline = wires.first().map_or_else(String::new, |wire| about_place(config, wire));
            serve_queues(plan, wires, reporter, &headline)
        }
        WireSpec::Unix(config) => {
            let wire = UnixWire::open(config)?;
            let whom = if wire.is_joined() { "joined" } else { "waiting for its other end" };
            let headline =
                format!("unix:{} ({whom}; mtu {})", config.path().display(), config.mtu());
            serve_queues(plan, vec![wire], reporter, &headline)
        }
        WireSpec::Pcap(config) => {
            let wire = PcapWire::open(config, clock, stop.clone())?;
            let headline = about_capture(config, &wire);
            serve_queues(plan, vec![wire], reporter, &headline)
        }
        _ => Err(Failure::usage("--wire", "nobody can be served there")),
    }
}

/// Serves at each of these queues, a shard each.
fn serve_queues<D: Device + Send>(
    plan: &ServePlan,
    mut devices: Vec<D>,
    reporter: ServeControl<'_>,
    headline: &str,
) -> Result<Ran<Served>, Failure> {
    let wire = &plan.setup.wire;
    wire.dad().check(&mut devices, wire.addresses()).map_err(Failure::run)?;
    let wakers = devices.iter().map(|_| Waker::new()).collect::<Result<Vec<_>, _>>();
    let wakers = wakers.map_err(Failure::run)?;
    match devices.len() {
        1 => serve(plan, (devices, |_| SteeringCounters::default()), wakers, (reporter, headline)),
        shards => {
            let headline = format!("{headline}  shards={shards}");
            let devices = Steered::join(devices, &wakers);
            serve(plan, (devices, |device| *device.steering()), wakers, (reporter, &headline))
        }
    }
}

/// Serves over these devices until it is stopped, then lets everything go; `steering` is what came in
/// by the wrong one.
fn serve<D: Device + Send>(
    plan: &ServePlan,
    (devices, steering): (Vec<D>, SteeringOf<D>),
    wakers: Vec<Waker>,
    (reporter, headline): (ServeControl<'_>, &str),
) -> Result<Ran<Served>, Failure> {
    let ServeControl { mut report, stop, clock, question } = reporter;
    let shard_totals = Arc::new(ShardTotals::new(devices.len()));
    let answers = ShardAnswers::new(devices.len(), plan.log.clone());
    let mut secrets = plan.setup.secrets()?;
    if let Some(key) = plan.group {
        key.share(&mut secrets);
    }
    let offloads = devices.first().map(Device::capabilities);
    let taps = capture::spread(open_tap(plan, &devices, clock)?, devices.len());
    let mut shards = Vec::new();
    let awake = wakers.clone();
    for (((number, device), waker), tap) in devices.into_iter().enumerate().zip(wakers).zip(taps) {
        let (shard, listeners) = open_shard(plan, &device, &secrets)?;
        let place = Place::new(number, (Arc::clone(&shard_totals), Arc::clone(&answers)));
        shards.push(ServedShard { device, shard, listeners, waker, place, tap });
    }
    report.begin(plan, headline);
    if let Some(first) = shards.first_mut() {
        first.place.report = Some(report);
    }
    let ended = thread::scope(|scope| {
        let threads: Vec<_> = shards
            .into_iter()
            .map(|shard| {
                scope.spawn(move || {
                    let _whatever_happens = EndsAll(stop);
                    shard.serve(plan, clock, stop)
                })
            })
            .collect();
        let asked = scope.spawn(|| answers.stay(question, stop, (&awake, clock)));
        let ended: Vec<_> = threads.into_iter().map(shards::join).collect();
        let ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        shards::join(asked)?;
        Ok::<_, Failure>(ended)
    })?;
    let states = ended.iter().map(|shard| StackState::of(&shard.shard));
    let mut strays = SteeringCounters::default();
    ended.iter().for_each(|shard| strays += steering(&shard.device));
    let replays = matches!(plan.setup.wire, WireSpec::Pcap(_));
    let replayed = ended.first().filter(|_| replays).map(|only| {
        let frames = thousands(only.device.counters().rx_frames);
        format!("{frames} frames; {}", refusals([&only.shard]))
    });
    let server = StackState::sum(states);
    let report = ended.into_iter().find_map(|shard| shard.report);
    Ok(Ran {
        outcome: Served { report, totals: shard_totals.total(), replayed },
        client: None,
        server,
        links: None,
        steering: strays,
        target: plan.target(),
        seed: plan.setup.seed,
        offloads,
        effort: None,
    })
}

/// A shard that serves, with all that it needs.
struct ServedShard<D> {
    device: D,
    shard: Shard,
    listeners: Vec<ListenerId>,
    waker: Waker,
    place: Place,
    tap: Option<Tap>,
}

/// What is left of it.
struct Ended<D> {
    /// What is to print the summary, if it has it.
    report: Option<ServeReporter>,
    shard: Shard,
    /// Its queue stays until all have ended: without it the kernel would deal its flows to the others.
    device: D,
}

impl<D: Device> ServedShard<D> {
    /// Serves on this thread until it is stopped, then lets everything go.
    fn serve(self, plan: &ServePlan, clock: Clock, stop: &Stop) -> Result<Ended<D>, Failure> {
        let Self { device, shard, listeners, waker, place, tap } = self;
        shards::pin(&plan.setup.processors, place.shard)?;
        let port = ServePort::new(Server::open(plan)?, listeners.clone(), place);
        let mut worker = Worker::new(device, shard, port, clock, waker.clone()).with_tap(tap);
        worker.run(stop).map_err(Failure::run)?;

        let tap = worker.take_tap();
        let (device, mut shard, mut port) = worker.into_parts();
        for listener in listeners {
            shard.close_listener(listener);
        }
        port.shut_down(&mut shard);
        let released = Stop::new().map_err(Failure::run)?;
        let closing = Closing::new(port, clock.now(), released.clone());
        let mut worker = Worker::new(device, shard, closing, clock, waker).with_tap(tap);
        worker.run(&released).map_err(Failure::run)?;
        capture::finish(worker.take_tap());
        let (device, shard, closing) = worker.into_parts();
        let report = closing.served.finish(&shard);
        Ok(Ended { report, shard, device })
    }
}

/// The capture, if there is to be one: of what all these devices have.
fn open_tap<D: Device>(
    plan: &ServePlan,
    devices: &[D],
    clock: Clock,
) -> Result<Option<Tap>, Failure> {
    let medium = devices.first().map_or(Medium::Ip, |device| device.capabilities().medium);
    let open = |pcap: &CapturePlan| pcap.open(&plan.setup.typed, medium, Some(clock));
    plan.setup.pcap.as_ref().map(open).transpose()
}

fn open_shard(
    plan: &ServePlan,
    device: &impl Device,
    secrets: &Secrets,
) -> Result<(Shard, Vec<ListenerId>), Failure> {
    let mut shard = Shard::new(ShardConfig {
        tunables: plan.setup.rules.tunables.clone(),
        secrets: *secrets,
        capabilities: device.capabilities(),
        addresses: plan.setup.wire.addresses().to_vec(),
        routes: plan.setup.wire.routes(),
    })
    .map_err(Failure::run)?;
    if let Some(key) = plan.group {
        key.join(&mut shard);
    }
    let listen = |at: &_| {
        let listener = shard.listen(*at, plan.backlog).map_err(Failure::run)?;
        shard.set_fast_open(listener, plan.fast_open);
        Ok::<_, Failure>(listener)
    };
    let listeners = plan.listen.iter().map(listen).collect::<Result<_, _>>()?;
    Ok((shard, listeners))
}

/// An interface, for people: `tap:whim0 (mac 02:…; offloads: csum tso4; mtu 1500)`.
fn about_interface(config: &TunConfig, tun: &Tun) -> String {
    let (kind, mac) = match tun.capabilities().medium {
        Medium::Ip => ("tun", String::new()),
        Medium::Ethernet { mac } => ("tap", format!("mac {mac}; ")),
    };
    let offloads: Vec<_> = tun.offloads().names().collect();
    let offloads = if offloads.is_empty() { "none".into() } else { offloads.join(" ") };
    let name = config.name().to_string_lossy();
    format!("{kind}:{name} ({mac}offloads: {offloads}; mtu {})", config.mtu())
}

/// A place on an interface, for people: `packet:eth0 (mac 02:…; offload on; mtu 1500)`.
fn about_place(config: &PacketConfig, wire: &PacketWire) -> String {
    let Capabilities { medium, mtu, tx_checksum, .. } = wire.capabilities();
    let mac = match medium {
        Medium::Ip => String::new(),
        Medium::Ethernet { mac } => format!("mac {mac}; "),
    };
    let offload = if tx_checksum { "on" } else { "off" };
    format!("packet:{} ({mac}offload {offload}; mtu {mtu})", config.name().to_string_lossy())
}

/// A capture, for people: `pcap:a.pcapng (Ethernet; 120 frames; 4 outward ones left out)`.
fn about_capture(config: &PcapConfig, wire: &PcapWire) -> String {
    let contents = wire.contents();
    let kind = match wire.capabilities().medium {
        Medium::Ip => "IP".to_owned(),
        Medium::Ethernet { mac } => format!("mac {mac}"),
    };
    let mut text = format!("{kind}; {} frames", thousands(contents.inward as u64));
    if contents.outward > 0 {
        text += &format!("; {} outward ones left out", thousands(contents.outward as u64));
    }
    if contents.cut > 0 {
        text += &format!("; {} cut short by the capture", thousands(contents.cut as u64));
    }
    format!("pcap:{} ({text})", config.path().display())
}

const JSON_HELP: &str = "Print one JSON document (whimbrel.serve/1) at the end instead of text";
const FAIL_IF_HELP: &str =
    "Exit with code 3 if this is true of the result, as in 'failed>1% || overflows>0'";
const LISTEN_HELP: &str =
    "Listen there; may repeat [default: the port of what is served, on every address of the stack]";
