//! Programs that read the output of iproute2's ss, on ours.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::needs;
use crate::operate::World;
use crate::running::succeed_with;

/// A load with open connections, and its sockets as a document.
fn world(name: &str) -> (World, Vec<Value>) {
    let mut world = World::new(name);
    world.start("load -z 1h -c 5 --no-tui");
    world.await_connections("ss --host server -Htan state established", 5);
    let document: Value = serde_json::from_str(&world.ask("ss --host server -tuanj")).unwrap();
    let sockets = document["sockets"].as_array().unwrap().clone();
    (world, sockets)
}

#[test]
fn jc_reads_listeners_and_connections() {
    if !needs::found(&["jc"]) {
        return;
    }
    let (world, sockets) = world("parsers-jc");
    let path = world.folder.join("listing");
    fs::write(&path, world.ask("ss --host server -tuanoe")).unwrap();
    let listing = Stdio::from(fs::File::open(&path).unwrap());
    let read: Vec<Value> =
        serde_json::from_str(&succeed_with(&mut needs::command("jc --ss"), listing)).unwrap();
    assert_eq!(read.len(), 6);
    assert_eq!(read.len(), sockets.len());
    for (entry, socket) in read.iter().zip(&sockets) {
        let is_listener = socket["state"] == "LISTEN";
        assert_eq!(entry["netid"], socket["transport"]);
        assert_eq!(entry["state"], if is_listener { "LISTEN" } else { "ESTAB" });
        assert_eq!(entry["local_address"], socket["local"]["addr"]);
        assert_eq!(entry["local_port_num"], socket["local"]["port"]);
        assert_eq!(
            entry["peer_address"],
            if is_listener { "0.0.0.0".into() } else { socket["remote"]["addr"].clone() }
        );
        let port = entry["peer_port"].as_str().unwrap();
        assert_eq!(
            port,
            if is_listener { "*".into() } else { socket["remote"]["port"].to_string() }
        );
        assert!(entry["recv_q"].is_u64() && entry["send_q"].is_u64(), "{entry}");
    }
    assert_eq!(read[0]["send_q"], sockets[0]["send_q"]);
}

#[test]
fn flent_reads_windows_and_round_trips() {
    if !needs::found(&["flent", "python3"]) {
        return;
    }
    let (world, sockets) = world("parsers-flent");
    let listing = world.ask("ss --host client -tipn state connected dst 10.0.0.2");
    // As its script has it, which asks again and again.
    let path = world.folder.join("listing");
    fs::write(&path, format!("{listing}\nTime: 1700000000.5\n---\n")).unwrap();
    let parse = "import json, sys; sys.path.insert(0, '/usr/share/flent'); \
                 from flent.runners import SsRunner; runner = SsRunner.__new__(SsRunner); \
                 print(json.dumps(runner.parse_part(sys.stdin.read())))";
    let mut python = needs::command("python3");
    let read = succeed_with(python.args(["-c", parse]), fs::File::open(&path).unwrap());
    let read: Vec<Value> = serde_json::from_str(&read).unwrap();
    assert_eq!(read.len(), sockets.iter().filter(|it| it["state"] == "ESTABLISHED").count());
    for entry in &read {
        assert_eq!(entry["dst_p"], 80, "{entry}");
        assert_eq!(entry["pid"], world.pid().to_string(), "{entry}");
        assert_eq!(entry["t"], 1_700_000_000.5, "{entry}");
        assert!(entry["tcp_cwnd"].as_f64().is_some_and(|cwnd| cwnd >= 10.0), "{entry}");
        for name in ["tcp_rtt", "tcp_rtt_var"] {
            assert!(entry[name].as_f64().is_some_and(|time| time > 0.0), "{name}: {entry}");
        }
    }
}
