//! Options that the loads have in common.

use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use whimbrel_apps::condition::Measure;
use whimbrel_apps::{Condition, Pace};
use whimbrel_base::Secrets;
use whimbrel_io::rules::Rules;
use whimbrel_io::{
    Clock, GroupKey, ShardPlan, ShardThreads, StackConfig, StackShard, Stop, WireSpec, entropy,
    stack,
};
use whimbrel_link::{LinkConfig, Probability};
use whimbrel_wire::{Address, Endpoint};

use crate::capture::{CaptureOption, CaptureOutcome, CapturePlan};
use crate::control::{ControlOption, ControlPlan};
use crate::failure::Failure;
use crate::routes::{self, RouteOption, RouteOptions};
use crate::rules::{RuleOptions, ServerRuleOptions, Shorthand};
use crate::shards::{ShardOptions, Work};
use crate::trace::{TraceOption, TracePlan};
use crate::{quantity, streams, wires};

/// The wire, and the settings of the stack.
#[derive(Args, Debug)]
pub(crate) struct StackOptions {
    /// The wire.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_LOADS)]
    pub(crate) wire: Option<String>,
    /// TCP implementation: this stack's, or the kernel's (short for -w kernel:).
    #[arg(long, value_enum, value_name = "STACK")]
    pub(crate) stack: Option<StackKind>,
    /// Seed of keys, ports and losses on mem: links; in virtual time the same seed gives the same run
    /// [default: 1 in virtual time, else random].
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// The clock of a mem: wire.
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = ClockKind::Real)]
    pub(crate) clock: ClockKind,
    /// By which rules the stack goes.
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    /// By which rules the server goes, if it is in this process.
    #[command(flatten)]
    pub(crate) server: ServerRuleOptions,
    #[command(flatten)]
    pub(crate) routes: RouteOptions,
    #[command(flatten)]
    pub(crate) capture: CaptureOption,
    #[command(flatten)]
    pub(crate) trace: TraceOption,
    #[command(flatten)]
    pub(crate) control: ControlOption,
    #[command(flatten)]
    pub(crate) shards: ShardOptions,
}

/// The TCP implementation.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StackKind {
    /// This stack's.
    User,
    /// The kernel's.
    Kernel,
}

/// Which time a wire in memory lives in.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClockKind {
    /// The machine's.
    Real,
    /// Simulated; it jumps to the next event, so a minute of TIME-WAIT takes no time.
    Virtual,
}

/// Output of the results.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Print one JSON document instead of text; =FMT chooses whose.
    #[arg(
        long,
        value_name = "FMT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "whimbrel"
    )]
    pub(crate) json: Option<String>,
    /// Print JSON Lines: an object for each interval as it ends, then the document.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) json_stream: bool,
    /// Print the intervals as CSV instead of text.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Write the result to this file.
    #[arg(id = "output_file", short, long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with code 3 if this is true of the result, for example 'p99>50ms || errors>0.1%'.
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_if: Option<String>,
    /// Print only errors; with --json, --json-stream, --csv or -o also the result.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print also every counter that is not 0, and a line each second from a server; -vv: all counters,
    /// with descriptions.
    #[arg(short, long, action = ArgAction::Count, conflicts_with_all = ["quiet", "csv"])]
    pub(crate) verbose: u8,
}

/// Amount of output in addition to the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Detail {
    Plain,
    /// Every counter that counted something.
    Counters,
    /// Each counter, with its description.
    Explained,
}

/// Display while a command runs.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct ScreenOptions {
    /// Show no screen and no progress line on a terminal.
    #[arg(long)]
    pub(crate) no_tui: bool,
}

/// Artificial delays of a server.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct PaceOptions {
    /// The server waits this long before each response; other connections continue meanwhile.
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    think: Option<Duration>,
    /// The server waits this long before it accepts each connection, so its accept queue fills.
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    accept_delay: Option<Duration>,
    /// The server sends at most this many responses per second, over all connections; requests queue.
    #[arg(long, value_name = "RATE", value_parser = quantity::service_rate)]
    service_rate: Option<f64>,
}

impl PaceOptions {
    /// Returns the pace of a server that is in this process unless there is a target.
    pub(crate) fn pace(&self, target: Option<&str>) -> Result<Pace, Failure> {
        let Self { think, accept_delay, service_rate } = *self;
        let given = [
            ("--think", think.is_some()),
            ("--accept-delay", accept_delay.is_some()),
            ("--service-rate", service_rate.is_some()),
        ];
        let given = given.iter().find(|(_, is_given)| *is_given);
        if let (Some((option, _)), Some(target)) = (given, target) {
            let text =
                format!("only for servers: leave it out here, and set it at the server {target}");
            return Err(Failure::usage(option, text));
        }
        Ok(Pace {
            accept: accept_delay.unwrap_or_default(),
            think: think.unwrap_or_default(),
            work: service_rate.map(Pace::work_at).unwrap_or_default(),
        })
    }
}

/// The option by which a server answers later than it could, if it does.
pub(crate) const fn answering_option(pace: Pace) -> Option<&'static str> {
    match pace {
        Pace { work, .. } if !work.is_zero() => Some("--service-rate"),
        Pace { think, .. } if !think.is_zero() => Some("--think"),
        Pace { .. } => None,
    }
}

/// The stack and the wire that [`StackOptions`] mean, checked against each other.
#[derive(Debug)]
pub(crate) struct StackSetup {
    pub(crate) wire: WireSpec,
    /// As it was typed.
    pub(crate) typed: String,
    /// True if it is the default.
    pub(crate) by_default: bool,
    /// The rules of the stack.
    pub(crate) rules: Rules,
    /// Those of the server in this process, if they are others.
    pub(crate) server_rules: Option<Rules>,
    /// Path metrics.
    pub(crate) routes: Vec<RouteOption>,
    /// Seed of chance, unless the system gives it.
    pub(crate) seed: Option<u64>,
    /// Real or virtual time.
    pub(crate) clock: ClockKind,
    /// The capture to be written.
    pub(crate) pcap: Option<CapturePlan>,
    /// The trace to be written.
    pub(crate) trace: Option<TracePlan>,
    /// The control socket to be served.
    pub(crate) control: ControlPlan,
    /// The client's addresses on a mem: wire in addition to its first.
    pub(crate) more: Vec<Address>,
    /// Number of the stack's threads: the wire has a queue for each.
    pub(crate) shards: u16,
    /// The processors that they run on, if they are to stay on some.
    pub(crate) processors: Vec<usize>,
}

impl StackSetup {
    /// Checks that the client has, or can have, these local addresses, and adds them.
    pub(crate) fn add_addresses(&mut self, local: &[IpAddr]) -> Result<(), Failure> {
        for ip in local {
            let address = Address::from(*ip);
            let has = self.wire.addresses().iter().any(|own| own.addr == address);
            let refused = match (self.wire.mem_link(), self.wire.is_kernel()) {
                (Some(_), _) if wires::may_be_clients(*ip) => {
                    self.more.push(address);
                    None
                }
                (Some(_), _) => Some(
                    "over mem: use addresses of 10.0.0.0/24 other than the server's 10.0.0.2"
                        .to_owned(),
                ),
                (None, true) => UdpSocket::bind((*ip, 0)).err().map(|error| {
                    format!("{error}; give addresses of this machine's (`ip address` lists them)")
                }),
                (None, false) => (!has)
                    .then(|| format!("this stack does not have it: add addr={ip}/… to the wire")),
            };
            if let Some(text) = refused {
                return Err(Failure::usage("--local-addr", format!("{ip}: {text}")));
            }
        }
        Ok(())
    }
}

impl StackSetup {
    /// The run ends after a time, and nothing in it waits but for the link: in virtual time one that
    /// takes none would never end.
    pub(crate) fn check_that_time_passes(&self) -> Result<(), Failure> {
        let Some(link) = self.wire.mem_link() else { return Ok(()) };
        // Only losses wait for retransmissions.
        let takes_time = |link: &LinkConfig| {
            link.rate.is_some()
                || !(link.delay + link.host_delay + link.jitter + link.ack_batch).is_zero()
                || link.loss == Probability::ONE
        };
        if self.clock == ClockKind::Real || takes_time(link) || takes_time(&link.back()) {
            return Ok(());
        }
        let text = "this link has no delay, so virtual time does not advance and the run would \
                    not end: add a delay, for example -w mem:delay=1ms, or use a number (-n)";
        Err(Failure::usage("--clock", text))
    }

    /// Reports the TCP implementation, if it was not given and is not this stack's.
    pub(crate) fn announce(&self, options: &OutputOptions) {
        if self.by_default && self.wire.is_kernel() && !options.quiet {
            let text = "note: using the kernel's sockets because there is no -w; use -w tun:… for \
                        this stack";
            streams::tell(&format!("{text}\n"));
        }
    }

    /// The keys of the stack: from the seed, if one was given, else from the system's entropy.
    pub(crate) fn secrets(&self) -> Result<Secrets, Failure> {
        match self.seed {
            Some(seed) => Ok(Secrets::from_seed(seed)),
            None => entropy::secrets().map_err(Failure::run),
        }
    }

    /// The stack, up on its wire, and captured if it is to be.
    pub(crate) fn open(
        &self,
        clock: Clock,
        done: &Stop,
        group: Option<GroupKey>,
    ) -> Result<Vec<StackShard>, Failure> {
        let tunables = self.rules.tunables.clone();
        let mut config = StackConfig::new(&self.wire, tunables, self.secrets()?);
        config.routes.extend(routes::known(&self.routes, &config.addresses, &config.routes)?);
        let shards = stack::open(&self.wire, StackConfig { group, ..config }, clock, done)?;
        let shards = match &self.pcap {
            Some(plan) => plan.tap(shards, &self.typed, None)?,
            None => shards,
        };
        match &self.trace {
            Some(plan) => plan.of(shards),
            None => Ok(shards),
        }
    }

    /// Fails with code 1 if a requested capture or trace is incomplete: a command's last step.
    pub(crate) fn judge_outcomes(&self) -> Result<(), Failure> {
        self.outcomes().try_for_each(CaptureOutcome::judge)
    }

    /// The outcomes of captures and traces of a run.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &CaptureOutcome> {
        let capture = self.pcap.as_ref().map(|plan| &plan.outcome);
        capture.into_iter().chain(self.trace.as_ref().map(|plan| &plan.outcome))
    }

    /// The threads that its shards run on.
    pub(crate) fn threads<'s>(&'s self, stop: &'s Stop) -> ShardThreads<'s> {
        ShardThreads { stop, processors: &self.processors }
    }

    /// Checks that the target is another host: a stack's packets to itself do not reach its wire.
    pub(crate) fn check_target(&self, target: Endpoint) -> Result<(), Failure> {
        if self.wire.addresses().iter().any(|own| own.addr == target.addr) {
            let text = format!(
                "{target} is this stack's own address on {}: use the other side's",
                self.typed
            );
            return Err(Failure::usage("TARGET", text));
        }
        Ok(())
    }
}

impl StackOptions {
    /// Returns the setup for a command with a target, or without one, and this much work.
    pub(crate) fn setup(
        &self,
        target: Option<&str>,
        shorthands: &[Shorthand],
        work: Work,
    ) -> Result<StackSetup, Failure> {
        let (typed, by_default) = match (self.typed_wire()?, target) {
            (Some(wire), _) => (wire.to_owned(), false),
            (None, None) => ("mem:".into(), true),
            (None, Some(target)) if self.stack == Some(StackKind::User) => {
                let text = format!(
                    "user: this stack needs a wire to reach {target}: add one, for example -w \
                     tun:whim0,addr=10.9.0.2/24,host=10.9.0.1 (needs root)"
                );
                return Err(Failure::usage("--stack", text));
            }
            (None, Some(_)) => (KERNEL.into(), true),
        };
        let parts = self.parts(&typed, shorthands);
        let setup = parts.setup(Some(work), |wire| self.check(wire, target))?;
        self.server.check(setup.wire.mem_link().is_some())?;
        let server_rules = self.server.rules(&setup.rules, shorthands)?;
        Ok(StackSetup { by_default, clock: self.clock, server_rules, ..setup })
    }

    /// Returns the parts of the setup on this wire.
    pub(crate) fn parts<'a>(
        &'a self,
        wire: &'a str,
        shorthands: &'a [Shorthand],
    ) -> SetupParts<'a> {
        let Self { seed, rules, routes, shards, capture, trace, control, .. } = self;
        let trace = Some(trace);
        SetupParts { wire, seed: *seed, rules, shorthands, routes, shards, capture, trace, control }
    }

    /// The wire that was typed, if one was.
    pub(crate) fn typed_wire(&self) -> Result<Option<&str>, Failure> {
        let text = match (self.wire.as_deref(), self.stack) {
            (None | Some(KERNEL), Some(StackKind::Kernel)) => return Ok(Some(KERNEL)),
            (Some(KERNEL), Some(StackKind::User)) => {
                "user: contradicts -w kernel:: leave one of them out".into()
            }
            (Some(wire), Some(StackKind::Kernel)) => {
                format!("kernel: {wire} is a wire of this stack: leave one of them out")
            }
            (wire, _) => return Ok(wire),
        };
        Err(Failure::usage("--stack", text))
    }

    fn check(&self, wire: &WireSpec, target: Option<&str>) -> Result<(), Failure> {
        let in_memory = wire.mem_link().is_some();
        match target {
            Some(target) if in_memory => {
                let text = format!(
                    "a mem: wire connects only this process: leave {target} out, or use -w kernel: \
                     or -w tun:…"
                );
                return Err(Failure::usage("--wire", text));
            }
            None if !in_memory && !wire.is_kernel() => {
                let text = "on this wire the server is another program: add its address";
                return Err(Failure::usage("--wire", text));
            }
            _ => {}
        }
        if self.clock == ClockKind::Virtual && !in_memory {
            let text = "only a mem: wire has virtual time: leave it out, or use -w mem:";
            return Err(Failure::usage("--clock", text));
        }
        Ok(())
    }
}

/// Parts of the setup: the wire, and the settings.
pub(crate) struct SetupParts<'a> {
    pub(crate) wire: &'a str,
    pub(crate) seed: Option<u64>,
    pub(crate) rules: &'a RuleOptions,
    pub(crate) shorthands: &'a [Shorthand],
    pub(crate) routes: &'a RouteOptions,
    pub(crate) shards: &'a ShardOptions,
    pub(crate) capture: &'a CaptureOption,
    /// If the command has one.
    pub(crate) trace: Option<&'a TraceOption>,
    pub(crate) control: &'a ControlOption,
}

impl SetupParts<'_> {
    /// Returns the setup of these parts for this much work, if `check` accepts the wire.
    pub(crate) fn setup(
        self,
        work: Option<Work>,
        check: impl FnOnce(&WireSpec) -> Result<(), Failure>,
    ) -> Result<StackSetup, Failure> {
        let wire: WireSpec = self.wire.parse().map_err(|error| Failure::usage("--wire", error))?;
        check(&wire)?;
        if self.seed.is_some() && wire.is_kernel() {
            return Err(Failure::usage("--seed", "the kernel has no seed: leave it out"));
        }
        let rules = self.rules.rules_on(&wire, self.shorthands)?;
        let routes = self.routes.plan(&wire)?;
        let pcap = self.capture.pcap(&wire)?;
        let trace = self.trace.map(|trace| trace.plan(&wire)).transpose()?.flatten();
        let control = self.control.plan(&wire)?;
        let ShardPlan { wire, shards } = self.shards.plan(wire, work)?;
        Ok(StackSetup {
            wire,
            typed: self.wire.to_owned(),
            by_default: false,
            rules,
            server_rules: None,
            routes,
            seed: self.seed,
            clock: ClockKind::Real,
            pcap,
            trace,
            control,
            more: Vec::new(),
            shards,
            processors: self.shards.processors()?,
        })
    }
}

impl OutputOptions {
    /// Amount of output in addition to the result.
    pub(crate) const fn detail(&self) -> Detail {
        match self.verbose {
            0 => Detail::Plain,
            1 => Detail::Counters,
            _ => Detail::Explained,
        }
    }

    /// The condition of `--fail-if`, whose names are among `known`.
    pub(crate) fn condition(
        &self,
        known: &[(&str, Measure)],
    ) -> Result<Option<Condition>, Failure> {
        let Some(text) = &self.fail_if else { return Ok(None) };
        let condition: Condition =
            text.parse().map_err(|error| Failure::usage("--fail-if", error))?;
        condition.check(known).map_err(|error| Failure::usage("--fail-if", error))?;
        Ok(Some(condition))
    }

    /// The format of `--json`, which is one of `known`.
    pub(crate) fn format(&self, known: &[&'static str]) -> Result<Option<&'static str>, Failure> {
        let Some(typed) = &self.json else { return Ok(None) };
        match known.iter().find(|format| *format == typed) {
            Some(format) => Ok(Some(format)),
            None => {
                let text = format!(
                    "{typed:?} is not a format of this command; use one of \
                                    {}",
                    known.join(", ")
                );
                Err(Failure::usage("--json", text))
            }
        }
    }
}

/// The wire that is none.
const KERNEL: &str = "kernel:";

/// The value of an option that is on or off.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// The side that closes a connection first.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closer {
    /// The server closes first.
    Server,
    /// This side closes first.
    Client,
    /// This side resets the connection: no TIME-WAIT.
    Rst,
}
