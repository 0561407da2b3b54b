//! `whimbrel script`: packet scripts, run against the stack in virtual time or against this
//! machine's kernel.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use whimbrel_io::signals::Signals;
use whimbrel_io::{Stop, parallel};
use whimbrel_script::dialect::Dialect;

use crate::examples;
use crate::failure::{self, Failure};
use crate::quantity;
use crate::rules::RuleOptions;

mod capture;
mod files;
mod host;
mod json;
mod plan;
mod report;
mod work;

use plan::ScriptPlan;
use report::Output;
use work::ScriptCounts;

/// The command line of `whimbrel script`, as it was typed.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run packetdrill scripts: exit code 3 if any fails.
    ///
    /// A script with unknown options or shell lines is skipped, with the reason. Shell lines are never
    /// executed; only their settings are read.
    #[command(after_help = examples::SCRIPT_RUN)]
    Run(Arguments),
}

/// Arguments of `script run`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Scripts, or folders whose .pkt files are all run.
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,
    /// Stack under test.
    #[arg(long, value_enum, default_value_t = ScriptTarget::Shard)]
    against: ScriptTarget,
    /// Script dialect, independent of the profile: linux (IPv6 at an MTU of 1520), freebsd (tolerances
    /// of 5 %, #ifdef FreeBSD) or whimbrel [default: detected from the variables, programs and names in
    /// each script; else whimbrel].
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    dialect: Option<Dialect>,
    /// Match packets exactly (default).
    #[arg(long, conflicts_with = "semantic")]
    strict: bool,
    /// Accept correct behaviour where policies may differ: order of options, windows and buffers, times
    /// of pure acknowledgments. A pass that needed such a rule names it.
    #[arg(long)]
    semantic: bool,
    /// Only warn of packets after the last line, for scripts of a runner that ends there.
    #[arg(long)]
    foreign: bool,
    /// Print one JSON document (whimbrel.script/1) instead.
    #[arg(long)]
    json: bool,
    /// Print only the scripts that failed, and the summary.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Replace a word in the scripts; may repeat.
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// Scripts to run at once [default: one per processor; four against the kernel, where scripts wait
    /// in real time].
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u16>(1..=1024))]
    jobs: Option<u16>,
    /// Write the packets of each script to a separate pcapng file below this folder, with the reason
    /// for each drop and each state change.
    #[arg(long, value_name = "DIR")]
    pcap_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
}

/// Stack under test.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptTarget {
    /// The stack, in virtual time.
    Shard,
    /// This machine's kernel, in real time; needs root.
    Kernel,
}

fn dialect(text: &str) -> Result<Dialect, String> {
    Dialect::by_name(text).ok_or_else(|| {
        let names: Vec<_> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
        format!("unknown dialect: use one of {}", names.join(", "))
    })
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run_scripts(arguments),
    }
}

fn run_scripts(arguments: &Arguments) -> Result<(), Failure> {
    let plan = ScriptPlan::new(arguments)?;
    let files = files::find(&arguments.paths)?;
    host::check(&plan)?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let begun = Instant::now();
    let mut output = Output::new(&plan);
    let mut counts = ScriptCounts::default();
    let mut unwritten = None;
    parallel::in_order(
        plan.jobs,
        &files,
        |file| (!stop.is_set()).then(|| work::run_file(&plan, file)),
        |done| {
            let Some(done) = done else { return Ok(()) };
            counts.count(&done);
            // The first capture that cannot be written is reported at the end: scripts continue.
            unwritten = unwritten.take().or(done.written.clone().err());
            output.add(done)
        },
    )?;
    counts.seconds = begun.elapsed();
    output.finish(&counts)?;
    match counts.all() {
        _ if counts.failed > 0 => Err(Failure::Answer),
        run if run < files.len() => Err(failure::interrupted(run as u64, files.len(), "scripts")),
        _ => unwritten.map_or(Ok(()), Err),
    }
}

/// Seconds for people and programs, to the millisecond.
fn seconds(time: Duration) -> f64 {
    time.as_millis() as f64 / 1000.0
}
