//! `whimbrel crr`: in memory, over the kernel, and between the two over TUN.

use std::process::Command;

use serde_json::Value;

use crate::netns::Net;
use crate::running::{fail, succeed};
use crate::schema::checked;

fn whimbrel(words: &str) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

#[test]
fn transactions_are_counted_for_every_mode_and_close() {
    for (options, opened) in [
        ("", 200),
        ("--close client", 200),
        ("--close rst", 200),
        ("--mode rr -r 100,2k", 2),
        ("--mode cc", 200),
        ("-w kernel:", 200),
        ("-w kernel: --mode rr", 2),
    ] {
        let text = whimbrel(&format!("crr -n 200 -c 2 --json {options}"));
        let document: Value = checked(&text);
        assert_eq!(document["summary"]["answered"], 200, "{options}: {text}");
        assert_eq!(document["summary"]["failed"], 0, "{options}");
        assert_eq!(document["summary"]["connections_opened"], opened, "{options}");
    }
}

#[test]
fn table_has_netperf_format() {
    let text = whimbrel("crr -l 5s -w mem:delay=1ms --clock virtual");
    assert!(text.contains("TCP_CRR") && text.contains("Trans."), "{text}");
    let row = text.lines().find(|line| line.starts_with("262144")).expect(&text);
    let cells: Vec<_> = row.split_whitespace().collect();
    // SYN and SYN-ACK, request and response, of 2 ms each; the answer's FIN comes with it.
    assert_eq!(&cells[2..7], ["1", "1", "5.00", "250.00", "0"], "{row}");
}

#[test]
fn runs_end_at_confidence_or_maximum() {
    let virtually = "-l 1s -w mem:delay=1ms --clock virtual";
    let sure = whimbrel(&format!("crr -i 3,10 -I 99,5 {virtually}"));
    assert!(sure.contains("mean of 3 runs: 250.00 per sec, +/- 0.00% with 99%"), "{sure}");
    // Of 750 connections over four ports, all but the first four take the place of an older one.
    let ports = "--local-ports 50000-50003";
    let reused = whimbrel(&format!("crr -i 3,10 -I 99,5 {ports} {virtually}"));
    assert!(reused.contains("99.5%"), "{reused}");
    let text =
        whimbrel("crr -i 5,3 -I 95,0.1 -l 1s -w mem:delay=1ms,loss=10% --clock virtual --json");
    let document: Value = checked(&text);
    assert_eq!(document["runs"].as_array().unwrap().len(), 5);
    assert_eq!(document["confidence"]["holds"], false);
    assert!(document["confidence"]["half_width"].as_f64() > Some(0.0005), "{text}");
}

#[test]
fn our_stack_and_the_kernel_measure_each_other_over_tun() {
    let Some(net) = Net::new() else { return };
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    let ours = net.serve(&["--respond", "1,100", "--close", "server"]);
    let text = net.run(&format!("{whimbrel} crr 10.9.0.2:12865 -w kernel: -n 300 -r 1,100 --json"));
    let document: Value = checked(&text);
    assert_eq!(document["summary"]["answered"], 300, "{text}");
    let text = ours.stop();
    assert!(text.contains("300 connections, 300 requests"), "{text}");

    let kernel = net.serve(&["--echo", "-w", "kernel:"]);
    let wire = "tun:whim1,addr=10.8.0.2/24,host=10.8.0.1";
    let crr = format!("crr 10.8.0.1:7 -w {wire} --mode rr -n 300 -c 3 -r 64,64 --json");
    let text = net.run(&format!("{whimbrel} {crr}"));
    let document: Value = checked(&text);
    assert_eq!(document["summary"]["answered"], 300, "{text}");
    kernel.end();
}

#[test]
fn either_side_may_close_first_without_waiting() {
    let Some(net) = Net::new() else { return };
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    for (server, close) in
        [("serve --echo", ""), ("crr --server", ""), ("crr --server", "--close server")]
    {
        let ours = net.serving(&server.split(' ').collect::<Vec<_>>());
        let port = if server == "serve --echo" { 7 } else { 12_865 };
        let crr = format!("crr 10.9.0.2:{port} -w kernel: -n 160 -c 16 {close} --json");
        let text = net.run(&format!("{whimbrel} {crr}"));
        let document: Value = checked(&text);
        let summary = &document["summary"];
        assert_eq!(
            (&summary["answered"], &summary["unclosed"]),
            (&160.into(), &0.into()),
            "{text}"
        );
        assert_eq!(document["phases"]["close"]["count"], 160, "{server} {close}");
        ours.stop();
    }
}

#[test]
fn server_that_does_not_close_is_reported() {
    let Some(net) = Net::new() else { return };
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    let ours = net.serving(&["crr", "--server", "--close", "client"]);
    let crr = "crr 10.9.0.2:12865 -w kernel: -n 4 -c 4 --close server --timeout 1s";
    let text = net.run(&format!("{whimbrel} {crr}"));
    assert!(text.contains("4 connections not closed by the server within --timeout"), "{text}");
    ours.stop();
}

#[test]
fn kernel_without_free_port_waits_and_explains() {
    let Some(net) = Net::new() else { return };
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    let ours = net.serve(&["--echo"]);
    net.set("net.ipv4.ip_local_port_range", "50000 50003");
    // It keeps its ports in TIME-WAIT for a minute.
    let text = net.run(&format!("{whimbrel} crr 10.9.0.2:7 -w kernel: -n 6 --timeout 500ms"));
    for part in [
        "Held up: ",
        "[2] no free port: set net.ipv4.tcp_tw_reuse=1, widen",
        "2 waited for a free port (",
        " in total, ports 50000 to 50003: 4 in TIME-WAIT)",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let mut again = net.command(whimbrel);
    again.args("crr 10.9.0.2:7 -w kernel: -n 6 --timeout 200ms".split(' '));
    let (code, error) = fail(&mut again);
    let reason = "no response (no free port, 3 times, ports 50000 to 50003: 4 in TIME-WAIT)";
    assert!(code == 1 && error.contains(reason), "{code} {error}");
    assert!(error.contains(": set net.ipv4.tcp_tw_reuse=1, widen "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    ours.stop();
}

#[test]
fn target_may_be_a_kernel_server() {
    let Some(net) = Net::new() else { return };
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    for mode in ["crr -r 64,16k", "rr -r 64,16k", "cc"] {
        let server = format!("crr --server --stack kernel --mode {mode}");
        let server: Vec<_> = server.split(' ').collect();
        // The suggested command works.
        let said = net.serving(&server).end();
        let line = said.lines().find_map(|line| line.strip_prefix("try        whimbrel ")).unwrap();
        let mode_of_client = if mode.starts_with("rr") { "--mode rr" } else { "" };
        let other = net.serving(&server);
        let text = net.run(&format!("{whimbrel} {line} -n 50 --json {mode_of_client}"));
        let document: Value = checked(&text);
        assert_eq!(document["summary"]["answered"], 50, "{mode}: {text}");
        other.end();
    }
}
