//! `--trace`: the course of each connection, as lines of JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::running::{fail, succeed};
use crate::schema::checked_all;
use crate::scratch::scratch;

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split_whitespace());
    command
}

/// The lines that this command writes.
fn traced(words: &str, file: &Path) -> Vec<Value> {
    succeed(&mut whimbrel(&format!("{words} --clock virtual --trace {}", file.display())));
    let text = fs::read_to_string(file).unwrap();
    checked_all(&text)
}

fn has(line: &Value, event: &str) -> bool {
    line["events"].as_array().unwrap().iter().any(|it| it == event)
}

#[test]
fn transfer_with_loss_has_a_repeatable_trace() {
    let file = scratch("bulk.jsonl");
    let words = "bulk send -n 300k -w mem:rate=10M,delay=10ms,drop=40";
    let lines = traced(words, &file);
    assert!(has(&lines[0], "opened") && lines[0]["ssthresh"].is_null(), "{}", lines[0]);
    let lost = lines.iter().find(|line| has(line, "sent_again")).unwrap();
    assert_eq!(lost["ca_state"], "recovery", "{lost}");
    assert!(lost["ssthresh"].as_u64() < Some(300_000), "{lost}");
    for key in ["cwnd", "pipe", "in_flight", "snd_wnd", "mss", "unsent", "sndbuf", "delivered"] {
        assert!(lost[key].is_u64(), "{key}: {lost}");
    }
    for key in ["t", "srtt", "rttvar", "rto"] {
        assert!(lost[key].as_f64() > Some(0.0), "{key}: {lost}");
    }
    let at = |line: &Value| line["t"].as_f64().unwrap();
    assert!(lines.windows(2).all(|two| at(&two[0]) <= at(&two[1])));
    assert_eq!(traced(words, &file), lines);
}

#[test]
fn trace_numbers_connections_of_all_shards_to_their_end() {
    let lines = traced("load -n 60 -c 4 --no-keepalive --shards 2", &scratch("load.jsonl"));
    let mut ends: BTreeMap<u64, (String, u32, u32)> = BTreeMap::new();
    for line in &lines {
        let flow = format!("{} {}", line["local"], line["remote"]);
        let end = ends.entry(line["conn"].as_u64().unwrap()).or_insert((flow.clone(), 0, 0));
        assert_eq!(end.0, flow, "{line}");
        end.1 += u32::from(has(line, "opened"));
        end.2 += u32::from(has(line, "closed") || has(line, "end"));
    }
    assert_eq!(ends.len(), 60);
    assert!(ends.values().all(|(_, opened, ended)| (*opened, *ended) == (1, 1)), "{ends:?}");
}

#[test]
fn unwritable_trace_is_reported_and_run_continues() {
    let (code, error) = fail(&mut whimbrel("bulk send -n 1M --clock virtual --trace /dev/full"));
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("--trace /dev/full: the trace is incomplete"), "{error}");
    assert!(error.contains("is the disk full?"), "{error}");
}
