//! `whimbrel sim`: the stream oracle and the grid from the command line.

use std::process::Stdio;

use crate::running::{
    Running, Signal, await_that, document, fail, interrupt, succeed, unbroken, whimbrel,
};
use crate::scratch::scratch;

#[test]
fn seed_range_is_run_and_summed() {
    let text = succeed(&mut whimbrel("sim run --seeds 3..7"));
    assert!(text.starts_with("4 passed, 0 failed: "), "{text}");
    assert!(unbroken(&text).contains(" of virtual time in "), "{text}");
    assert_eq!(succeed(&mut whimbrel("sim run --seed 3 --quiet")), "");
}

#[test]
fn seed_repeats_for_any_number_of_jobs() {
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
fn invalid_seed_range_exits_2_with_example() {
    for (words, part) in [
        ("--seeds 5", "A..B"),
        ("--seeds 5..5", "is empty"),
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
fn interrupted_seeds_report_their_number() {
    let mut command = whimbrel("sim run --seeds 0..1000000 -j 1");
    let child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    interrupt(child.id());
    let output = child.output();
    let [text, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(text.contains(" passed, 0 failed: "), "{text}");
    let said = error.contains("interrupted: ") && error.contains(" of 1,000,000 seeds have run");
    assert!(said && error.lines().count() == 1, "{error}");
}

#[test]
fn grid_cell_repeats_exactly() {
    let text = succeed(&mut whimbrel("sim grid 10M/1ms/reno"));
    assert!(text.contains("10M/1ms/reno") && text.ends_with("1 of 1 goals met\n"), "{text}");
    let document = || document("sim grid --json reno/10M/1ms");
    let first = document();
    assert_eq!(first["schema"], "whimbrel.grid/1");
    let line = &first["lines"][0];
    assert_eq!((&line["name"], &line["unit"]), (&"10M/1ms/reno".into(), &"%".into()));
    assert!(line["value"].as_f64() > Some(90.0), "{line}");
    assert_eq!(first, document());
}

#[test]
fn figures_are_compared_with_those_of_an_earlier_run() {
    let file = scratch("before.json");
    let words = format!("sim grid 10M/1ms/reno --baseline {}", file.display());
    std::fs::write(&file, document("sim grid --json 10M/1ms/reno").to_string()).unwrap();
    let text = succeed(&mut whimbrel(&words));
    assert!(text.ends_with("0 worse than before, 0 new\n"), "{text}");

    std::fs::write(&file, r#"{"lines": []}"#).unwrap();
    let text = succeed(&mut whimbrel(&words));
    assert!(text.ends_with("0 worse than before, 1 new\n"), "{text}");

    std::fs::write(&file, "{}").unwrap();
    let (code, error) = fail(&mut whimbrel(&words));
    assert!(code == 2 && error.contains("has no \"lines\""), "{error}");
}

#[test]
fn unknown_cell_exits_2_with_known_ones() {
    for (words, parts) in [
        ("sim grid 100M/71ms/cubic", ["no cell matches \"71ms\"", "10M, 1ms, reno"]),
        ("sim grid 1G/600ms", ["no cell matches all parts", "with 1G there are 1ms, reno"]),
        ("sim paths fairness", ["no cell matches \"fairness\"", "fair"]),
    ] {
        let (code, error) = fail(&mut whimbrel(words));
        assert_eq!(code, 2, "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn interrupted_measurement_is_reported() {
    let mut command = whimbrel("sim grid -j 1 10M/600ms 1G/200ms");
    let child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    interrupt(child.id());
    let output = child.output();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("interrupted: ") && error.contains(" of 4 measurements"), "{error}");
}

#[test]
fn full_grid_continues_from_its_results() {
    let file = scratch("cells.jsonl");
    let words = |cells: &str| format!("sim grid --full {cells} --results {}", file.display());
    let text = succeed(&mut whimbrel(&words("10M/1ms/0%/1bdp/bbr")));
    assert!(text.contains("\n10M/1ms/0%/1bdp/bbr ") && text.ends_with("\n1 cell\n"), "{text}");
    // What stands there is not measured again.
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, known.replace("\"timeouts\":0", "\"timeouts\":77")).unwrap();
    let document = document(&(words("10M/1ms/0%/1bdp") + " --json"));
    assert_eq!(document["schema"], "whimbrel.full-grid/1");
    let timeouts: Vec<_> =
        document["lines"].as_array().unwrap().iter().map(|it| &it["timeouts"]).collect();
    assert_eq!(timeouts, [0, 0, 77]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 3);
}

#[test]
fn interrupted_full_grid_keeps_its_cells() {
    let file = scratch("kept.jsonl");
    let mut command =
        whimbrel("sim grid --full -j 1 10M/1ms/0%/1bdp/reno 10G/600ms/0%/4bdp --results");
    let child = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Running::start(child);
    await_that("a cell is written down", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    });
    child.signal(Signal::INT);
    let output = child.output();
    let [text, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(text.ends_with("\n1 cell\n"), "{text}");
    assert!(
        error.contains("interrupted: 1 of 4 cells") && error.contains("continues from"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
}

#[test]
fn worse_cell_of_the_full_grid_exits_3() {
    let file = scratch("full-before.json");
    let words = "sim grid --full 10M/1ms/0%/1bdp/bbr";
    let mut before = document(&format!("{words} --json"));
    let mut compare = || {
        std::fs::write(&file, before.to_string()).unwrap();
        before["lines"][0]["used"] = 200.into();
        whimbrel(&format!("{words} --baseline {}", file.display())).output().unwrap()
    };
    assert_eq!(compare().status.code(), Some(0));
    let worse = compare();
    assert_eq!(worse.status.code(), Some(3));
    let text = String::from_utf8(worse.stdout).unwrap();
    assert!(
        text.contains("WORSE than ") && text.ends_with("1 worse than before, 0 new\n"),
        "{text}"
    );
}
