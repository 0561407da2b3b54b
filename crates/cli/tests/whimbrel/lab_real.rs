//! `whimbrel lab run --real`: what it starts ends with it. Whether cases come out right `.ci/run` asks.

use std::fs;
use std::process::{Command, Stdio};

use crate::netns::Net;
use crate::running::{Running, Signal, await_that, fail};

const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");

/// Started, and the processes that it has started in its turn.
fn begun(net: &Net) -> (Running, Vec<String>) {
    let mut command = net.command(WHIMBREL);
    command.args(["lab", "run", "fddi-70ms", "--real", "--quick"]);
    let running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("the path, the sink and the transfer run", || {
        let all: String = children(running.id()).iter().map(command_line).collect();
        ["link", "serve", "bulk"].iter().all(|command| all.contains(command))
    });
    let started = children(running.id());
    (running, started)
}

fn children(of: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let list = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let all = tasks.filter_map(list).collect::<String>();
    all.split_whitespace().map(str::to_owned).collect()
}

/// Whether the process still is what it was.
fn runs(process: &String) -> bool {
    command_line(process).contains("whimbrel")
}

fn command_line(process: &String) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

#[test]
fn nothing_of_it_outlives_an_interrupt_or_a_kill() {
    let Some(net) = Net::with(&["wrk", "nginx"]) else { return };
    for signal in [Signal::INT, Signal::KILL] {
        let (running, started) = begun(&net);
        assert!(started.iter().all(runs), "{started:?}");
        running.signal(signal);
        let output = running.output();
        assert!(!output.status.success());
        await_that("all of it ends", || !started.iter().any(runs));
    }
}

#[test]
fn a_child_that_is_killed_is_told_and_the_rest_of_it_ends() {
    let Some(net) = Net::with(&["wrk", "nginx", "kill"]) else { return };
    let (running, started) = begun(&net);
    let transfer = started.iter().find(|it| command_line(it).contains("bulk")).unwrap();
    net.run(&format!("kill -KILL {transfer}"));
    running.signal(Signal::TERM);
    assert!(!running.output().status.success());
    await_that("all of it ends", || !started.iter().any(runs));
}

#[test]
fn what_it_lacks_is_said_with_the_line_of_doctor() {
    // Where that may be made, what may be made has nothing to run in it.
    if Net::new().is_none() {
        return;
    }
    let mut command = Command::new(WHIMBREL);
    let words = ["lab", "run", "macos-16k", "--real"];
    let (code, error) = fail(command.args(words).env("PATH", "/nowhere"));
    assert_eq!(code, 4, "{error}");
    for part in ["no ip, wrk, nginx", "apt-get install", "the line programs of `whimbrel doctor`"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn a_case_that_cannot_be_measured_so_is_refused() {
    let Some(net) = Net::new() else { return };
    let words = ["lab", "run", "illumos-1125ms", "--real"];
    let (code, error) = fail(net.command(WHIMBREL).args(words));
    assert_eq!(code, 2);
    assert!(error.contains("--real: illumos-1125ms has none: give one of"), "{error}");
}
