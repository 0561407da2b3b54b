//! Scripts on a shard: those that must pass, those that must fail with a reason, and the rules of
//! semantic mode.

mod freebsd;
mod mismatches;
mod passing;
mod semantic;

use alloc::format;
use alloc::string::{String, ToString};

use whimbrel_tcp::Tunables;

use super::super::parse::{Defines, parse};
use super::super::setup::Setup;
use super::super::shard_host::ShardHost;
use super::*;

/// The verdict on a script in our dialect.
fn verdict(text: &str, settings: &Settings) -> Verdict {
    let script = parse(text, &Defines::of(Dialect::Whimbrel)).expect("a script that can be read");
    let setup = match Setup::of(&script, settings.dialect) {
        Ok(setup) => setup,
        Err(reasons) => return Verdict::Skipped(reasons),
    };
    run(&script, settings, &mut host(&setup))
}

/// A host whose receive buffer fits in the window field without a scale.
fn host(setup: &Setup) -> ShardHost {
    let tunables = Tunables { recv_buffer: 65_535, ..Tunables::default() };
    ShardHost::new(&setup.network, tunables).expect("a host")
}

fn strictly(text: &str) -> Verdict {
    verdict(text, &Settings::default())
}

/// Asserts that a script passes in strict mode.
#[track_caller]
fn passes(text: &str) {
    match strictly(text) {
        Verdict::Passed { rules, warnings } => {
            assert!(rules.is_empty(), "no rule was needed: {rules:?}");
            assert!(warnings.is_empty(), "nothing to warn of: {warnings:?}");
        }
        other => panic!("{}", super::super::report::ScriptReport::new("script", &other)),
    }
}

/// Asserts that a script fails at a line, with the expected and the found text.
#[track_caller]
fn fails(text: &str, line: u32, expected: &str, came: &str) {
    match strictly(text) {
        Verdict::Failed(failure) => {
            let Failure { line: at, expected: wanted, came: actual, .. } = &failure;
            assert_eq!((*at, wanted.as_str(), actual.as_str()), (line, expected, came));
        }
        other => panic!("it should fail: {other:?}"),
    }
}

/// A connection opened by the peer, descriptor 4; five lines.
const ACCEPTED: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
";

fn accepted(rest: &str) -> String {
    format!("{ACCEPTED}{rest}")
}
