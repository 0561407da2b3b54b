//! `--shards`: a server against the kernel's own curl and wrk, loads in memory and against the kernel.
//! The counts of all shards must add up.

use std::process::Command;

use serde_json::Value;

use crate::capture;
use crate::netns::Net;
use crate::running::{Running, Signal, await_that, fail, succeed, unbroken};
use crate::scratch::scratch;

fn whimbrel(words: &str) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

fn document(words: &str) -> Value {
    serde_json::from_str(&whimbrel(words)).unwrap()
}

/// The sum of a key over the intervals.
fn sum(intervals: &Value, key: &str) -> u64 {
    intervals.as_array().unwrap().iter().map(|interval| interval[key].as_u64().unwrap()).sum()
}

#[test]
fn a_load_in_memory_adds_up_over_its_shards() {
    for link in ["mem:", "mem:delay=1ms,rate=100M"] {
        let load = format!("load -n 2001 -c 10 -K --shards 2 -i 100ms --json -w {link}");
        let document = document(&load);
        let client = &document["stack"]["client"]["counters"];
        let server = &document["stack"]["server"]["counters"];
        assert_eq!(document["summary"]["answered"], 2_001, "{link}: {document}");
        assert_eq!(document["statuses"]["200"], 2_001);
        assert_eq!(document["phases"]["connect"]["count"], 2_001);
        assert_eq!(sum(&document["intervals"], "answered"), 2_001);
        assert_eq!(
            (&client["TcpActiveOpens"], &server["TcpPassiveOpens"]),
            (&2_001.into(), &2_001.into())
        );
        assert_eq!(document["links"][0]["sent"], client["TcpOutSegs"], "{link}");
        // The run ends with the last answer: of each connection one acknowledgment may be under way.
        let segs = |counters: &Value, name: &str| counters[name].as_u64().unwrap();
        let under_way = segs(client, "TcpOutSegs").checked_sub(segs(server, "TcpInSegs"));
        assert!(under_way.is_some_and(|segs| segs <= 10), "{link}: {document}");
        assert_eq!(document["env"]["shards"], 2);
        assert_eq!(document["steering"]["forwarded"], 0, "every port led home");
    }
    let text = whimbrel("load -n 100 -c 4 --shards 2");
    assert!(text.contains("over mem:  on 2 shards") && text.contains("frames passed on"), "{text}");
}

#[test]
fn virtual_shards_repeat_exactly_and_keep_the_rate() {
    for link in ["delay=10ms,loss=1%", "delay=10ms,loss=1%,rate=10M"] {
        let load = format!(
            "load -z 60s -c 6 -q 100 -w mem:{link} --clock virtual --seed 7 --shards 2 --json"
        );
        let first = document(&load);
        let summary = &first["summary"];
        let begun = [&summary["answered"], &summary["in_flight_at_end"], &summary["never_begun"]];
        assert_eq!(
            begun.iter().filter_map(|count| count.as_u64()).sum::<u64>(),
            6_000,
            "{summary}"
        );
        assert_eq!(summary["duration"], 60.0);
        assert_eq!(first, document(&load), "the same seed gives the same run");
    }
}

#[test]
fn shards_report_each_interval_once() {
    let load = "load -z 3s -q 100 -c 4 --repeat 2 --gap 1s -w mem:delay=1ms --shards 2";
    for clock in ["virtual", "real"] {
        // In real time the gap is shorter: only the sum is checked.
        let gap = if clock == "real" { "-z 500ms -i 100ms --gap 100ms" } else { "" };
        let load = if gap.is_empty() {
            load.to_owned()
        } else {
            load.replace("-z 3s", gap).replace(" --gap 1s", "")
        };
        let text = whimbrel(&format!("{load} --clock {clock} --json-stream"));
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (last, intervals) = lines.split_last().unwrap();
        for run in 1..=2_usize {
            let own = intervals.iter().filter(|line| line["data"]["run"] == run);
            let answered: u64 = own.map(|line| line["data"]["answered"].as_u64().unwrap()).sum();
            assert_eq!(last["data"]["runs"][run - 1]["answered"], answered, "{text}");
        }
        if clock == "virtual" {
            assert_eq!(intervals.len(), 6, "{text}");
        }
    }
}

#[test]
fn transactions_and_transfers_add_up_over_shards_too() {
    let crr = document("crr -n 301 -c 3 --shards 3 --json");
    assert_eq!(crr["summary"]["answered"], 301);
    assert_eq!(crr["stack"]["server"]["counters"]["TcpPassiveOpens"], 301);
    let bulk = document("bulk send -n 9M -P 3 --shards 2 --json");
    assert_eq!(bulk["streams"].as_array().unwrap().len(), 3);
    assert_eq!(bulk["summary"]["sent"], 9 << 20);
    let confirmed = bulk["streams"].as_array().unwrap().iter().map(|stream| &stream["confirmed"]);
    assert!(confirmed.into_iter().all(|bytes| *bytes == 3 << 20), "{bulk}");
    let text = whimbrel("bulk recv -n 1M -P 2 --shards auto --json-stream -i 10ms");
    assert!(text.lines().last().unwrap().contains(r#""event":"summary""#), "{text}");
}

#[test]
fn shards_agree_on_the_number_of_runs() {
    let crr = "crr -n 400 -c 4 -i 3,9 -I 95,5 --shards 2 --json";
    let real = document(crr);
    let virtually = format!("{crr} -w mem:delay=1ms,jitter=1ms --clock virtual");
    let (once, again) = (document(&virtually), document(&virtually));
    assert_eq!(once, again);
    for document in [real, once] {
        let runs = document["runs"].as_array().unwrap();
        let rates: Vec<_> = runs.iter().map(|run| run["rate"]["mean"].as_f64().unwrap()).collect();
        assert!((3..=9).contains(&runs.len()), "{document}");
        assert!(runs.iter().all(|run| run["answered"] == 400), "{document}");
        let sure = &document["confidence"];
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((sure["mean_rate"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9, "{document}");
        // It ended because all are sure, or because there may be no more.
        assert!(sure["holds"] == true || runs.len() == 9, "{document}");
    }
}

#[test]
fn one_capture_has_the_frames_of_all_shards() {
    let path = scratch("shards.pcapng");
    for clock in ["virtual", "real"] {
        let load = format!("load -n 40 -c 4 -K --shards 2 --clock {clock} --json --pcap");
        let document = document(&format!("{load} {}", path.display()));
        let counters = &document["stack"]["client"]["counters"];
        let frames = ["TcpInSegs", "TcpOutSegs"].map(|name| counters[name].as_u64().unwrap());
        let comments = capture::comments(&path);
        assert_eq!(comments.len() as u64, frames.iter().sum::<u64>(), "{clock}");
        let opened = comments.iter().filter(|comment| *comment == "state: SYN-SENT").count();
        assert_eq!(opened, 40, "{clock}: {comments:?}");
    }
    std::fs::remove_file(path).unwrap();
}

/// A client of two shards on this wire loads the kernel's web server, by ports that lead home.
fn two_shards_load(net: &Net, wire: &str) {
    let mut serve = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    serve.args(["serve", "-w", "kernel:", "-l", "0.0.0.0:8080", "--quiet"]);
    let mut serve = Running::start(&mut serve);
    await_that("the kernel listens", || net.run("ss -tln").contains(":8080"));
    let load = "load http://10.9.0.1:8080/ -n 400 -c 8 -K --shards 2 --json";
    for close in ["server", "client"] {
        let text = net
            .run(&format!("{} {load} -w {wire} --close {close}", env!("CARGO_BIN_EXE_whimbrel")));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["statuses"]["200"], 400, "{text}");
        assert_eq!(document["summary"]["failed"], 0, "{text}");
        assert_eq!(document["stack"]["client"]["counters"]["TcpActiveOpens"], 400);
        assert_eq!(document["steering"]["dropped"], 0, "{text}");
        assert_eq!(document["env"]["shards"], 2);
    }
    serve.signal(Signal::TERM);
    assert!(serve.wait().success());
}

#[test]
fn two_shards_load_over_tun() {
    let Some(net) = Net::with(&["ss"]) else { return };
    two_shards_load(&net, "tun:whim1,addr=10.9.0.2/24,host=10.9.0.1");
}

#[test]
fn two_shards_load_over_packet() {
    let Some(net) = Net::with_veth(&["ss"]) else { return };
    two_shards_load(&net, "packet:vstack,addr=10.9.0.2/24");
}

/// Curl and wrk meet no error at `host`, which two shards serve on this wire.
fn two_shards_serve(net: &Net, wire: &str, host: &str) {
    let path = net.folder().join("served.pcapng");
    let pcap = format!("{},snap=96", path.display());
    let serve = net.serve(&["-w", wire, "--shards", "2", "--pcap", &pcap]);
    let curl = "curl -sS --fail --max-time 60 -H Connection:close -o /dev/null -w %{http_code};";
    let text = net.run(&format!("{curl} http://{host}/[1-200]"));
    assert_eq!(text, "200;".repeat(200));
    let mut wrk = net.command("wrk");
    wrk.args(["-t1", "-d2s", "-c30", "-H", "Connection: close", &format!("http://{host}/")]);
    let text = succeed(&mut wrk);
    assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
    let text = serve.stop();
    assert!(text.contains("shards=2"), "{text}");
    assert!(unbroken(&text).contains("frames passed on between shards, 0 dropped there"), "{text}");
    assert!(unbroken(&text).contains("(0 refused); 0 connections failed"), "{text}");
    let served: u64 =
        text.split("served     ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(served >= 200, "{text}");
    let comments = capture::comments(&path);
    let opened = comments.iter().filter(|comment| comment.contains("state: SYN-RECEIVED")).count();
    // A SYN that was sent again is one connection; a busy machine may leave one that came to nothing.
    assert!(opened as u64 >= served, "{opened} of {served} are in the capture");
}

#[test]
fn two_shards_serve_over_tun() {
    let Some(net) = Net::with(&["curl", "wrk"]) else { return };
    two_shards_serve(&net, "tun:whim0,addr=10.9.0.2/24", "10.9.0.2");
}

#[test]
fn two_shards_serve_over_packet() {
    let Some(net) = Net::with_veth(&["curl", "wrk"]) else { return };
    two_shards_serve(&net, "packet:vstack,addr=10.9.0.2/24", "10.9.0.2");
}

#[test]
fn invalid_shards_exit_2() {
    for (words, part) in [
        ("load --shards 2 -c 1", "--connections gives work for only 1"),
        ("load --shards 3 -n 2", "-n gives work for only 2"),
        ("bulk send --shards 2", "--parallel gives work for only 1"),
        ("load -w kernel: --shards 2", "among --threads"),
        ("load --shards 2 --pin 100000", "processors 0 to"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let (code, error) = fail(command.args(words.split_whitespace()));
        assert_eq!(code, 2, "{words}: {error}");
        assert!(error.contains(part), "{words}: {error}");
    }
    for (words, part) in [
        ("--shards 2 -w unix:/tmp/w,addr=10.9.0.2/24", "this wire has one"),
        ("--shards 2 -w tun:t,addr=10.9.0.2/24,queues=3", "3 queues"),
        ("--shards none", "auto"),
        ("--pin 100000", "processors 0 to"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let (code, error) = fail(command.arg("serve").args(words.split_whitespace()));
        assert_eq!(code, 2, "{words}: {error}");
        assert!(error.contains(part), "{words}: {error}");
    }
}
