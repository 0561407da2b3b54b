//! `whimbrel sim`: whole networks in virtual time. `run` is the stream oracle, from a seed: two stacks
//! over links that lose, hold back and reorder, every byte checked.

use std::ops::Range;
use std::panic;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use whimbrel_io::signals::Signals;
use whimbrel_io::{Stop, parallel};
use whimbrel_sim::oracle::Scenario;
use whimbrel_sim::{Outcome, run_seed};

use crate::examples;
use crate::failure::{self, Failure};
use crate::options::ScreenOptions;
use crate::progress::Progress;
use crate::wrap::wrap;
use crate::{output, quantity, size};

mod full;
mod goals;

/// The command line of `whimbrel sim`, as it was typed.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a random network for each seed, with all checks; exit code 3 if one fails.
    #[command(after_help = examples::SIM_RUN)]
    Run(Arguments),
    /// Measure the share of a path's rate that one flow uses, for rates, round trips and algorithms.
    ///
    /// Each cell is two hosts with default settings in virtual time: a path without losses, with a
    /// queue of one bandwidth-delay product (BDP, at least 16 packets) and MTU 1500. The rate of
    /// acknowledged data is measured after slow start (2 round trips for each doubling from the initial
    /// window to the BDP, plus 2 s), for 20 s or 20 round trips, in percent of the rate less headers.
    /// Exit code 3 if a goal is missed.
    #[command(after_help = examples::SIM_GRID)]
    Grid(GridArguments),
    /// Measure paths with losses, with jitter, with two flows, and with given buffer sizes.
    ///
    /// Like `sim grid`, in virtual time. Exit code 3 if a goal is missed.
    #[command(after_help = examples::SIM_PATHS)]
    Paths(goals::Arguments),
}

/// Arguments of `sim run`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The seeds from A to B - 1.
    #[arg(long, value_name = "A..B", default_value = "0..200", value_parser = range)]
    seeds: Range<u64>,
    /// Run only this seed.
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
    /// Seeds that run at the same time [default: one per processor].
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u16>(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON document (whimbrel.sim/1) instead.
    #[arg(long)]
    json: bool,
    /// Print only seeds that failed.
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    screen: ScreenOptions,
}

/// Arguments of `sim grid`.
#[derive(Args, Debug)]
pub(crate) struct GridArguments {
    #[command(flatten)]
    goals: goals::Arguments,
    /// Measure reno, cubic and bbr up to 10 Gb/s, with losses and queues of 0.25 to 4 BDP: 720 cells
    /// without goals, which take three hours of a processor. A name is, for example,
    /// 100M/70ms/0.1%/1bdp/bbr. With --baseline, exit code 3 if a cell is worse than then.
    #[arg(long)]
    full: bool,
    /// Append each cell of --full to this file when it is measured, and take from it those that are
    /// there: an interrupted run continues. Use another file after a change of the stack.
    #[arg(long, value_name = "FILE", requires = "full")]
    results: Option<PathBuf>,
}

/// Counts over all seeds.
#[derive(Default, Debug)]
struct SeedCounts {
    passed: u64,
    failed: Vec<Outcome>,
    bytes: u64,
    steps: u64,
    /// Virtual time of all together.
    lasted: Duration,
}

/// Runs the subcommand.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => play_all(arguments),
        Command::Grid(GridArguments { goals, full: false, .. }) => goals::run(goals, &goals::GRID),
        Command::Grid(GridArguments { goals, results, .. }) => full::run(goals, results.as_deref()),
        Command::Paths(arguments) => goals::run(arguments, &goals::PATHS),
    }
}

/// Runs seeds, and prints their results.
fn play_all(arguments: &Arguments) -> Result<(), Failure> {
    let seeds = arguments.seed.map_or_else(|| arguments.seeds.clone().collect(), |seed| vec![seed]);
    let jobs = parallel::jobs(arguments.jobs);
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let began = Instant::now();
    let progress =
        Progress::new(seeds.len() as u64, arguments.screen, arguments.json || arguments.quiet);
    let mut counts = SeedCounts::default();
    parallel::in_order(
        jobs,
        &seeds,
        |seed| (!stop.is_set()).then(|| play(*seed)),
        |outcome| {
            let Some(outcome) = outcome else { return Ok(()) };
            if !outcome.is_ok() && !arguments.json {
                progress.print(&failure(&outcome))?;
            }
            counts.count(outcome);
            progress.show(counts.played(), || format!("{} failed", counts.failed.len()));
            Ok::<_, Failure>(())
        },
    )?;
    progress.finish();
    match (arguments.json, arguments.quiet) {
        (true, _) => output::print(&format!("{:#}\n", counts.document(began.elapsed())))?,
        (false, false) => output::print(&counts.summary(began.elapsed()))?,
        (false, true) => {}
    }
    match counts.played() {
        _ if !counts.failed.is_empty() => Err(Failure::Answer),
        played if played < seeds.len() as u64 => {
            Err(failure::interrupted(played, seeds.len(), "seeds"))
        }
        _ => Ok(()),
    }
}

/// A seed's outcome, whatever it brings about.
fn play(seed: u64) -> Outcome {
    // The panic itself prints its place on the standard error.
    panic::catch_unwind(|| run_seed(seed)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let failure = Some(format!("a panic: {text}"));
        Outcome { seed, failure, ..Outcome::default() }
    })
}

/// The failure, and the command that repeats it.
fn failure(outcome: &Outcome) -> String {
    let Outcome { seed, failure, .. } = outcome;
    let failure = failure.as_deref().unwrap_or_default();
    let repeat = repeat(*seed);
    format!("seed {seed}: FAILED\n{}\n{failure}\nrepeat it: {repeat}\n", Scenario::new(*seed))
}

fn repeat(seed: u64) -> String {
    format!("whimbrel sim run --seed {seed}")
}

impl SeedCounts {
    fn count(&mut self, outcome: Outcome) {
        self.bytes += outcome.bytes;
        self.steps += outcome.steps;
        self.lasted += outcome.lasted;
        if outcome.is_ok() {
            self.passed += 1;
        } else {
            self.failed.push(outcome);
        }
    }

    fn played(&self) -> u64 {
        self.passed + self.failed.len() as u64
    }

    fn summary(&self, took: Duration) -> String {
        let mut text = format!(
            "{} passed, {} failed: {} verified in {} steps, {} of virtual time in {}\n",
            quantity::thousands(self.passed),
            quantity::thousands(self.failed.len() as u64),
            size::display(self.bytes),
            quantity::thousands(self.steps),
            quantity::show(self.lasted),
            quantity::show(took),
        );
        for outcome in &self.failed {
            text += &format!("failed: {}\n", repeat(outcome.seed));
        }
        wrap(&text, 4)
    }

    fn document(&self, took: Duration) -> Value {
        let failed = self.failed.iter().map(|outcome| {
            json!({
                "seed": outcome.seed,
                "scenario": Scenario::new(outcome.seed).to_string(),
                "failure": outcome.failure,
                "repeat": repeat(outcome.seed),
            })
        });
        json!({
            "schema": "whimbrel.sim/1",
            "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
            "summary": {
                "passed": self.passed,
                "failed": self.failed.len(),
                "octets": self.bytes,
                "steps": self.steps,
                "virtual_seconds": self.lasted.as_secs_f64(),
                "seconds": took.as_secs_f64(),
            },
            "failed": failed.collect::<Vec<_>>(),
        })
    }
}

/// `A..B`, of at least one seed and at most ten million.
fn range(text: &str) -> Result<Range<u64>, String> {
    let ends = text
        .split_once("..")
        .and_then(|(from, until)| Some(from.trim().parse().ok()?..until.trim().parse().ok()?));
    let range: Range<u64> = ends.ok_or("give A..B, as in 0..1000: from A to B - 1")?;
    match range.end.checked_sub(range.start) {
        None | Some(0) => Err(format!("{text} is empty: use B greater than A")),
        Some(count) if count > MOST_SEEDS => {
            Err(format!("{text} has {count} seeds: use at most {MOST_SEEDS}"))
        }
        Some(_) => Ok(range),
    }
}

/// The most seeds of a run: their numbers are listed before it begins.
const MOST_SEEDS: u64 = 10_000_000;

#[cfg(test)]
mod tests;
