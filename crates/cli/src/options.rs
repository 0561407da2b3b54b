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
use crate::failure::Failure;
use crate::routes::{self, RouteOption, RouteOptions};
use crate::rules::{RuleOptions, ServerRuleOptions, Shorthand};
use crate::shards::{ShardOptions, Work};
use crate::trace::{TraceOption, TracePlan};
use crate::{quantity, streams, wires};

/// Where frames go, and by which rules.
#[derive(Args, Debug)]
pub(crate) struct StackOptions {
    /// Where frames go.
    #[arg(short, long, value_name = "SPEC", help = wires::FOR_LOADS)]
    pub(crate) wire: Option<String>,
    /// Which TCP: this stack's, or the kernel's (short for -w kernel:).
    #[arg(long, value_enum, value_name = "STACK")]
    pub(crate) stack: Option<StackKind>,
    /// Seed of keys, ports and what mem: links lose: in virtual time the same seed gives the same
    /// run [default: 1 in virtual time, else random].
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
    pub(crate) shards: ShardOptions,
}

/// Whose TCP.
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
    /// Simulated, which jumps to what is due next: a minute of TIME-WAIT takes no time.
    Virtual,
}

/// What to do with what was measured.
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
    /// Exit with code 3 if this is true of the result, as in 'p99>50ms || errors>0.1%'.
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_if: Option<String>,
    /// Print only errors; with --json, --json-stream, --csv or -o the result as well.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print every counter that is not 0 as well, and of a server a line each second; -vv: all
    /// counters, and what they count.
    #[arg(short, long, action = ArgAction::Count, conflicts_with_all = ["quiet", "csv"])]
    pub(crate) verbose: u8,
}

/// How much is said beside a result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Detail {
    Plain,
    /// Every counter that counted something.
    Counters,
    /// Each counter, and what it counts.
    Explained,
}

/// What is drawn while a command runs.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct ScreenOptions {
    /// Draw no screen and no line of progress on a terminal.
    #[arg(long)]
    pub(crate) no_tui: bool,
}

/// How slowly a server answers, on purpose.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(crate) struct PaceOptions {
    /// The server waits this long before each response; other connections go on meanwhile.
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    think: Option<Duration>,
    /// The server waits this long before it accepts each connection, so that its accept queue
    /// fills.
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    accept_delay: Option<Duration>,
    /// The server has time for this many responses per second, whatever the number of connections;
    /// requests wait for their turn.
    #[arg(long, value_name = "RATE", value_parser = quantity::service_rate)]
    service_rate: Option<f64>,
}

impl PaceOptions {
    /// What they mean for a server that is in this process unless there is a target.
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
                format!("it is a server's: leave it out here, and give it to that at {target}");
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
    /// Whether nobody typed it.
    pub(crate) by_default: bool,
    /// The rules of the stack.
    pub(crate) rules: Rules,
    /// Those of the server in this process, if they are others.
    pub(crate) server_rules: Option<Rules>,
    /// What is known of paths.
    pub(crate) routes: Vec<RouteOption>,
    /// Where chance comes from, if not from the system.
    pub(crate) seed: Option<u64>,
    /// Whether time is real or virtual.
    pub(crate) clock: ClockKind,
    /// The capture to be written.
    pub(crate) pcap: Option<CapturePlan>,
    /// The trace to be written.
    pub(crate) trace: Option<TracePlan>,
    /// The client's addresses on a mem: wire beside its first.
    pub(crate) more: Vec<Address>,
    /// How many threads the stack is on: the wire has a queue for each.
    pub(crate) shards: u16,
    /// The processors that they run on, if they are to stay on some.
    pub(crate) processors: Vec<usize>,
}

impl StackSetup {
    /// The client is to use these addresses of its own: whether it has them, or can.
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
                    "over mem: give addresses of 10.0.0.0/24, where the server has 10.0.0.2"
                        .to_owned(),
                ),
                (None, true) => UdpSocket::bind((*ip, 0)).err().map(|error| {
                    format!("{error}; give addresses of this machine's (`ip address` lists them)")
                }),
                (None, false) => (!has).then(|| {
                    format!("this stack has it only if the wire says addr={ip}/… as well")
                }),
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
        // Of what is lost, and of nothing else, retransmissions are waited for.
        let takes_time = |link: &LinkConfig| {
            link.rate.is_some()
                || !(link.delay + link.host_delay + link.jitter + link.ack_batch).is_zero()
                || link.loss == Probability::ONE
        };
        if self.clock == ClockKind::Real || takes_time(link) || takes_time(&link.back()) {
            return Ok(());
        }
        let text = "nothing takes time on this link, so that a run which ends after a time never \
                    would: give it a delay, as in -w mem:delay=1ms, or end the run after a number (-n)";
        Err(Failure::usage("--clock", text))
    }

    /// Says whose TCP it is, where that was left out and is not this stack's.
    pub(crate) fn announce(&self, options: &OutputOptions) {
        if self.by_default && self.wire.is_kernel() && !options.quiet {
            let text = "note: over the kernel's sockets, since there is no -w; -w tun:… takes \
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

    /// Fails with code 1 if a capture or a trace was asked for and is not whole: the last that a command
    /// does.
    pub(crate) fn judge_outcomes(&self) -> Result<(), Failure> {
        self.outcomes().try_for_each(CaptureOutcome::judge)
    }

    /// What becomes of whatever is written beside a run.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &CaptureOutcome> {
        let capture = self.pcap.as_ref().map(|plan| &plan.outcome);
        capture.into_iter().chain(self.trace.as_ref().map(|plan| &plan.outcome))
    }

    /// The threads that its shards run on.
    pub(crate) fn threads<'s>(&'s self, stop: &'s Stop) -> ShardThreads<'s> {
        ShardThreads { stop, processors: &self.processors }
    }

    /// The target must be somebody else: of what a stack sends to itself its wire sees nothing.
    pub(crate) fn check_target(&self, target: Endpoint) -> Result<(), Failure> {
        if self.wire.addresses().iter().any(|own| own.addr == target.addr) {
            let text = format!(
                "{target} is this stack's own address on {}: give that of the other side",
                self.typed
            );
            return Err(Failure::usage("TARGET", text));
        }
        Ok(())
    }
}

impl StackOptions {
    /// What they mean for a command with a target, or with none, and so much work.
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
                    "user: this stack reaches {target} over a wire of its own: give it, as in -w \
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

    /// The same on this wire.
    pub(crate) fn parts<'a>(
        &'a self,
        wire: &'a str,
        shorthands: &'a [Shorthand],
    ) -> SetupParts<'a> {
        let Self { seed, rules, routes, shards, capture, trace, .. } = self;
        let trace = Some(trace);
        SetupParts { wire, seed: *seed, rules, shorthands, routes, shards, capture, trace }
    }

    /// The wire that was typed, if one was.
    pub(crate) fn typed_wire(&self) -> Result<Option<&str>, Failure> {
        let text = match (self.wire.as_deref(), self.stack) {
            (None | Some(KERNEL), Some(StackKind::Kernel)) => return Ok(Some(KERNEL)),
            (Some(KERNEL), Some(StackKind::User)) => {
                "user: -w kernel: takes the kernel's: leave one of them out".into()
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
                    "nobody but this process is on a mem: wire: leave {target} out, or give \
                     -w kernel: or -w tun:…"
                );
                return Err(Failure::usage("--wire", text));
            }
            None if !in_memory && !wire.is_kernel() => {
                let text = "on this wire the other side is another program: give its address";
                return Err(Failure::usage("--wire", text));
            }
            _ => {}
        }
        if self.clock == ClockKind::Virtual && !in_memory {
            let text = "only a mem: wire can live in virtual time: leave it out, or give -w mem:";
            return Err(Failure::usage("--clock", text));
        }
        Ok(())
    }
}

/// What says where frames go, and by which rules.
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
}

impl SetupParts<'_> {
    /// What they mean together, for so much work, if `check` likes the wire.
    pub(crate) fn setup(
        self,
        work: Option<Work>,
        check: impl FnOnce(&WireSpec) -> Result<(), Failure>,
    ) -> Result<StackSetup, Failure> {
        let wire: WireSpec = self.wire.parse().map_err(|error| Failure::usage("--wire", error))?;
        check(&wire)?;
        if self.seed.is_some() && wire.is_kernel() {
            return Err(Failure::usage("--seed", "the kernel takes no seed: leave it out"));
        }
        let rules = self.rules.rules_on(&wire, self.shorthands)?;
        let routes = self.routes.plan(&wire)?;
        let pcap = self.capture.pcap(&wire)?;
        let trace = self.trace.map(|trace| trace.plan(&wire)).transpose()?.flatten();
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
            more: Vec::new(),
            shards,
            processors: self.shards.processors()?,
        })
    }
}

impl OutputOptions {
    /// How much is said beside the result.
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
                let text = format!("{typed:?} is no format here; there are {}", known.join(", "));
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

/// Who ends a connection.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closer {
    /// The server closes first.
    Server,
    /// This side closes first.
    Client,
    /// This side resets the connection: no TIME-WAIT.
    Rst,
}
