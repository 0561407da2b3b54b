//! Typed arguments become a plan.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use whimbrel_io::rules::Rules;
use whimbrel_io::{TunConfig, entropy};
use whimbrel_link::LinkConfig;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::UnreachableByIcmp;

use super::Arguments;
use super::destinations::Destinations;
use super::network::InsideNetwork;
use super::publish::Published;
use super::resolver::Resolver;
use super::wire::WirePlan;
use crate::capture::CapturePlan;
use crate::failure::{Failure, warn};

/// A program and its network.
pub(super) struct RunPlan {
    pub(super) inside: InsidePlan,
    pub(super) destinations: Destinations,
    pub(super) publish: Vec<Published>,
    /// The path between the program and the gateway, if it is impaired, and its seed.
    pub(super) link: Option<(LinkConfig, u64)>,
    /// Time for open flows after the program's end.
    pub(super) linger: Duration,
    /// Of the stack inside.
    pub(super) tunables: Tunables,
    /// The wire outside, if it is not the machine's sockets.
    pub(super) wire: Option<WirePlan>,
    pub(super) pcap: Option<CapturePlan>,
    pub(super) summary: SummaryPlan,
}

/// Settings of the processes inside.
pub(super) struct InsidePlan {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) network: InsideNetwork,
    pub(super) resolver: Resolver,
    pub(super) user: User,
    pub(super) mtu: u16,
    /// True if each packet is one of the path, and none stands for several.
    pub(super) is_cut: bool,
    /// Congestion control of the program's kernel, if not its own choice.
    pub(super) congestion: Option<String>,
}

/// Report at the end, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SummaryPlan {
    pub(super) form: SummaryForm,
    /// `None`: on the standard error.
    pub(super) file: Option<PathBuf>,
}

impl SummaryPlan {
    /// Its file, if it has one: before the program runs, as a run without its result is lost.
    pub(super) fn open(&self) -> Result<Option<File>, Failure> {
        let Some(path) = &self.file else { return Ok(None) };
        File::create(path).map(Some).map_err(|error| {
            let path = whimbrel_io::text::path(path);
            Failure::run(format!("--output {path}: {error}; use a file that can be written"))
        })
    }
}

/// Form of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SummaryForm {
    None,
    Text,
    Json,
}

/// The user that the program is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum User {
    /// As outside.
    Same,
    /// Root of its namespace.
    Root,
}

impl RunPlan {
    /// Returns the plan, or the option to change.
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let (program, rest) = arguments
            .program
            .split_first()
            .ok_or_else(|| Failure::usage("PROGRAM", "give a program to run"))?;
        if arguments.seed.is_some() && arguments.link.is_none() {
            let text = "it is of the chance of --link, which is not given";
            return Err(Failure::usage("--seed", text));
        }
        let link = arguments.link.clone().map(|link| {
            let seed = arguments.seed.map_or_else(entropy::seed, Ok).map_err(Failure::run)?;
            Ok::<_, Failure>((link, seed))
        });
        let link = link.transpose()?;
        let mtu = link.as_ref().map_or(TunConfig::DEFAULT_MTU, |(link, _)| link.mtu);
        let (tunables, wire) = stacks(arguments)?;
        let own = wire.as_ref().map_or(&[][..], |wire| wire.spec.addresses());
        let network = InsideNetwork::choose(own)?;
        let publish = arguments.publish.iter().map(|option| match &wire {
            None => Ok(vec![option.on_machine()]),
            Some(_) => option.on_wire(own),
        });
        let publish = publish.collect::<Result<Vec<_>, _>>()?.concat();
        let resolver = match &wire {
            None => Resolver::of_machine(),
            Some(_) => Resolver::beyond_machine(),
        };
        if resolver.servers.is_empty() {
            warn(
                "this machine's name servers are at its loopback addresses, which -w does not reach: the \
                 program finds no names",
            );
        }
        Ok(Self {
            destinations: Destinations {
                network,
                name_servers: resolver.servers.clone(),
                has_host_loopback: arguments.host_loopback,
            },
            inside: InsidePlan {
                program: program.clone(),
                arguments: rest.to_vec(),
                network,
                resolver,
                user: if arguments.map_root { User::Root } else { User::Same },
                mtu: arguments.mtu.unwrap_or(mtu),
                is_cut: link.is_some(),
                congestion: arguments.inside_cc.clone(),
            },
            publish,
            link,
            linger: arguments.linger,
            tunables,
            wire,
            pcap: arguments.capture.on_device(),
            summary: SummaryPlan {
                form: match (arguments.json, arguments.quiet) {
                    (true, _) => SummaryForm::Json,
                    (false, true) => SummaryForm::None,
                    (false, false) => SummaryForm::Text,
                },
                file: arguments.output.clone(),
            },
        })
    }
}

/// The rules of the stack inside, and the wire outside with those of the stack there, which are then the
/// typed ones.
fn stacks(arguments: &Arguments) -> Result<(Tunables, Option<WirePlan>), Failure> {
    let Arguments { wire, rules, routes, host_loopback, link, .. } = arguments;
    let mut inside = rules.rules(&[])?;
    let wire = match wire {
        None => {
            routes.none_without_wire()?;
            None
        }
        Some(_) if *host_loopback => {
            let text =
                "with -w, nothing leads to this machine's own services: leave one of them out";
            return Err(Failure::usage("--host-loopback", text));
        }
        Some(typed) => {
            let spec = WirePlan::parse(typed)?;
            let (mut rules, routes) = (std::mem::take(&mut inside), routes.plan(&spec)?);
            // The program learns what its own kernel would have told it.
            if !rules.has_profile() && is_unset(&rules, ICMP_UNREACHABLE) {
                rules.tunables.icmp_unreachable = UnreachableByIcmp::Hard;
            }
            Some(WirePlan { spec, typed: typed.clone(), rules, routes })
        }
    };
    // Hundreds of clients of one server are ordinary here.
    if is_unset(&inside, DIALS.0) {
        inside.tunables.max_dials_per_destination = DIALS.1;
    }
    if link.is_none() && is_unset(&inside, SEND_BUFFER.0) {
        let initial = inside.tunables.send_buffer;
        inside.tunables.send_buffer_max = SEND_BUFFER.1.max(initial);
    }
    Ok((inside.tunables, wire))
}

/// True if neither an option nor a profile sets this tunable.
fn is_unset(rules: &Rules, name: &str) -> bool {
    Tunables::named(name).iter().all(|info| rules.origin(info).is_none())
}

/// Effect of an ICMP error on an attempt to open: as on Linux, unless the user sets it.
const ICMP_UNREACHABLE: &str = "icmp.unreachable";
/// Undecided dials to one address and port that a shard holds, unless the user sets it: as many as to all.
const DIALS: (&str, u16) = ("max_dials_per_destination", 4096);
/// Data on its way to the program at most, bytes, unless the user sets it or a path is long: the program
/// acknowledges within microseconds, and more leaves the processor's cache before it is read.
const SEND_BUFFER: (&str, u32) = ("buffers.send.max", 1 << 20);
