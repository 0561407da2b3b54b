//! `whimbrel`: the command line. Each subcommand has its own file.
#![forbid(unsafe_code)]

use std::env;
use std::process::{self, ExitCode};

use anstream::ColorChoice;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use failure::Failure;
use options::StackOptions;
use rules::{RuleOptions, ServerRuleOptions, Shorthand};
use whimbrel_base::Foreign;
use whimbrel_io::signals::survive_file_limits;

mod attach;
mod bulk;
mod capture;
mod compare;
mod congestion;
mod control;
mod crr;
mod descriptors;
mod doctor;
mod drive;
mod examples;
mod explain;
mod failure;
mod forward;
mod help;
mod html;
mod lab;
mod link;
mod load;
mod machine;
mod need;
mod netstat;
mod nstat;
mod options;
mod output;
mod page_file;
mod pages;
mod pcap;
mod proc;
mod progress;
mod quantity;
mod refusals;
mod report;
mod routes;
mod rules;
mod run;
mod runs;
mod script;
mod series;
mod serve;
mod serving;
mod shards;
mod sim;
mod size;
mod ss;
mod status;
mod streams;
mod sysctl;
mod target;
mod trace;
mod typed;
mod wildcard;
mod wires;
mod wrap;

/// A TCP/IP stack in user space.
///
/// Exit codes: 0 success; 1 the command could not start or finish; 2 usage error; 3 a script, a seed or
/// a lab case failed, or --fail-if is true; 4 a privilege or a device is missing; 5 the machine was too
/// busy to measure a lab case.
///
/// SIGINT, SIGTERM and SIGHUP end a command; it prints its result so far. At SIGUSR1 it prints its
/// progress and continues.
#[derive(Parser)]
#[command(
    name = "whimbrel",
    version,
    max_term_width = wrap::WIDTH,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Command {
    #[command(subcommand)]
    tool: Tool,
    /// When to use colours; auto respects NO_COLOR.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t = Color::Auto,
        display_order = 900
    )]
    color: Color,
}

/// Use of colours.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Subcommand)]
enum Tool {
    /// Serve a fixed body or files over HTTP/1.1 or HTTP/2 on the stack.
    #[command(after_help = examples::SERVE)]
    Serve(serve::Arguments),
    /// Accept connections on the stack, and carry them on to a server on the kernel's sockets.
    #[command(after_help = examples::FORWARD)]
    Forward(forward::Arguments),
    /// Run a program in a network of its own, whose gateway is the stack; needs no root.
    #[command(after_help = examples::RUN)]
    Run(run::Arguments),
    /// Run packetdrill scripts against the stack or this machine's kernel.
    #[command(subcommand)]
    Script(script::Command),
    /// Load an HTTP/1.1 server and measure it; without a URL, a server in this process.
    #[command(after_help = examples::LOAD)]
    Load(load::Arguments),
    /// Measure short connections and transactions, as netperf's TCP_CRR, TCP_RR and TCP_CC do.
    #[command(after_help = examples::CRR)]
    Crr(crr::Arguments),
    /// Measure bulk transfer, as ttcp and iperf3 do.
    #[command(after_help = examples::BULK)]
    Bulk(bulk::Arguments),
    /// Capture packets as pcapng, with the reason for each drop and each state change.
    #[command(after_help = examples::PCAP)]
    Pcap(pcap::Arguments),
    /// Explain captures: what cost TCP's connections time, in which frames, and what to change.
    #[command(after_help = examples::EXPLAIN)]
    Explain(explain::Arguments),
    /// Join two TUN interfaces by a path with a rate, delay, queue and losses, for any TCP.
    #[command(after_help = examples::LINK)]
    Link(link::Arguments),
    /// Simulate networks in virtual time: check random networks, or measure throughput of paths.
    #[command(subcommand)]
    Sim(sim::Command),
    /// Print the stack's tunables, or those of another stack's profile; read or set those of a running stack.
    #[command(after_help = examples::SYSCTL)]
    Sysctl(sysctl::Arguments),
    /// List the sockets of a running stack, with iproute2's columns and filters.
    #[command(after_help = examples::SS)]
    Ss(ss::Arguments),
    /// Print the counters of a running stack under Linux' names, as nstat does.
    #[command(after_help = examples::NSTAT)]
    Nstat(nstat::Arguments),
    /// Print the counters of a running stack in the words of netstat -s.
    #[command(after_help = examples::NETSTAT)]
    Netstat(netstat::Arguments),
    /// Reproduce five known TCP failures, with the affected stack's settings and with Whimbrel's.
    #[command(after_help = examples::LAB)]
    Lab(lab::Arguments),
    /// Compare two JSON documents of one command: options, figures and distributions of times.
    #[command(after_help = examples::COMPARE)]
    Compare(compare::Arguments),
    /// Check that this machine has what the commands need, and say how to get what is missing.
    #[command(after_help = examples::DOCTOR)]
    Doctor(doctor::Arguments),
    /// Print the completion script of a shell.
    #[command(after_help = examples::COMPLETIONS)]
    Completions(pages::Completions),
    /// Print a manual page, or write the pages of all commands.
    #[command(after_help = examples::MAN)]
    Man(pages::Manual),
}

impl Tool {
    /// By which rules its stack goes, if it has one.
    fn rules(&self) -> Option<AskedRules<'_>> {
        let alone = |rules, shorthands| AskedRules { rules, server: None, shorthands };
        let both = AskedRules::of;
        Some(match self {
            Self::Serve(arguments) => alone(&arguments.rules, arguments.shorthands()),
            Self::Forward(arguments) => alone(&arguments.rules, Vec::new()),
            Self::Run(arguments) => alone(&arguments.rules, Vec::new()),
            Self::Script(script::Command::Run(arguments)) => alone(&arguments.rules, Vec::new()),
            Self::Load(arguments) => both(&arguments.setup, arguments.shorthands()),
            Self::Crr(arguments) => both(&arguments.setup, arguments.shorthands()),
            Self::Bulk(arguments) => both(&arguments.setup, arguments.shorthands()),
            Self::Pcap(arguments) => alone(&arguments.rules, Vec::new()),
            Self::Sysctl(arguments) => alone(&arguments.rules, Vec::new()),
            Self::Explain(_)
            | Self::Ss(_)
            | Self::Nstat(_)
            | Self::Netstat(_)
            | Self::Link(_)
            | Self::Lab(_)
            | Self::Compare(_)
            | Self::Sim(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => return None,
        })
    }
}

/// The rule options of a command.
struct AskedRules<'a> {
    rules: &'a RuleOptions,
    /// Of the server, where that may be in this process.
    server: Option<&'a ServerRuleOptions>,
    shorthands: Vec<Shorthand>,
}

impl<'a> AskedRules<'a> {
    /// Of a command that may have both hosts in this process.
    const fn of(setup: &'a StackOptions, shorthands: Vec<Shorthand>) -> Self {
        Self { rules: &setup.rules, server: Some(&setup.server), shorthands }
    }
}

fn main() -> ExitCode {
    let command = help::with_brief_help(taking_negatives(Command::command()));
    let matches = command.clone().try_get_matches();
    let matches = matches.unwrap_or_else(|error| refuse(command, &error));
    // A match of this definition can be read by it.
    matches.subcommand_name().into_iter().for_each(control::name_command);
    let command = Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match command.color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
    // Where that is not to be had, a limit is met as it always was.
    let _ = survive_file_limits();
    status::install();
    match perform(&command.tool) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints the error of the command line, or the requested help, and exits. File names from a shell may
/// be chosen by others, so the error shows the line with them escaped.
fn refuse(mut command: clap::Command, error: &clap::Error) -> ! {
    let words = env::args_os().map(|word| Foreign::new(word.as_encoded_bytes()).to_string());
    if let Err(error) = command.try_get_matches_from_mut(words) {
        error.exit();
    }
    // After escaping there is no such argument: only the kind of the error is known.
    streams::tell(&format!("error: {}\n", error.kind()));
    process::exit(error.exit_code())
}

/// The command, with negative numbers as values that options refuse, not as other options.
fn taking_negatives(command: clap::Command) -> clap::Command {
    let is_quantity = |option: &clap::Arg| {
        let names = option.get_value_names().unwrap_or_default();
        names.iter().any(|name| QUANTITIES.contains(&name.as_str()))
    };
    command
        .mut_args(|option| match is_quantity(&option) {
            true => option.allow_hyphen_values(true),
            false => option,
        })
        .mut_subcommands(taking_negatives)
}

/// Value names of numbers.
const QUANTITIES: [&str; 5] = ["N", "TIME", "SIZE", "RATE", "BYTES"];

fn perform(tool: &Tool) -> Result<(), Failure> {
    if let Some(AskedRules { rules, server, shorthands }) = tool.rules()
        && let Some(question) = rules.question()
    {
        return output::print(&rules.answer(question, server, &shorthands)?);
    }
    match tool {
        Tool::Serve(arguments) => serve::run(arguments),
        Tool::Forward(arguments) => forward::run(arguments),
        Tool::Run(arguments) => run::run(arguments),
        Tool::Script(command) => script::run(command),
        Tool::Load(arguments) => load::run(arguments),
        Tool::Crr(arguments) => crr::run(arguments),
        Tool::Bulk(arguments) => bulk::run(arguments),
        Tool::Pcap(arguments) => pcap::run(arguments),
        Tool::Explain(arguments) => explain::run(arguments),
        Tool::Link(arguments) => link::run(arguments),
        Tool::Lab(arguments) => lab::run(arguments),
        Tool::Compare(arguments) => compare::run(arguments),
        Tool::Sim(command) => sim::run(command),
        Tool::Sysctl(arguments) => sysctl::run(arguments),
        Tool::Ss(arguments) => ss::run(arguments),
        Tool::Nstat(arguments) => nstat::run(arguments),
        Tool::Netstat(arguments) => netstat::run(arguments),
        Tool::Doctor(arguments) => doctor::run(arguments),
        Tool::Completions(arguments) => pages::completions(arguments, Command::command()),
        Tool::Man(arguments) => pages::manual(arguments, Command::command()),
    }
}

#[cfg(test)]
mod tests;
