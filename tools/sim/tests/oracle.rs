//! Every byte arrives over any link, and nothing is left at the end.
//!
//! `seed=N cargo test -p whimbrel-sim --test oracle` plays one seed; `seeds=A..B` plays a range,
//! and with `progress=1` it reports each seed.

use std::ops::Range;
use std::sync::Mutex;

use whimbrel_sim::{Outcome, run_seed};

/// Seeds played by default: as many as continuous integration has time for.
const SEEDS: Range<u64> = 0..1_000;

#[test]
fn every_byte_arrives_and_nothing_is_left() {
    let outcomes = play(asked().unwrap_or(SEEDS));
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.is_ok()).collect();
    failed.iter().for_each(|outcome| println!("{outcome}"));
    let repeats: Vec<String> = failed.iter().map(|outcome| outcome.repeat()).collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), repeats.join("\n"));
    let bytes: u64 = outcomes.iter().map(|outcome| outcome.bytes).sum();
    for place in 0..outcomes.first().map_or(0, |outcome| outcome.met.len()) {
        let (what, _) = outcomes[0].met[place];
        let times: u64 = outcomes.iter().map(|outcome| outcome.met[place].1).sum();
        assert!(times > 0 || outcomes.len() < SEEDS.count(), "no seed met {what}");
        println!("{what}: {times}");
    }
    println!("{} seeds, {bytes} bytes", outcomes.len());
}

#[test]
fn seed_repeats_its_run_byte_by_byte() {
    for seed in [7, 8, 9] {
        assert_eq!(run_seed(seed), run_seed(seed));
    }
    assert_ne!(run_seed(7).digest, run_seed(8).digest);
}

/// Plays the seeds on a thread for each processor; outcomes by seed.
#[allow(clippy::disallowed_methods, reason = "each seed is a world of its own")]
fn play(seeds: Range<u64>) -> Vec<Outcome> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (end, next) = (seeds.end, Mutex::new(seeds));
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().expect("no thread panicked").next() else {
                        return;
                    };
                    let outcome = run_seed(seed);
                    report(&outcome, end);
                    outcomes.lock().expect("no thread panicked").push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no thread panicked");
    outcomes.sort_unstable_by_key(|outcome| outcome.seed);
    outcomes
}

/// Reports the progress of a long run.
fn report(outcome: &Outcome, end: u64) {
    if variable("progress").is_some() && (!outcome.is_ok() || outcome.seed.is_multiple_of(100)) {
        eprintln!(
            "{} of {end}: {}",
            outcome.seed,
            outcome.to_string().lines().next().unwrap_or("")
        );
    }
}

/// The seeds that the environment names.
fn asked() -> Option<Range<u64>> {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    if let Some(seed) = variable("seed") {
        let seed = number(&seed);
        return Some(seed..seed + 1);
    }
    let seeds = variable("seeds")?;
    let (first, end) = seeds.split_once("..").expect("FIRST..END");
    Some(number(first)..number(end))
}

#[allow(clippy::disallowed_methods, reason = "a test may be asked to play one seed")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
