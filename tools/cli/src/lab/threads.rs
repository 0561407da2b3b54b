//! The case that is measured on real threads.

use std::process::{Command, Stdio};

use serde_json::Value;
use whimbrel_io::{Stop, text};
use whimbrel_kernel::contention::{Contention, ContentionResult};
use whimbrel_lab::{Measured, Series, Setup, Unit};
use whimbrel_stack::Profile;
use whimbrel_stack::profile::Locking;

/// Measures round after round; an error names the obstacle.
pub(super) fn measure(setup: &Setup, stop: &Stop) -> Result<Measured, String> {
    let locking = Profile::by_name(setup.profile).map(Profile::locking).unwrap_or_default();
    let contention = Contention {
        threads: setup.values.of_name("threads") as usize,
        locking,
        hold: setup.values.time("hold"),
        time: setup.values.time("lasts"),
        tunables: setup.rules.clone(),
    };
    let mut rounds = Vec::new();
    for _ in 0..setup.values.of_name("rounds") as usize {
        if stop.is_set() {
            return Err("interrupted".into());
        }
        rounds.push(contention.run().map_err(|error| error.to_string())?);
    }
    rounds.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    let mut measured = Measured::default();
    figures(&rounds, contention.threads, &mut measured);
    measured.series =
        rounds.get(rounds.len() / 2).map_or_else(Vec::new, |it| series(it, &contention));
    // Each of those processes has one thread.
    if locking == Locking::None && contention.threads > 1 {
        compare(setup, contention.threads, &mut measured)?;
    }
    Ok(measured)
}

/// Figures of rounds sorted by their rates.
fn figures(rounds: &[ContentionResult], threads: usize, measured: &mut Measured) {
    let (Some(median), Some(first), Some(last)) =
        (rounds.get(rounds.len() / 2), rounds.first(), rounds.last())
    else {
        return;
    };
    let each = |all: f64, of: u64| if of == 0 { 0.0 } else { all / of as f64 };
    let time = median.time.as_secs_f64() * threads as f64;
    measured.add("rate", Unit::PerSecond, median.rate());
    measured.add("least_rate", Unit::PerSecond, first.rate());
    measured.add("most_rate", Unit::PerSecond, last.rate());
    let spread = (last.rate() - first.rate()) / median.rate().max(1.0);
    measured.add("spread", Unit::Percent, spread * 100.0);
    measured.add("locks", Unit::Count, each(median.locks as f64, median.queries));
    measured.add("held", Unit::Time, each(median.held.as_secs_f64(), median.locks));
    measured.add("waiting", Unit::Percent, median.waited.as_secs_f64() / time * 100.0);
    let failed = rounds.iter().map(|round| round.failed).sum::<u64>();
    measured.add("failed", Unit::Count, failed as f64);
}

/// The course of the round with the median rate.
fn series(median: &ContentionResult, contention: &Contention) -> Vec<Series> {
    let step = contention.slice();
    let seconds = step.as_secs_f64().max(f64::EPSILON);
    let of_all = seconds * contention.threads as f64;
    let rates = median.slices.iter().map(|slice| slice.queries as f64 / seconds);
    // A wait counts where it ends, and so may be longer than its slice.
    let waits = median.slices.iter().map(|slice| slice.waited.as_secs_f64() / of_all);
    let waits = waits.map(|share| (100.0 * share).min(100.0));
    let each = |name, unit, values| Series { name, unit, step, values };
    vec![
        each("queries/s", Unit::PerSecond, rates.collect()),
        each("waiting", Unit::Percent, waits.collect()),
    ]
}

/// As many processes, which share nothing, do the same work with a thread each at the same time.
fn compare(setup: &Setup, threads: usize, measured: &mut Measured) -> Result<(), String> {
    let text = |name| format!("{name}={}", setup.values.of_name(name));
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let children = (0..threads).map(|_| {
        let mut command = Command::new(&own);
        command
            .args(["lab", "run", setup.case.name, "--json", "--profile", setup.profile])
            .args(["--vary", "threads=1", "--vary", &text("lasts"), "--vary", &text("rounds")])
            .args(["--vary", &text("hold")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command.spawn().map_err(|error| format!("{}: {error}", text::path(&own)))
    });
    let mut all = 0.0;
    for child in children.collect::<Result<Vec<_>, _>>()? {
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let rate = document.pointer("/cases/0/rows/0/figures/rate/value").and_then(Value::as_f64);
        all += rate.ok_or("a process for comparison measured nothing")?;
    }
    let percent = measured.figure("rate").unwrap_or(0.0) / all.max(1.0) * 100.0;
    measured.add("of_processes", Unit::Percent, percent);
    measured.notes.push(format!(
        "{percent:.0} % of what {threads} processes answer at the same time with a thread each"
    ));
    Ok(())
}
