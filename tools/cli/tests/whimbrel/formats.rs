//! Documents in other tools' formats, compared with those of the tools: key by key, type by type, and
//! by the same reader.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::netns::Net;
use crate::running::{Running, await_that, succeed};

/// The types that the values of a key have, by the way to it; the elements of lists have one way.
type Shape = BTreeMap<String, BTreeSet<&'static str>>;

fn shape(document: &Value) -> Shape {
    fn walk(value: &Value, path: &str, shape: &mut Shape) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            // Zero has no unit; some tools also print zero seconds without a point.
            Value::Number(number) if number.as_f64() == Some(0.0) => "zero",
            Value::Number(number) if number.is_u64() => "count",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        shape.entry(path.into()).or_default().insert(kind);
        match value {
            Value::Array(list) => {
                list.iter().for_each(|value| walk(value, &format!("{path}[]"), shape));
            }
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}"), shape));
            }
            _ => {}
        }
    }
    let mut all = Shape::new();
    walk(document, "", &mut all);
    all
}

/// `ours` has every key that `theirs` has, but for those that begin with one of `untold`, and no
/// other; and a value that is a count with them is one with us.
fn assert_same_shape(theirs: &Value, ours: &Value, untold: &[&str]) {
    let (theirs, ours) = (shape(theirs), shape(ours));
    let is_told = |path: &&String| !untold.iter().any(|untold| path.starts_with(untold));
    let missing: Vec<_> = theirs.keys().filter(|path| !ours.contains_key(*path)).collect();
    let missing: Vec<_> = missing.into_iter().filter(is_told).collect();
    let more: Vec<_> = ours.keys().filter(|path| !theirs.contains_key(*path)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:?}, too many {more:?}");
    for (path, kinds) in &ours {
        let known = &theirs[path];
        let fits = |kind: &&str| match *kind {
            "zero" | "count" => ["zero", "count", "number"].iter().any(|it| known.contains(it)),
            // A measured value can be a whole number by chance: a test of a second took exactly that.
            "number" if MEASURED.iter().any(|end| path.ends_with(end)) => true,
            "number" => ["zero", "number"].iter().any(|it| known.contains(it)),
            other => known.contains(other),
        };
        assert!(kinds.iter().all(fits), "{path}: {kinds:?}, and theirs {known:?}");
    }
}

/// Endings of the paths of measured values: times, rates and shares.
const MEASURED: [&str; 4] = ["seconds", "/start", "/end", "_second"];

/// An iperf3 that serves one client, in a namespace.
fn serve_iperf3(net: &Net) -> Running {
    let mut command = net.command("iperf3");
    command.args(["-s", "-1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running::start(&mut command);
    await_that("iperf3 listens", || net.run("ss -tln").contains(":5201"));
    server
}

/// Values that a reader of iperf3's documents takes from one: bytes sent and received, of the transfer
/// as a whole. Each value must agree with the rest of the document.
fn read_as_iperf3(document: &Value, ways: &[&str]) -> Vec<(u64, u64)> {
    let at =
        |path: String| document.pointer(&path).unwrap_or_else(|| panic!("no {path}: {document}"));
    let number = |path: String| at(path).as_f64().unwrap();
    let streams = at("/start/connected".into()).as_array().unwrap().len();
    assert_eq!(at("/end/streams".into()).as_array().unwrap().len(), streams);
    let read = |way: &&str| {
        let side = |side: &str| {
            let sum = format!("/end/sum_{side}{way}");
            let bytes = at(format!("{sum}/bytes")).as_u64().unwrap();
            let bits = number(format!("{sum}/bits_per_second")) * number(format!("{sum}/seconds"));
            assert!((bits / 8.0 - bytes as f64).abs() <= 0.01 * bytes as f64, "{sum}: {document}");
            bytes
        };
        let sum = format!("sum{way}");
        let intervals = at("/intervals".into()).as_array().unwrap().iter();
        let counted = intervals.filter(|interval| interval[&sum]["omitted"] == false);
        let moved: u64 = counted.map(|interval| interval[&sum]["bytes"].as_u64().unwrap()).sum();
        let (sent, received) = (side("sent"), side("received"));
        let own = if at(format!("/end/sum_sent{way}/sender")) == true { sent } else { received };
        assert!(moved.abs_diff(own) <= own / 20, "{moved} of {own}: {document}");
        (sent, received)
    };
    ways.iter().map(read).collect()
}

#[test]
fn iperf3_document_matches_iperf3() {
    let Some(net) = Net::with(&["iperf3", "ss"]) else { return };
    // The other side does not report its processor load or its retransmissions.
    let remote = "/end/cpu_utilization_percent/remote_";
    let reverse = [remote, "/end/streams[]/sender/retransmits", "/end/sum_sent/retransmits"];
    let both = [remote, "/end/sum_sent_bidir_reverse/retransmits"];
    for (theirs, ours, untold, ways) in [
        ("", "send", &[remote][..], &[""][..]),
        ("-R", "recv", &reverse, &[""]),
        ("--bidir -P 2 -O 1", "send --bidir -P 2 -O 1s", &both, &["", "_bidir_reverse"]),
    ] {
        let _server = serve_iperf3(&net);
        let theirs = net.run(&format!("iperf3 -c 127.0.0.1 -t 1 -i 0.5 -J {theirs}"));
        let theirs: Value = serde_json::from_str(&theirs).unwrap();
        assert!(theirs["start"]["version"].as_str().unwrap().starts_with("iperf 3"), "{theirs}");
        let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
        for wire in ["kernel:", "mem:"] {
            let bulk = format!("{whimbrel} bulk {ours} -t 1 -i 500ms -w {wire} --json=iperf3");
            println!("{bulk}");
            let ours: Value = serde_json::from_str(&net.run(&bulk)).unwrap();
            assert_same_shape(&theirs, &ours, untold);
            read_as_iperf3(&ours, ways);
        }
        println!("as iperf3 tells it");
        read_as_iperf3(&theirs, ways);
    }
}

#[test]
fn oha_document_matches_oha() {
    // oha 1.16.0 -n 200 -c 5 --no-tui --output-format json http://127.0.0.1:8080/, of `whimbrel serve
    // -w kernel: -l 127.0.0.1:8080`.
    let theirs: Value = serde_json::from_str(include_str!("../data/oha-1.16.0.json")).unwrap();
    let load = "load -n 200 -c 5 -w kernel: --json=oha";
    let ours = succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(load.split(' ')));
    let ours: Value = serde_json::from_str(&ours).unwrap();
    // The bars of histograms lie where the times do.
    let without_bars = |mut document: Value| {
        for histogram in ["responseTimeHistogram", "firstByteHistogram"] {
            let bars = document[histogram].take();
            let bars = bars.as_object().unwrap();
            assert_eq!(bars.len(), 11, "{bars:?}");
            assert!(bars.keys().all(|end| end.parse::<f64>().is_ok()), "{bars:?}");
            assert_eq!(bars.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 200);
        }
        document
    };
    assert_same_shape(&without_bars(theirs), &without_bars(ours), &[]);
}
