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
    /// Run scripts in the language of packetdrill: exit code 3 if any fails.
    ///
    /// Options and shell lines that mean nothing here make a script be skipped, with the reason.
    /// Shell lines are read for what they set; they are never executed.
    #[command(after_help = examples::SCRIPT_RUN)]
    Run(Arguments),
}

/// What was typed behind `script run`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Scripts, and folders: of these, every file below that ends in .pkt.
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,
    /// What is put to the test.
    #[arg(long, value_enum, default_value_t = ScriptTarget::Shard)]
    against: ScriptTarget,
    /// Whose way of writing scripts they follow, whatever the profile: linux (IPv6 at an MTU of 1520),
    /// freebsd (tolerances of 5 %, #ifdef FreeBSD) or whimbrel [default: what each tells by the
    /// variables, programs and names that it uses; whimbrel if it tells nothing].
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    dialect: Option<Dialect>,
    /// What is written must come to the letter (default).
    #[arg(long, conflicts_with = "semantic")]
    strict: bool,
    /// Ask whether behaviour is right where policy may differ: order of options, windows and buffers,
    /// when pure acknowledgments come. A pass that needed a rule of these names it.
    #[arg(long)]
    semantic: bool,
    /// The scripts were written for a runner that stops looking after the last line: packets that
    /// come later are a warning.
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
    /// Scripts under way at once [default: one for each processor; against the kernel, which lets
    /// scripts wait in real time, four].
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u16>(1..=1024))]
    jobs: Option<u16>,
    /// Write all that the stack receives and sends in each script into a file of its own below this
    /// folder (pcapng), with why it was dropped and how its connection's state changed.
    #[arg(long, value_name = "DIR")]
    pcap_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
}

/// What is put to the test.
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
        format!("there is no such dialect: give one of {}", names.join(", "))
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
            // The first capture that cannot be written is told at the end: scripts go on.
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
