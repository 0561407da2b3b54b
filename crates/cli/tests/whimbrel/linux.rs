//! The packet scripts about which the RFCs leave no choice hold for Linux, too: what it does
//! otherwise is listed, with the reason.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::script::kernel_is_there;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts");
const LISTED: &str = include_str!("../../../../tests/scripts/linux-deviations.txt");
/// The scripts without a choice.
const FOLDERS: [&str; 9] = [
    "calls", "rfc1191", "rfc2018", "rfc2883", "rfc5681", "rfc5927", "rfc6298", "rfc7323", "rfc9293",
];

#[test]
fn linux_does_as_the_scripts_say_but_for_what_is_listed() {
    if !kernel_is_there() {
        return;
    }
    let listed: BTreeSet<String> =
        LISTED.lines().filter(|line| line.ends_with(".pkt")).map(str::to_owned).collect();
    let mut failed = failures(FOLDERS.map(str::to_owned).into());
    // Real time: what came late the first time may come in time alone.
    for _ in 0..3 {
        let unlisted: Vec<String> = failed.difference(&listed).cloned().collect();
        if unlisted.is_empty() {
            break;
        }
        let again = failures(unlisted.clone());
        failed.retain(|path| !unlisted.contains(path) || again.contains(path));
    }
    let unlisted: Vec<_> = failed.difference(&listed).collect();
    assert!(unlisted.is_empty(), "Linux fails, and no reason is listed: {unlisted:#?}");
    let passed: Vec<_> = listed.difference(&failed).collect();
    assert!(passed.is_empty(), "listed as a deviation, yet Linux passes: {passed:#?}");
}

/// The scripts at these paths that fail. Where PSH goes is each stack's own choice.
fn failures(paths: Vec<String>) -> BTreeSet<String> {
    let strict = run(&paths, "--strict", |file| file["verdict"] == "failed");
    if strict.is_empty() {
        return strict;
    }
    let only_push = |file: &Value| {
        file["rules"].as_array().is_some_and(|it| it.iter().all(|rule| rule == "push"))
    };
    let paths: Vec<String> = strict.into_iter().collect();
    run(&paths, "--semantic", |file| file["verdict"] == "failed" || !only_push(file))
}

fn run(paths: &[String], mode: &str, is_wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_whimbrel"))
        .current_dir(FOLDER)
        .args(["script", "run", "--against", "kernel", "--json", "-j", "16", mode])
        .args(paths)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    let files = document["files"].as_array().unwrap();
    assert!(files.len() >= paths.len());
    files.iter().filter(|file| is_wanted(file)).map(|file| name(&file["path"])).collect()
}

fn name(path: &Value) -> String {
    let path = Path::new(path.as_str().unwrap());
    path.strip_prefix("./").unwrap_or(path).display().to_string()
}
