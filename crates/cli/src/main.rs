//! `whimbrel`: the command line. What each subcommand does stands in its own file.
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

mod bulk;
mod capture;
mod compare;
mod congestion;
mod crr;
mod descriptors;
mod doctor;
mod drive;
mod examples;
mod failure;
mod help;
mod html;
mod lab;
mod link;
mod load;
mod machine;
mod need;
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
mod runs;
mod script;
mod series;
mod serve;
mod serving;
mod shards;
mod sim;
mod size;
mod status;
mod streams;
mod sysctl;
mod target;
mod trace;
mod typed;
mod wires;
mod wrap;

/// A TCP/IP stack in user space.
///
/// Exit codes: 0 success; 1 it could not run, or could not finish; 2 usage error; 3 it ran, and a
/// script, a seed or a case of the lab failed, or --fail-if is true; 4 a privilege or a device is missing;
/// 5 a case of the lab found the machine too busy to measure.
///
/// SIGINT, SIGTERM and SIGHUP end a command, which prints what was done so far; SIGUSR1 has it say how
/// far it is.
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
    /// When to write in colours; auto respects NO_COLOR.
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

/// Whether to write in colours.
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
    /// Serve HTTP/1.1 or HTTP/2 on the stack: a fixed body, or files.
    #[command(after_help = examples::SERVE)]
    Serve(serve::Arguments),
    /// Run packet scripts, in the language of packetdrill, against the stack or this kernel.
    #[command(subcommand)]
    Script(script::Command),
    /// Load an HTTP/1.1 server and measure it; without a URL, one in this process.
    #[command(after_help = examples::LOAD)]
    Load(load::Arguments),
    /// Measure short connections and transactions, as netperf's TCP_CRR, TCP_RR and TCP_CC do.
    #[command(after_help = examples::CRR)]
    Crr(crr::Arguments),
    /// Measure bulk transfer, as ttcp and iperf3 do.
    #[command(after_help = examples::BULK)]
    Bulk(bulk::Arguments),
    /// Capture packets as pcapng, with the reason of each drop and each change of state.
    #[command(after_help = examples::PCAP)]
    Pcap(pcap::Arguments),
    /// Join two TUN interfaces by a path with rate, delay, queue and losses, for any TCP.
    #[command(after_help = examples::LINK)]
    Link(link::Arguments),
    /// Run networks in virtual time: check every byte of random ones, or measure what paths carry.
    #[command(subcommand)]
    Sim(sim::Command),
    /// Print the rules of the stack, or of another's profile, and where each is from.
    #[command(after_help = examples::SYSCTL)]
    Sysctl(sysctl::Arguments),
    /// Show cases of TCP failing people, by the rules of old stacks and by this stack's own.
    #[command(after_help = examples::LAB)]
    Lab(lab::Arguments),
    /// Compare two documents of one command: what was asked for, figures, and how times are distributed.
    #[command(after_help = examples::COMPARE)]
    Compare(compare::Arguments),
    /// Check what commands need of this machine, and how to get what is missing.
    #[command(after_help = examples::DOCTOR)]
    Doctor(doctor::Arguments),
    /// Print the completion script of a shell.
    #[command(after_help = examples::COMPLETIONS)]
    Completions(pages::Completions),
    /// Print the manual page, or write the pages of all commands.
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
            Self::Script(script::Command::Run(arguments)) => alone(&arguments.rules, Vec::new()),
            Self::Load(arguments) => both(&arguments.setup, arguments.shorthands()),
            Self::Crr(arguments) => both(&arguments.setup, arguments.shorthands()),
            Self::Bulk(arguments) => both(&arguments.setup, arguments.shorthands()),
            Self::Pcap(arguments) => alone(&arguments.rules, Vec::new()),
            Self::Sysctl(arguments) => alone(&arguments.rules, Vec::new()),
            Self::Link(_)
            | Self::Lab(_)
            | Self::Compare(_)
            | Self::Sim(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => return None,
        })
    }
}

/// What a command was told of rules.
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
    // What the same definition has matched it reads, too.
    let command = Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match command.color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
    // Where that is not to be had, a limit is met as it always was.
    let _ = survive_file_limits();
    status::install();
    match run(&command.tool) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Says what is wrong with the command line, or what is asked of it, and ends. A shell puts names of files into
/// it, which others chose: the error shows the same line with them escaped.
fn refuse(mut command: clap::Command, error: &clap::Error) -> ! {
    let words = env::args_os().map(|word| Foreign::new(word.as_encoded_bytes()).to_string());
    if let Err(error) = command.try_get_matches_from_mut(words) {
        error.exit();
    }
    // Escaped it is none: only the kind of the fault can be told.
    streams::tell(&format!("error: {}\n", error.kind()));
    process::exit(error.exit_code())
}

/// The same, where a number below 0 is a value that its option refuses, and not another option.
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

/// What values that are numbers are called.
const QUANTITIES: [&str; 5] = ["N", "TIME", "SIZE", "RATE", "OCTETS"];

fn run(tool: &Tool) -> Result<(), Failure> {
    if let Some(AskedRules { rules, server, shorthands }) = tool.rules()
        && let Some(question) = rules.question()
    {
        return output::print(&rules.answer(question, server, &shorthands)?);
    }
    match tool {
        Tool::Serve(arguments) => serve::run(arguments),
        Tool::Script(command) => script::run(command),
        Tool::Load(arguments) => load::run(arguments),
        Tool::Crr(arguments) => crr::run(arguments),
        Tool::Bulk(arguments) => bulk::run(arguments),
        Tool::Pcap(arguments) => pcap::run(arguments),
        Tool::Link(arguments) => link::run(arguments),
        Tool::Lab(arguments) => lab::run(arguments),
        Tool::Compare(arguments) => compare::run(arguments),
        Tool::Sim(command) => sim::run(command),
        Tool::Sysctl(arguments) => sysctl::run(arguments),
        Tool::Doctor(arguments) => doctor::run(arguments),
        Tool::Completions(arguments) => pages::completions(arguments, Command::command()),
        Tool::Man(arguments) => pages::manual(arguments, Command::command()),
    }
}

#[cfg(test)]
mod tests;
