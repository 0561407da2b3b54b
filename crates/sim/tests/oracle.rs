//! Every octet arrives, whatever the links do, and nothing is left at the end.
//!
//! `seed=N cargo test -p whimbrel-sim --test oracle` plays one seed; `seeds=A..B` plays a range.

use whimbrel_sim::run_seed;

/// What is played without being asked: enough to meet every impairment, in a few seconds.
const SEEDS: std::ops::Range<u64> = 0..200;

#[test]
fn every_octet_arrives_and_nothing_is_left() {
    let mut octets = 0;
    let mut failed = Vec::new();
    for seed in asked().unwrap_or(SEEDS) {
        let outcome = run_seed(seed);
        octets += outcome.octets;
        if !outcome.is_ok() {
            println!("{outcome}");
            failed.push(outcome.repeat());
        }
    }
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n"));
    assert!(octets > 0);
}

#[test]
fn a_seed_repeats_its_run_exactly() {
    assert_eq!(run_seed(7), run_seed(7));
}

/// The seeds that the environment names.
#[allow(clippy::disallowed_methods, reason = "a test may be asked to play one seed")]
fn asked() -> Option<std::ops::Range<u64>> {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    if let Ok(seed) = std::env::var("seed") {
        let seed = number(&seed);
        return Some(seed..seed + 1);
    }
    let seeds = std::env::var("seeds").ok()?;
    let (first, end) = seeds.split_once("..").expect("FIRST..END");
    Some(number(first)..number(end))
}
