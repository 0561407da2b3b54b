//! Number of skipped tests, in one line: this program is the last of all that the test command runs,
//! because cargo takes them by the names of packages and then of targets.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_macros, reason = "what tests say is kept for each thread")]
#![allow(clippy::disallowed_methods, reason = "no part of the pure crate that has the last name")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

mod needs;

fn main() {
    let tallies = needs::tallies();
    let texts = tallies.iter().filter_map(|tally| fs::read_to_string(tally).ok());
    println!("{}", summary(&texts.collect::<String>()));
    for tally in tallies {
        // Where nothing was skipped there is none.
        let _ = fs::remove_file(tally);
    }
}

/// Of lines that have a test and a reason.
fn summary(tally: &str) -> String {
    let mut tests = BTreeSet::new();
    let mut reasons: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (test, reason) in tally.lines().filter_map(|line| line.split_once('\t')) {
        tests.insert(test);
        reasons.entry(reason).or_default().insert(test);
    }
    if tests.is_empty() {
        return "\nSKIPPED in all: nothing\n".into();
    }
    let each = reasons.iter().map(|(reason, tests)| format!("{} x {reason}", tests.len()));
    format!(
        "\nSKIPPED in all: {} (WHIMBREL_REQUIRE_NET=1 makes failures of them): {}\n",
        match tests.len() {
            1 => "1 test".to_owned(),
            count => format!("{count} tests"),
        },
        each.collect::<Vec<_>>().join("; ")
    )
}
