//! `whimbrel serve --shards`, against the kernel's own curl and wrk.

use std::process::Command;

use crate::netns::{Net, fail, has, succeed};

/// Curl and wrk meet no error at `host`, which two shards serve on this wire.
fn two_shards_serve(net: &Net, wire: &str, host: &str) {
    let serve = net.serve(&["-w", wire, "--shards", "2"]);
    let curl = "curl -sS --fail --max-time 60 -H Connection:close -o /dev/null -w %{http_code};";
    let text = net.run(&format!("{curl} http://{host}/[1-200]"));
    assert_eq!(text, "200;".repeat(200));
    if has("wrk") {
        let mut wrk = net.command("wrk");
        wrk.args(["-t1", "-d2s", "-c30", "-H", "Connection: close", &format!("http://{host}/")]);
        let text = succeed(&mut wrk);
        assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
    }
    let text = serve.stop();
    assert!(text.contains("shards=2"), "{text}");
    assert!(text.contains("(0 refused); 0 connections failed"), "{text}");
    let served: u64 =
        text.split("served     ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(served >= 200, "{text}");
}

#[test]
fn two_shards_serve_over_tun() {
    let Some(net) = Net::new() else { return };
    two_shards_serve(&net, "tun:whim0,addr=10.9.0.2/24", "10.9.0.2");
}

#[test]
fn two_shards_serve_over_packet() {
    let Some(net) = Net::with_veth() else { return };
    two_shards_serve(&net, "packet:vstack,addr=10.9.0.2/24", "10.9.0.2");
}

#[test]
fn shards_that_cannot_be_exit_with_2() {
    for (words, part) in [
        ("--shards 2 -w unix:/tmp/w,addr=10.9.0.2/24", "this wire has one"),
        ("--shards 2 -w tun:t,addr=10.9.0.2/24,queues=3", "3 queues"),
        ("--shards none", "auto"),
        ("--shards 2 --pcap /dev/null", "--shards 1"),
        ("--pin 100000", "processors 0 to"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let (code, error) = fail(command.arg("serve").args(words.split_whitespace()));
        assert_eq!(code, 2, "{words}: {error}");
        assert!(error.contains(part), "{words}: {error}");
    }
}
