//! What a test needs of the machine. Where that is missing, the test says so, and is skipped; with
//! `WHIMBREL_REQUIRE_NET=1` it fails.
//!
//! Tests of several crates have this file. What they skipped is counted by `skipped.rs`, which the
//! test command runs last.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, thread};

/// Whether all of these programs are there. If not, the test that asked is skipped, and has to end.
pub(crate) fn found(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().copied().filter(|program| !is_there(program)).collect();
    if !missing.is_empty() {
        skip(&format!("no {}", missing.join(", no ")));
    }
    missing.is_empty()
}

/// Says and counts that the test of this thread is skipped.
pub(crate) fn skip(reason: &str) {
    skip_test(&test(), reason);
}

/// The name of the test of this thread.
pub(crate) fn test() -> String {
    static UNNAMED: AtomicU32 = AtomicU32::new(1);
    match thread::current().name() {
        // The only thread there is: it runs one test after the other.
        None | Some("main") => format!("(test {})", UNNAMED.fetch_add(1, Ordering::Relaxed)),
        Some(name) => name.to_owned(),
    }
}

/// As [`skip`], from another thread than the test's.
pub(crate) fn skip_test(test: &str, reason: &str) {
    let required = env::var_os("WHIMBREL_REQUIRE_NET").is_some();
    assert!(!required, "{reason}; WHIMBREL_REQUIRE_NET is set, so nothing may be skipped");
    // What `eprintln!` writes is not shown of a test that passes.
    let _ = io::stderr().write_all(format!("SKIPPED {test}: {reason}\n").as_bytes());
    // Two programs may have tests of one name.
    let line = format!("{}:{test}\t{}\n", std::process::id(), reason.replace('\n', " "));
    let _written = tallies().iter().any(|tally| append(tally, &line).is_ok());
}

/// Where this run of the test command counts: the first that can be written.
pub(crate) fn tallies() -> [PathBuf; 2] {
    // The run is the process that started this one: its number, and when it began.
    let run = parent_id();
    let stat = fs::read_to_string(format!("/proc/{run}/stat")).unwrap_or_default();
    // After the name in parentheses, which may hold anything: starttime is field 22 of all.
    let began = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
    let name = format!("whimbrel-skipped-{run}-{}", began.unwrap_or("0"));
    [Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name), env::temp_dir().join(name)]
}

fn append(tally: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(tally)?.write_all(line.as_bytes())
}

/// Whether a program is to be found by this name, and may be run.
fn is_there(program: &str) -> bool {
    let runs = |path: &Path| {
        fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| runs(&folder.join(program)))
}
