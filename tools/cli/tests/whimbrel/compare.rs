//! `whimbrel compare`: documents of two runs, as commands wrote them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::running::{fail, succeed};
use crate::schema::checked;
use crate::scratch::scratch;

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split_whitespace());
    command
}

/// Output of a command with --json, in a file of this name.
fn document(folder: &Path, name: &str, words: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, succeed(&mut whimbrel(&format!("{words} --json"))))
        .expect("it can be written");
    path
}

fn compare(paths: [&PathBuf; 2], options: &[&str]) -> Command {
    let mut command = whimbrel("compare");
    command.args(paths).args(options);
    command
}

#[test]
fn each_command_that_measures_can_be_compared_with_itself() {
    let folder = scratch("compare-kinds");
    fs::create_dir(&folder).unwrap();
    for (name, words) in [
        ("load", "load -z 1s -i 200ms -c 1 -w mem:delay=1ms"),
        ("crr", "crr -l 1s -w mem:delay=1ms"),
        ("bulk", "bulk send -n 1M -i 100ms -w mem:rate=10M,delay=5ms"),
        ("lab", "lab run fddi-70ms --profile whimbrel --vary bytes=1M"),
        ("grid", "sim grid 10M/1ms"),
        ("full-grid", "sim grid --full 10M/1ms/0%/1bdp"),
    ] {
        let path = document(&folder, name, words);
        let told = succeed(&mut compare([&path, &path], &["--json"]));
        let told: Value = checked(&told);
        assert_eq!(told["of"], format!("whimbrel.{name}/1"));
        assert_eq!(told["summary"]["differ"], 0, "{name}: {told:#}");
        let figures = told["rows"][0]["figures"].as_array().unwrap();
        assert!(!figures.is_empty() && told["rows"][0]["rules"] == serde_json::json!([]));
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn different_delays_differ_in_all_parts_and_fail_a_condition() {
    let folder = scratch("compare-two");
    fs::create_dir(&folder).unwrap();
    let load = |name, delay| {
        let words = format!("load -z 1s -i 200ms -c 2 -w mem:delay={delay}");
        document(&folder, name, &words)
    };
    let [a, b] = [load("a.json", "1ms"), load("b.json", "20ms")];
    let text = succeed(&mut compare([&a, &b], &[]));
    for part in ["mem:delay=1ms | mem:delay=20ms", "* p50", "* rate /s", "shape: "] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (code, error) = fail(&mut compare([&a, &b], &["--fail-if", "rate.less>50%"]));
    assert_eq!(code, 3);
    assert!(error.contains("--fail-if: rate.less is 9"), "{error}");
    succeed(&mut compare([&b, &a], &["--fail-if", "rate.less>50%"]));
    let (code, error) = fail(&mut compare([&a, &b], &["--fail-if", "rte>1"]));
    assert_eq!(code, 2);
    assert!(error.contains("\"rte\" is not measured"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn incomparable_documents_are_reported() {
    let folder = scratch("compare-errors");
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let load = write("load", r#"{"schema":"whimbrel.load/1"}"#);
    let crr = write("crr", r#"{"schema":"whimbrel.crr/1"}"#);
    let link = write("link", r#"{"schema":"whimbrel.link/1"}"#);
    let other = write("other", r#"{"end":{}}"#);
    let broken = write("broken", "{\"schema\":");
    let none = folder.join("none");
    for (paths, code, part) in [
        ([&load, &crr], 2, "two documents of one command"),
        ([&load, &link], 2, "is whimbrel.link/1: use documents of one of load, crr, bulk"),
        ([&other, &load], 2, "is not a document of whimbrel"),
        ([&load, &broken], 2, "is not valid JSON"),
        ([&none, &load], 1, "No such file"),
    ] {
        let (is, error) = fail(&mut compare(paths, &[]));
        assert_eq!(is, code, "{error}");
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
