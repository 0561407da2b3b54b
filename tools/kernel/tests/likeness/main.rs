//! Compares the stack under the profile `linux` with this machine's kernel: each state, each kind
//! of segment, and what follows. Known differences are listed with their reasons in
//! `tests/scripts/linux-differences.txt`. A difference without a line fails the test, and so does a
//! line without a difference.
//!
//! Needs root. Without it the test reports that and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.
//!
//! `only=fin-wait-2 cargo test -p whimbrel-kernel --test likeness -- --nocapture` plays only the
//! cases with this text in their name; `cases=all` plays the full set (`scripts/long/likeness`);
//! `lines=told` prints the differences of each line, which shows lines that match too much.

#![allow(clippy::unwrap_used)] // the helpers of a test

use std::collections::BTreeMap;
use std::env;
use std::sync::Mutex;
use std::thread;

use whimbrel_io::descriptors;
use whimbrel_kernel::KernelHost;
use whimbrel_script::host::{Network, ScriptHost};
use whimbrel_script::shard_host::ShardHost;
use whimbrel_stack::Profile;

use case::{Case, CaseSet};
use listed::{Difference, KnownDifferences, Used};
use play::{Account, play};

mod case;
mod listed;
mod play;
mod scenes;
mod shape;

#[path = "../../../../tests/harness/needs.rs"]
mod needs;

const LISTED: &str = include_str!("../../../../tests/scripts/linux-differences.txt");

#[test]
fn the_stack_is_like_linux_but_for_what_is_listed() {
    if !kernel_is_there() {
        return;
    }
    let only = env::var("only").ok();
    let all = env::var("cases").is_ok_and(|which| which == "all");
    let which = if all { CaseSet::All } else { CaseSet::Default };
    let mut cases = case::cases(which);
    cases.retain(|case| only.as_ref().is_none_or(|only| case.to_string().contains(only)));
    let listed = KnownDifferences::read(LISTED);
    let mut used = Used::default();
    let mut unlisted = compare(&cases, which, &listed, &mut used);
    // In real time, a late segment may be in time among fewer cases.
    for _ in 0..4 {
        if unlisted.is_empty() || unlisted.len() > TOO_MANY {
            break;
        }
        let again: Vec<_> = unlisted.iter().map(|(case, _)| case.clone()).collect();
        unlisted = compare(&again, which, &listed, &mut used);
    }
    if env::var("lines").is_ok_and(|lines| lines == "told") {
        println!("{}", listed.tell(&used));
    }
    let told = tell(&unlisted);
    assert!(unlisted.is_empty(), "{} of {} are not as Linux:\n{told}", unlisted.len(), cases.len());
    let stale: Vec<_> = listed.unmatched(&used, which).collect();
    assert!(only.is_some() || stale.is_empty(), "nothing is as these lines have it: {stale:#?}");
}

/// Returns the unlisted differences. Adds the matched lines of the others to `used`.
fn compare(
    cases: &[Case],
    which: CaseSet,
    listed: &KnownDifferences,
    used: &mut Used,
) -> Vec<(Case, Difference)> {
    let queue = Mutex::new(cases.chunks(BATCH));
    let found = Mutex::new((Vec::new(), used));
    let work = || {
        while let Some(batch) = { queue.lock().unwrap().next() } {
            let both = kernel(batch).into_iter().zip(shard(batch));
            let differences = batch.iter().zip(both).filter_map(|(case, (theirs, ours))| {
                Some((case, Difference::first(case, &ours, &theirs)?))
            });
            for (case, difference) in differences {
                let (unlisted, used) = &mut *found.lock().unwrap();
                let lines = listed.find(&difference, which);
                for line in &lines {
                    used.entry(*line).or_default().insert(difference.to_string());
                }
                if lines.is_empty() {
                    unlisted.push((case.clone(), difference));
                }
            }
        }
    };
    thread::scope(|scope| (0..HOSTS).for_each(|_| drop(scope.spawn(work))));
    found.into_inner().unwrap().0
}

/// Describes the differences, equal ones together.
fn tell(unlisted: &[(Case, Difference)]) -> String {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (case, Difference { path, ours, theirs }) in unlisted {
        let done = path.rsplit(' ').next();
        groups.entry((done, ours, theirs)).or_default().push(case.to_string());
    }
    let told = groups.iter().map(|((done, ours, theirs), cases)| {
        let (count, first) = (cases.len(), cases.iter().take(5).cloned().collect::<Vec<_>>());
        let done = done.unwrap_or_default();
        format!("{done} | {ours} | {theirs}\n    {count}: {}\n", first.join(", "))
    });
    told.collect()
}

fn kernel_is_there() -> bool {
    descriptors::raise_limit().unwrap();
    match KernelHost::new(&Network::v4()) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_privilege_or_device(), "{error}");
            needs::skip(&error.to_string());
            false
        }
    }
}

fn kernel(cases: &[Case]) -> Vec<Account> {
    let mut host = KernelHost::new(&Network::v4()).unwrap();
    // The time of a tail loss probe depends on the machine; a limit of the whole host would make
    // cases affect each other.
    for (name, value) in [("tcp_early_retrans", "0"), ("tcp_challenge_ack_limit", "2147483647")] {
        host.set(name, value).unwrap();
    }
    play(&mut host, cases)
}

/// Plays each case on its own host: virtual time costs nothing.
fn shard(cases: &[Case]) -> Vec<Account> {
    let mut rules = Profile::by_name("linux").unwrap().tunables().unwrap();
    // As set in the kernel.
    rules.loss_probe = false;
    let play = |case| {
        let mut host = ShardHost::new(&Network::v4(), rules.clone()).unwrap();
        play(&mut host, std::slice::from_ref(case)).remove(0)
    };
    cases.iter().map(play).collect()
}

/// Limit of cases in one namespace.
const BATCH: usize = 400;
/// Namespaces at a time: mostly they wait.
const HOSTS: usize = 6;
/// Number of differences that cannot be chance, even on a busy machine.
const TOO_MANY: usize = 10_000;
