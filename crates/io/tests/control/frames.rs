//! Captures of a running stack.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::world::{Control, World};

/// Sends a request for frames, and returns the header of their file.
fn begin(control: &mut Control, params: Value) -> Vec<u8> {
    let line = control.ask("pcap", params);
    BASE64_STANDARD.decode(line["pcapng"].as_str().expect("a piece")).expect("base64")
}

/// Ends a capture: its pieces, and its last line.
fn end(control: &mut Control) -> (Vec<u8>, Value) {
    control.send("{\"id\":2,\"method\":\"hello\"}\n");
    rest(control)
}

fn rest(control: &mut Control) -> (Vec<u8>, Value) {
    let mut pcapng = Vec::new();
    loop {
        let line = control.line().expect("a last line");
        let Some(piece) = line["pcapng"].as_str() else { return (pcapng, line) };
        pcapng.extend(BASE64_STANDARD.decode(piece).expect("base64"));
    }
}

fn frames(pcapng: &[u8]) -> u64 {
    let mut rest = pcapng;
    let mut frames = 0;
    while let Some(head) = rest.first_chunk::<8>() {
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        frames += u64::from(number(0) == 6);
        rest = rest.get(number(4) as usize..).expect("a whole block");
    }
    frames
}

#[test]
fn handshakes_of_all_shards_are_captured_until_the_next_request() {
    let world = World::new();
    world.connect(3);
    let mut control = Control::new(&world.path());
    let header = begin(&mut control, json!({ "filter": "tcp[tcpflags] & tcp-syn != 0" }));
    assert_eq!(header.first_chunk(), Some(&[0x0a, 0x0d, 0x0d, 0x0a]));
    world.connect(40);
    let (pcapng, last) = end(&mut control);
    assert_eq!(last, json!({ "id": 1, "done": { "frames": 80, "dropped": 0 } }));
    assert_eq!(frames(&pcapng), 80);
    let comment = b"state: SYN-RECEIVED";
    assert_eq!(pcapng.windows(comment.len()).filter(|it| it == comment).count(), 40);
    // The request that ended it is answered, and others may follow.
    assert_eq!(control.line().expect("an answer")["id"], 2);
    assert!(control.ask("summary", json!({})).get("result").is_some());
}

#[test]
fn capture_ends_after_its_count_whatever_its_shards() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    begin(&mut control, json!({ "count": 25, "snap": 40 }));
    world.connect(40);
    let (pcapng, last) = rest(&mut control);
    assert_eq!(last, json!({ "id": 1, "done": { "frames": 25, "dropped": 0 } }));
    assert_eq!(frames(&pcapng), 25);
}

#[test]
fn wrong_parameters_of_a_capture_are_refused() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    for (params, why) in [
        (json!({ "filter": "port" }), "filter: "),
        (json!({ "snap": 0 }), "snap is no whole number from 1 on"),
        (json!({ "count": "3" }), "count is no whole number from 1 on"),
        (json!({ "host": "client" }), "host"),
        (json!({ "frames": 1 }), "no parameter"),
    ] {
        let error = control.ask("pcap", params)["error"].clone();
        assert_eq!(error["code"], "bad-request");
        assert!(error["message"].as_str().expect("a text").contains(why), "{error}");
    }
}

#[test]
fn client_that_reads_no_frames_loses_its_stream() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    begin(&mut control, json!({}));
    // A socket holds less than these: the rest waits for the client, or is dropped.
    for _ in 0..6 {
        world.connect(1_000);
    }
    std::thread::sleep(Duration::from_millis(5_500));
    let mut last = Value::Null;
    while let Some(line) = control.line() {
        last = line;
    }
    assert_eq!(last["error"]["code"], "slow");
    // The shards go on, and other clients capture.
    let mut other = Control::new(&world.path());
    begin(&mut other, json!({}));
    world.connect(1);
    assert_eq!(end(&mut other).1["done"], json!({ "frames": 3, "dropped": 0 }));
}
