//! Requirements of a test on the machine. If one is missing, the test says so, and is skipped; with
//! `WHIMBREL_REQUIRE_NET=1` it fails.
//!
//! Tests of several crates have this file. What they skipped is counted by `skipped.rs`, which the
//! test command runs last.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv6Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, thread};

/// The driver of TUN and TAP, where a test says what it needs.
pub(crate) const TUN: &str = "/dev/net/tun";
/// IPv6 in the namespaces that tests make, where a test says what it needs.
pub(crate) const IPV6: &str = "IPv6";

/// True if all of these are there: programs, [`TUN`], [`IPV6`]. If not, the test that asked is skipped,
/// and has to end.
pub(crate) fn found(needs: &[&str]) -> bool {
    say(needs);
    let missing: Vec<_> = needs.iter().copied().filter(|need| !is_there(need)).collect();
    if !missing.is_empty() {
        skip(&format!("no {}", missing.join(", no ")));
    }
    missing.is_empty()
}

/// Notes that the test of this thread, or a part of it that has a thread or process of its own, has said
/// that it needs these.
pub(crate) fn say(needs: &[impl AsRef<str>]) {
    SAID.with_borrow_mut(|said| said.extend(needs.iter().map(|need| need.as_ref().to_owned())));
}

/// The first word of `line` with the others, to be run: a program that this test said it needs.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    let is_said = SAID.with_borrow(|said| said.iter().any(|said| said == program));
    assert!(is_said, "the test needs {program:?} and has not said so");
    let mut command = Command::new(program);
    command.args(words);
    command
}

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Switches IPv6 off in the network namespace of this thread, which the test has just made, if
/// `STRANGER_WITHOUT_IPV6` is set: so `.ci/stranger` has machines whose kernel does that by itself.
pub(crate) fn furnish_namespace() {
    if is_without_ipv6() {
        fs::write(SWITCH, "1").expect("IPv6 can be switched off in a namespace of the test's own");
    }
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

/// Places of the counts of this run of the test command: the first writable one is used.
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

/// True if this is there: a program, [`TUN`] or [`IPV6`].
pub(crate) fn is_there(need: &str) -> bool {
    match need {
        TUN => OpenOptions::new().read(true).write(true).open(TUN).is_ok(),
        IPV6 => !is_without_ipv6() && ipv6_is_there(),
        program => runs(program),
    }
}

/// `disable_ipv6` of the module is what new namespaces begin with; with `disable` there is no socket.
fn ipv6_is_there() -> bool {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
    let off = fs::read_to_string("/sys/module/ipv6/parameters/disable_ipv6");
    socket.is_ok() && off.map_or(true, |off| off.trim() == "0")
}

/// True if namespaces that tests make are to have no IPv6.
pub(crate) fn is_without_ipv6() -> bool {
    env::var_os("STRANGER_WITHOUT_IPV6").is_some()
}

/// True if a program of this name exists, and may be run.
fn runs(program: &str) -> bool {
    let runs = |path: &Path| {
        fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| runs(&folder.join(program)))
}

/// The switch that disables IPv6 for all present and future interfaces.
const SWITCH: &str = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
