//! Typed arguments become a plan.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use whimbrel_io::rules::Rules;
use whimbrel_io::{TunConfig, entropy};
use whimbrel_link::LinkConfig;
use whimbrel_tcp::Tunables;

use super::Arguments;
use super::destinations::Destinations;
use super::network::InsideNetwork;
use super::publish::Published;
use super::resolver::Resolver;
use crate::capture::CapturePlan;
use crate::failure::Failure;

/// A program and its network.
pub(super) struct RunPlan {
    pub(super) inside: InsidePlan,
    pub(super) destinations: Destinations,
    pub(super) publish: Vec<Published>,
    /// The path between the program and the gateway, if it is impaired, and its seed.
    pub(super) link: Option<(LinkConfig, u64)>,
    /// Time for open flows after the program's end.
    pub(super) linger: Duration,
    pub(super) rules: Rules,
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
        let mut rules = arguments.rules.rules(&[])?;
        // Hundreds of clients of one server are ordinary here.
        if Tunables::named(DIALS.0).iter().all(|info| rules.origin(info).is_none()) {
            rules.tunables.max_dials_per_destination = DIALS.1;
        }
        let network = InsideNetwork::choose()?;
        let resolver = Resolver::of_machine();
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
            publish: arguments.publish.clone(),
            link,
            linger: arguments.linger,
            rules,
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

/// Undecided dials to one address and port that a shard holds, unless the user sets it: as many as to all.
const DIALS: (&str, u16) = ("max_dials_per_destination", 4096);
