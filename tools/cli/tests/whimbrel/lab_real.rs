//! `whimbrel lab run --real` ends its children with it. `.ci/run` tests the results of cases.

use std::fs;
use std::process::{Command, Stdio};

use crate::netns::Net;
use crate::running::{Running, Signal, await_that, fail};

const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");

/// A case that is measured so, and words of the commands of what its first measurement starts.
struct Measured {
    case: &'static str,
    starts: &'static [&'static str],
}

const FDDI: Measured = Measured { case: "fddi-70ms", starts: &["link", "serve", "bulk"] };
const NGINX: Measured = Measured { case: "unikraft-nginx", starts: &["serve", "wrk"] };
const MACOS: Measured = Measured { case: "macos-16k", starts: &["serve", "load"] };

/// A process, by its number and its command.
#[derive(Debug)]
struct Started(String, String);

/// Started, and the processes that it has started in its turn.
fn begun(net: &Net, measured: &Measured) -> (Running, Vec<Started>) {
    let mut command = net.command(WHIMBREL);
    command.args(["lab", "run", measured.case, "--real", "--quick"]).env("TMPDIR", net.folder());
    let running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("what it measures with runs", || {
        let all: String = children(running.id()).iter().map(command_line).collect();
        measured.starts.iter().all(|word| all.contains(word))
    });
    let started = children(running.id()).into_iter();
    let started = started.map(|id| (command_line(&id), id)).map(|(line, id)| Started(id, line));
    (running, started.collect())
}

fn children(of: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let list = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let all = tasks.filter_map(list).collect::<String>();
    all.split_whitespace().map(str::to_owned).collect()
}

/// True if it is still the same process.
fn runs(Started(id, line): &Started) -> bool {
    command_line(id) == *line
}

/// Its files in the folder, and the interfaces where it started.
fn left(net: &Net) -> (Vec<String>, String) {
    let entries = fs::read_dir(net.folder()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    (names.collect(), net.run("ip -brief link"))
}

fn command_line(process: &String) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

#[test]
fn interrupt_leaves_no_process_of_any_case() {
    let Some(net) = Net::with(&["wrk", "nginx"]) else { return };
    let before = left(&net);
    for measured in [FDDI, NGINX, MACOS] {
        let (running, started) = begun(&net, &measured);
        assert!(started.iter().all(runs), "{started:?}");
        running.signal(Signal::INT);
        let output = running.output();
        assert!(!output.status.success());
        await_that("all of it ends", || !started.iter().any(runs));
        assert_eq!(left(&net), before, "{}", measured.case);
    }
}

#[test]
fn kill_leaves_no_process() {
    let Some(net) = Net::with(&["wrk", "nginx"]) else { return };
    let (running, started) = begun(&net, &FDDI);
    running.signal(Signal::KILL);
    assert!(!running.output().status.success());
    await_that("all of it ends", || !started.iter().any(runs));
}

#[test]
fn killed_child_of_any_case_leaves_nothing() {
    let Some(net) = Net::with(&["wrk", "nginx", "kill"]) else { return };
    let before = left(&net);
    for measured in [FDDI, NGINX, MACOS] {
        let (running, started) = begun(&net, &measured);
        let last = measured.starts.last().unwrap();
        let Started(killed, _) = started.iter().find(|it| it.1.contains(last)).unwrap();
        net.run(&format!("kill -KILL {killed}"));
        running.signal(Signal::TERM);
        assert!(!running.output().status.success());
        await_that("all of it ends", || !started.iter().any(runs));
        assert_eq!(left(&net), before, "{}", measured.case);
    }
}

#[test]
fn missing_need_names_its_doctor_line() {
    // Namespaces can be created, but nothing can run in them.
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
fn case_without_real_measurement_is_refused() {
    let Some(net) = Net::new() else { return };
    let words = ["lab", "run", "illumos-1125ms", "--real"];
    let (code, error) = fail(net.command(WHIMBREL).args(words));
    assert_eq!(code, 2);
    assert!(error.contains("--real: illumos-1125ms has none: give one of"), "{error}");
}
