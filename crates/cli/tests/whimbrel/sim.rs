//! `whimbrel sim run`: the stream oracle from the command line.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::running::{Running, fail, interrupt, succeed, unbroken};

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split_whitespace());
    command
}

fn document(words: &str) -> Value {
    serde_json::from_str(&succeed(&mut whimbrel(words))).unwrap()
}

#[test]
fn a_range_of_seeds_is_played_and_summed_up() {
    let text = succeed(&mut whimbrel("sim run --seeds 3..7"));
    assert!(text.starts_with("4 passed, 0 failed: "), "{text}");
    assert!(unbroken(&text).contains(" of virtual time in "), "{text}");
    assert_eq!(succeed(&mut whimbrel("sim run --seed 3 --quiet")), "");
}

#[test]
fn a_seed_gives_the_same_run_however_many_are_under_way() {
    let summary = |words: &str| {
        let mut summary = document(words)["summary"].take();
        summary.as_object_mut().unwrap().remove("seconds").unwrap();
        summary
    };
    let first = summary("sim run --seeds 0..6 --json -j 1");
    assert_eq!(first["passed"], 6);
    assert!(first["octets"].as_u64() > Some(0));
    assert_eq!(first, summary("sim run --seeds 0..6 --json -j 3"));
}

#[test]
fn what_names_no_seed_exits_with_2_and_says_what_would() {
    for (words, part) in [
        ("--seeds 5", "A..B"),
        ("--seeds 5..5", "no seed"),
        ("--seed x", "--seed"),
        ("--seed 1 --seeds 1..2", "cannot be used with"),
        ("--jobs 0", "--jobs"),
    ] {
        let (code, error) = fail(&mut whimbrel(&format!("sim run {words}")));
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

#[test]
fn who_is_interrupted_says_what_was_played_and_that_it_is_not_all() {
    let mut command = whimbrel("sim run --seeds 0..1000000 -j 1");
    let child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    interrupt(child.id());
    let output = child.output();
    let [text, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(text.contains(" passed, 0 failed: "), "{text}");
    let said = error.contains("interrupted: ") && error.contains(" of 1,000,000 seeds were run");
    assert!(said && error.lines().count() == 1, "{error}");
}
