//! `whimbrel run`: a program in namespaces of its own, whose gateway is this stack.
//!
//! `run` makes a copy of itself before it has any thread. That makes the namespaces (`inside`), passes
//! one end of a wire back, and starts the first process in them (`init`), which starts the program. Here
//! the stack answers on that wire (`gateway`), and carries on by the machine's sockets.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use whimbrel_base::Instant;
use whimbrel_io::process::{ProcessIds, fork};
use whimbrel_io::tun::Offload;
use whimbrel_io::{
    AnyDevice, Clock, DuplicateAddressDetection, ImpairedDevice, ImpairedLinks, PacketConfig,
    StackConfig, Stop, TunConfig, Waker, WireSpec, device, entropy, stack,
};
use whimbrel_link::{LinkConfig, LinkCounters};

use crate::capture::{self, CaptureOption};
use crate::drive::KernelNet;
use crate::failure::{Failure, warn};
use crate::need::Need;
use crate::quantity;
use crate::refusals::Refusals;
use crate::routes::RouteOptions;
use crate::rules::RuleOptions;
use crate::{streams, wires};
use channel::{Channel, DeviceKind, Tag};
use far::FarNet;
use gateway::{Counts, Gateway, Parts};
use inside::GATEWAY_END;
use ping::{FarPings, MachinePings};
use plan::{RunPlan, SummaryForm};
use publish::PublishOption;
use session::Session;
use stopped::PRIVILEGE;
use wire::{WireNet, WirePings};

mod channel;
mod destinations;
mod dials;
mod far;
mod gateway;
mod init;
mod inside;
mod network;
mod ping;
mod plan;
mod publish;
mod report;
mod resolver;
mod session;
mod stopped;
mod udp;
mod wire;

/// The command line of `whimbrel run`, as it was typed.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The program to run and its arguments; -- may precede it.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
    /// Properties of a path between the program and the stack, as in rate=10M,delay=40ms,loss=1%: every
    /// key of -w mem:, in both directions, or with back.KEY=VALUE towards the program.
    #[arg(long, value_name = "KEY=VALUE[,…]")]
    link: Option<LinkConfig>,
    /// Seed of that path's random losses and delays [default: from the system's entropy].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Lead a port of this machine, at 127.0.0.1 if no address is given, to the program's port IN; may
    /// repeat. The program sees the client's address, or the gateway's for clients on this machine. With
    /// -w, it is a port of the wire's addresses, at all of them if none is given.
    #[arg(short, long, value_name = "[ADDR:]OUT:IN[/udp]")]
    publish: Vec<PublishOption>,
    /// The wire outside, if it is not the machine's sockets.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_PROGRAMS)]
    wire: Option<String>,
    /// Lead 10.0.2.2, the gateway's address inside, to this machine's 127.0.0.1; not with -w.
    #[arg(long)]
    host_loopback: bool,
    /// Make the program root of its namespace.
    #[arg(long)]
    map_root: bool,
    /// Congestion control of the program's own kernel.
    #[arg(long, value_name = "NAME")]
    inside_cc: Option<String>,
    /// MTU of the program's interface, bytes [default: that of --link, or 1500].
    #[arg(long, value_name = "BYTES", value_parser = quantity::whole::<u16>(1280..=65_520))]
    mtu: Option<u16>,
    /// After the program's end, deliver what its connections hold for at most this long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration)]
    linger: Duration,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    #[command(flatten)]
    routes: RouteOptions,
    #[command(flatten)]
    capture: CaptureOption,
    /// Write the summary to this file instead of the standard error.
    #[arg(id = "output_file", short, long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make the summary one JSON document (whimbrel.run/1).
    #[arg(long)]
    json: bool,
    /// Print only errors.
    #[arg(long, conflicts_with_all = ["json", "output_file"])]
    quiet: bool,
}

/// The result of a run.
struct Outcome {
    counts: Counts,
    /// Drops of the stack, by reason.
    drops: Refusals,
    /// The path from the program and the one to it, if there was one.
    links: Option<[LinkCounters; 2]>,
    seconds: f64,
    exit_code: u8,
}

/// Runs the program, and ends as it did.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = RunPlan::new(arguments)?;
    let file = plan.summary.open()?;
    let inside = Inside::start(&plan)?;
    // On failure fewer connections are open at a time; refusals say so. Later than the program's start:
    // its limit stays as it was.
    let _limit = whimbrel_io::descriptors::raise_limit();
    let (ended, outcome) = inside.serve(&plan)?;
    report(&plan, &outcome, file)?;
    ended.repeat()?;
    plan.pcap.as_ref().map_or(Ok(()), |pcap| pcap.outcome.judge())
}

/// Writes the summary to `file`, or to the standard error.
fn report(plan: &RunPlan, outcome: &Outcome, file: Option<File>) -> Result<(), Failure> {
    let text = match plan.summary.form {
        SummaryForm::None => return Ok(()),
        SummaryForm::Text => report::summary(outcome),
        SummaryForm::Json => format!("{:#}\n", report::document(plan, outcome)),
    };
    match file {
        None => streams::tell(&text),
        Some(mut file) => file
            .write_all(text.as_bytes())
            .map_err(|error| Failure::run(format!("--output: {error}")))?,
    }
    Ok(())
}

/// The processes inside, ready for the program.
struct Inside {
    channel: Channel,
    setter: Pid,
    kind: DeviceKind,
    device: OwnedFd,
    /// While it is open, what the program's sockets hold is sent on after its end.
    _namespace: OwnedFd,
}

impl Inside {
    /// Starts them, with process ids of their own where the system allows it.
    fn start(plan: &RunPlan) -> Result<Self, Failure> {
        if let Some(inside) = Self::start_with(plan, ProcessIds::Own)? {
            return Ok(inside);
        }
        warn(
            "/proc cannot be mounted for process ids of the program's own: processes that it starts may \
             outlive a kill -9 of this process",
        );
        Self::start_with(plan, ProcessIds::Shared)?
            .ok_or_else(|| Failure::run("the namespaces could not be made"))
    }

    /// `None`: `/proc` cannot be mounted.
    fn start_with(plan: &RunPlan, ids: ProcessIds) -> Result<Option<Self>, Failure> {
        let (channel, other) = Channel::pair().map_err(Failure::run)?;
        let other = Arc::new(other);
        let setter = fork(|| inside::run(&plan.inside, &other, ids)).map_err(Failure::run)?;
        drop(other);
        let setter = Pid::from_raw(setter.cast_signed()).ok_or_else(|| Failure::run("fork"))?;
        let mut device = None;
        let failure = loop {
            let Some(message) = channel.receive() else {
                break Failure::run("the process that makes the namespaces was killed");
            };
            match message.tag {
                Tag::Device(kind) => device = Some((kind, message.descriptors)),
                Tag::Warning => warn(&message.text),
                Tag::NoProc => {
                    drop(channel);
                    let _ended = waitpid(Some(setter), WaitOptions::empty());
                    return Ok(None);
                }
                Tag::Failed(PRIVILEGE) => {
                    break Failure::Missing { text: message.text, needs: &[Need::UserNamespaces] };
                }
                Tag::Failed(2) => break Failure::Usage(message.text),
                Tag::Failed(_) => break Failure::run(message.text),
                Tag::Ready => {
                    if let Some((kind, descriptors)) = device
                        && let Ok([device, namespace]) = <[OwnedFd; 2]>::try_from(descriptors)
                    {
                        let _namespace = namespace;
                        return Ok(Some(Self { channel, setter, kind, device, _namespace }));
                    }
                    break Failure::run(
                        "the wire was not passed: raise the limit of open files (ulimit -n)",
                    );
                }
                Tag::Ended(_) | Tag::Go | Tag::Signal(_) => {}
            }
        };
        drop(channel);
        let _ended = waitpid(Some(setter), WaitOptions::empty());
        Err(failure)
    }

    /// Is the gateway until the program has ended, and what it sent is delivered.
    fn serve(self, plan: &RunPlan) -> Result<(session::Ended, Outcome), Failure> {
        let (clock, stop) = (Clock::start(), Stop::new().map_err(Failure::run)?);
        match &plan.wire {
            None => {
                let net = KernelNet::new().map_err(Failure::run)?;
                self.serve_by::<_, MachinePings>(plan, net, clock, stop)
            }
            Some(wire) => {
                let net = WireNet::open(wire, plan.pcap.as_ref(), clock, &stop)?;
                self.serve_by::<_, WirePings>(plan, net, clock, stop)
            }
        }
    }

    /// Is the gateway to this network outside.
    fn serve_by<F: FarNet, P: FarPings<F>>(
        self,
        plan: &RunPlan,
        net: F,
        clock: Clock,
        stop: Stop,
    ) -> Result<(session::Ended, Outcome), Failure> {
        let Self { channel, setter, kind, device, _namespace } = self;
        let input = device.try_clone().map_err(Failure::run)?;
        let wire = wire(plan, kind, device)?;
        let config = StackConfig::new(
            &wire,
            plan.tunables.clone(),
            entropy::secrets().map_err(Failure::run)?,
        );
        let (devices, path) = open(plan, &wire, clock, &stop)?;
        let wakers = vec![Waker::new().map_err(Failure::run)?];
        let mut shards = stack::open_devices(devices, wakers, clock, config)?;
        if let Some(pcap) = plan.pcap.as_ref().filter(|_| plan.wire.is_none()) {
            shards = pcap.tap(shards, "run", None)?;
        }
        let mut shard = shards.pop().ok_or_else(|| Failure::run("the wire has no queue"))?;
        let session = Session::new(channel, setter).map_err(Failure::run)?;
        let parts = Parts {
            destinations: plan.destinations.clone(),
            session,
            device: input,
            path: path.clone(),
            linger: plan.linger,
            stop: stop.clone(),
        };
        let gateway = Gateway::<F, P>::new(&mut shard.shard, net, &plan.publish, parts)?;
        gateway.start_program();
        let mut worker = shard.worker(gateway);
        worker.run(&stop)?;
        capture::finish(worker.take_tap());
        let (_device, shard, gateway) = worker.into_parts();
        let (session, counts) = gateway.into_session()?;
        let (drops, ended) = (Refusals::of(&shard), session.finish());
        let seconds = clock.now().since(Instant::ZERO).as_secs_f64();
        let exit_code = ended.code();
        let links = path.map(|path| {
            let [to, from] = path.counters();
            [from, to]
        });
        Ok((ended, Outcome { counts, drops, links, seconds, exit_code }))
    }
}

/// The gateway's end of the wire.
fn wire(plan: &RunPlan, kind: DeviceKind, device: OwnedFd) -> Result<WireSpec, Failure> {
    let addresses = plan.inside.network.gateway();
    // Each packet crosses a path by itself.
    let offload = if plan.inside.is_cut { Offload::Off } else { Offload::On };
    Ok(match kind {
        DeviceKind::Tun => {
            let config = TunConfig::from_fd(device, addresses).map_err(Failure::run)?;
            let config = config.with_mtu(plan.inside.mtu).map_err(Failure::run)?;
            WireSpec::Tun(config.with_offload(offload))
        }
        DeviceKind::Packet => {
            let config = PacketConfig::new(GATEWAY_END, addresses).map_err(Failure::run)?;
            let config = config.with_dad(DuplicateAddressDetection::Off).with_offload(offload);
            WireSpec::Packet(config.with_socket(device).map_err(Failure::run)?)
        }
    })
}

/// The device of the wire, behind a path if there is to be one.
fn open(
    plan: &RunPlan,
    wire: &WireSpec,
    clock: Clock,
    stop: &Stop,
) -> Result<(Vec<AnyDevice>, Option<ImpairedLinks>), Failure> {
    let mut devices = wire.open(clock, stop)?;
    let Some((link, seed)) = &plan.link else { return Ok((devices, None)) };
    let device = devices.pop().ok_or_else(|| Failure::run("the wire has no queue"))?;
    // Out of the stack is towards the program: the way back.
    let impaired = ImpairedDevice::new(device, clock, [link.back(), link.clone()], *seed);
    let links = impaired.links();
    Ok((device::boxed([impaired]), Some(links)))
}

/// Signals that are passed on to the program.
const SIGNALS: [i32; 5] = [
    Signal::HUP.as_raw(),
    Signal::INT.as_raw(),
    Signal::QUIT.as_raw(),
    Signal::TERM.as_raw(),
    Signal::USR2.as_raw(),
];
