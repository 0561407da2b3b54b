//! The blocks of docs/manual.md that need more than a program and its output: root, files, another program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::examples::shell;
use crate::netns::Net;
use crate::running::{Running, Signal, await_that, output, succeed};

/// A typed command, and the lines below it.
struct Shown {
    line: String,
    prints: Vec<String>,
}

/// The commands of the block that has this in it, without their `sudo`.
fn block(with: &str) -> Vec<Shown> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual.md");
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split(FENCE).skip(1).filter_map(|block| block.split("\n```").next());
    let block = blocks.into_iter().find(|block| block.contains(with));
    let mut shown = Vec::<Shown>::new();
    for line in block.unwrap_or_else(|| panic!("no block has {with}")).lines() {
        match line.strip_prefix("$ ") {
            Some(line) => shown.push(Shown { line: line.replace("sudo ", ""), prints: Vec::new() }),
            None => shown.last_mut().unwrap().prints.push(line.to_owned()),
        }
    }
    shown
}

impl Shown {
    /// Compares the lines with the command's output.
    fn compare(&self, told: &str) {
        let mut told_lines = told.lines();
        let mut may_skip = false;
        for line in &self.prints {
            if line == "..." {
                may_skip = true;
                continue;
            }
            let found = match may_skip {
                true => told_lines.any(|told| is_like(line, told)),
                false => told_lines.next().is_some_and(|told| is_like(line, told)),
            };
            assert!(found, "{}\n{line:?} is not where it should be in:\n{told}", self.line);
            may_skip = false;
        }
        assert!(may_skip || told_lines.next().is_none(), "{}\nprints more:\n{told}", self.line);
    }
}

/// True if a line equals the shown one apart from spaces; `…` stands for the rest of it, or of a
/// column.
fn is_like(shown: &str, told: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = words(told);
    let mut parts = shown.split('…').map(words);
    let Some(rest) = parts.next().and_then(|first| told.strip_prefix(&first)) else { return false };
    let mut rest = Some(rest);
    let mut is_open = false;
    for part in parts {
        is_open = part.is_empty();
        rest = rest.and_then(|rest| rest.split_once(&part)).map(|(_, rest)| rest);
    }
    rest.is_some_and(|rest| is_open || rest.is_empty())
}

#[test]
fn serving_matches_the_manual() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let [serve] = &block("whimbrel serve")[..] else { panic!("one command") };
    let words: Vec<_> = serve.line.split(' ').skip(1).collect();
    let server = net.serving(&words);
    let client = serve.prints.iter().find_map(|line| line.strip_prefix("try ")).unwrap();
    let body = net.run(client.trim_start().replacen("curl", "curl --silent", 1).as_str());
    assert_eq!(body.len(), 4_096);
    serve.compare(&server.stop());
}

#[test]
fn look_into_a_running_stack_matches_the_manual() {
    let Some(net) = Net::new() else { return };
    let [serve] = &block("whimbrel serve")[..] else { panic!("one command") };
    let words: Vec<_> = serve.line.split(' ').skip(1).collect();
    let server = net.serving(&words);
    let commands = block("whimbrel ss");
    assert_eq!(commands.len(), 3);
    for command in commands {
        // Others may run at the same time.
        let line = command.line.replacen(" serve ", &format!(" {} ", server.id()), 1);
        command.compare(&succeed(&mut shell(&net, &line)));
    }
}

#[test]
fn compare_matches_the_manual() {
    let Some(net) = Net::new() else { return };
    let commands = block("whimbrel compare");
    assert_eq!(commands.len(), 3);
    for command in commands {
        let ended = output(&mut shell(&net, &format!("{} 2>&1", command.line)));
        let fails = command.line.contains("--fail-if");
        let told = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(ended.status.code(), Some(if fails { 3 } else { 0 }), "{told}");
        command.compare(&told);
    }
}

#[test]
fn link_between_namespaces_matches_the_manual() {
    let (Some(net), Some(server)) = (Net::with(&["curl"]), Net::new()) else { return };
    let [made, link, both] = &block("whimbrel link")[..] else { panic!("three commands") };
    assert_eq!(made.line, "ip netns add client && ip netns add server", "each test has its own");
    let named = |line: &str| {
        let line = line.replace("netns=client", &format!("netns={}", net.name()));
        let line = line.replace("netns=server", &format!("netns={}", server.name()));
        let line = line.replace("exec client", &format!("exec {}", net.name()));
        line.replace("exec server", &format!("exec {}", server.name()))
    };
    for (name, does) in [
        ("your-server", "exec whimbrel serve -w kernel: -l 10.1.0.2:80 --body 64k --quiet"),
        (
            "your-test",
            "exec curl --silent --fail --retry 40 --retry-delay 1 --retry-connrefused http://$1/",
        ),
    ] {
        let path = net.folder().join(name);
        fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let start = |line: &str| {
        let mut command = shell(&net, &format!("PATH=$PWD:$PATH; exec {}", named(line)));
        Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let path = start(link.line.trim_end_matches(" &"));
    await_that("the path is there", || server.run("ip address").contains("10.1.0.2"));
    let (serve, test) = both.line.split_once(" & ").unwrap();
    let serve = start(serve);
    let told = start(test).output();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(told.stdout.len(), 65_536);
    for running in [serve, path] {
        running.signal(Signal::TERM);
        let ended = running.output();
        let told = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success(), "{told}{}", String::from_utf8_lossy(&ended.stderr));
        if told.contains("10M") {
            link.compare(&told);
        }
    }
}

#[test]
fn packet_reasons_match_the_manual() {
    let Some(net) = Net::with(&["tshark"]) else { return };
    let commands = block("tshark -r");
    assert_eq!(commands.len(), 2);
    for command in commands {
        command.compare(&succeed(&mut shell(&net, &command.line)));
    }
}

#[test]
fn every_block_of_the_manual_is_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual.md");
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text.matches(FENCE).count(), 5, "each has a test here");
    assert!(!text.contains("not run by the tests"));
}

#[test]
fn different_line_fails_the_comparison() {
    assert!(is_like("a  b … d", "a b c d") && is_like("a …", "a b") && is_like("a b", "a   b"));
    assert!(!is_like("a b", "a b c") && !is_like("a … d", "a b c") && !is_like("b …", "a b"));
}

const FENCE: &str = "```console,ignore\n";
