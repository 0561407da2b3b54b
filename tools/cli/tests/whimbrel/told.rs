//! Output of `serve` for programs, and of slow servers.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::netns::Net;
use crate::running::{Running, Signal, await_that, fail, output};
use crate::schema::checked;

/// Output of `whimbrel` with these words in `net`, from before `meanwhile` until it is stopped
/// afterwards, and its exit code. `ask` is a line that succeeds once it serves.
fn serving(net: &Net, words: &str, ask: &str, meanwhile: impl FnOnce()) -> (String, i32, String) {
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Running::start(&mut command);
    let mut words = ask.split(' ');
    let mut ask = net.command(words.next().unwrap());
    ask.args(words);
    await_that("it serves", || output(&mut ask).status.success());
    meanwhile();
    child.signal(Signal::TERM);
    let Output { status, stdout, stderr } = child.output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(stdout), status.code().unwrap(), text(stderr))
}

fn parse(text: &str) -> Value {
    checked(text)
}

const CURL: &str = "curl -sS --fail --max-time 20 -o /dev/null";

#[test]
fn serve_document_has_the_common_members() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let ask = format!("{CURL} http://10.9.0.2/");
    let meanwhile = || drop(net.run(&format!("{CURL} http://10.9.0.2/[1-4]")));
    let (text, code, error) = serving(&net, "serve --json --seed 7 -S msl=5s", &ask, meanwhile);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("stack up on tun:whim0") && error.contains("listening  "), "{error}");
    let document = parse(&text);
    let load = net.run(&format!("{} load -n 5 -c 1 --json", env!("CARGO_BIN_EXE_whimbrel")));
    for member in ["tool", "env", "config", "seed", "stack", "rules", "effort", "target"] {
        let kind = |document: &Value| std::mem::discriminant(&document[member]);
        assert!(!document[member].is_null(), "{member} is missing: {text}");
        assert_eq!(kind(&document), kind(&parse(&load)), "{member}: {text}");
    }
    assert_eq!(document["schema"], "whimbrel.serve/1");
    assert_eq!(document["seed"], 7);
    assert_eq!(document["config"]["content"]["body"], 128);
    assert_eq!(document["rules"]["tunables"]["msl.link"]["origin"], "--set");
    assert_eq!(document["stack"]["kernel"], Value::Null);
    let requests = document["summary"]["requests"].as_u64().unwrap();
    assert!(requests >= 5, "{text}");
    let counters = &document["stack"]["server"]["counters"];
    assert_eq!(counters["TcpPassiveOpens"], document["summary"]["accepted"], "{text}");
}

#[test]
fn kernel_serve_document_has_kernel_counters() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let words = "serve -w kernel: -l 127.0.0.1:8080 --json --close client";
    let ask = format!("{CURL} http://127.0.0.1:8080/");
    let (text, ..) = serving(&net, words, &ask, || ());
    let document = parse(&text);
    assert_eq!(document["config"]["close"], "client");
    assert_eq!(document["stack"]["server"], Value::Null);
    let opens = document["stack"]["kernel"]["counters"]["TcpPassiveOpens"].as_u64();
    assert!(opens >= Some(1), "{text}");
}

#[test]
fn each_second_is_a_json_line_and_fail_if_applies() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let ask = format!("{CURL} http://127.0.0.1:8080/");
    let serve = "serve -w kernel: -l 127.0.0.1:8080";
    let wait = || std::thread::sleep(Duration::from_millis(2_300));
    let (text, ..) = serving(&net, &format!("{serve} --json-stream"), &ask, wait);
    let lines: Vec<Value> = text.lines().map(parse).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert!(of("interval") >= 2 && of("summary") == 1, "{text}");
    assert!(lines.last().unwrap()["data"]["summary"]["requests"].as_u64() >= Some(1), "{text}");
    let (text, ..) = serving(&net, &format!("{serve} --csv"), &ask, wait);
    assert!(text.starts_with("start,end,accepted,requests,open,"), "{text}");
    assert!(text.lines().count() >= 3, "{text}");
    let no = format!("{serve} --fail-if requests>0 --quiet");
    let (text, code, error) = serving(&net, &no, &ask, || ());
    assert_eq!((text.as_str(), code), ("", 3), "{error}");
    assert!(error.contains("--fail-if requests>0: failed: requests is "), "{error}");
}

#[test]
fn think_time_delays_answers() {
    let Some(net) = Net::with(&["curl"]) else { return };
    for (wire, at) in [("tun:whim0,addr=10.9.0.2/24", "10.9.0.2:80"), ("kernel:", "127.0.0.1:80")] {
        let serve = net.serve(&["-w", wire, "-l", at, "--think", "200ms"]);
        // Two at once think at once.
        let line = format!(
            "{CURL} -Z -w %{{time_connect}},%{{time_starttransfer}}; http://{at}/1 -o /dev/null \
             http://{at}/2"
        );
        for pair in net.run(&line).trim_end_matches(';').split(';') {
            let (connect, first) = pair.split_once(',').unwrap();
            let (connect, first): (f64, f64) = (connect.parse().unwrap(), first.parse().unwrap());
            assert!(connect < 0.15 && (0.2..0.39).contains(&first), "{wire} {pair}");
        }
        serve.end();
    }
}

#[test]
fn accept_delay_overflows_the_queue() {
    let Some(net) = Net::new() else { return };
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    for (wire, at) in [("tun:whim0,addr=10.9.0.2/24", "10.9.0.2:7"), ("kernel:", "127.0.0.1:7")] {
        let words =
            format!("serve --echo -w {wire} -l {at} --backlog 2 --accept-delay 150ms --json");
        let ask = format!("{whimbrel} crr {at} -w kernel: -n 1 --quiet");
        let load = || {
            let crr = format!("{whimbrel} crr {at} -w kernel: -n 10 -c 10 --json");
            let document = parse(&net.run(&crr));
            assert_eq!(document["summary"]["answered"], 10, "{document}");
            let slowest = document["latency"]["max"].as_f64().unwrap();
            assert!(slowest > 0.9, "{slowest}");
        };
        let (text, ..) = serving(&net, &words, &ask, load);
        let stack = &parse(&text)["stack"];
        let side = if wire == "kernel:" { "kernel" } else { "server" };
        let overflows = stack[side]["counters"]["TcpExtListenOverflows"].as_u64();
        assert!(overflows > Some(0), "{wire}: {stack}");
    }
}

#[test]
fn delay_options_without_effect_are_refused() {
    let Some(net) = Net::new() else { return };
    for words in [
        "load http://10.9.0.1/ -w kernel: --think 1s",
        "crr 10.9.0.1:7 -w kernel: --accept-delay 1s",
        "serve --chargen --think 1s",
        "crr --mode cc --think 1s",
        "crr --server --mode cc --think 1s",
    ] {
        let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
        let (code, error) = fail(command.args(words.split(' ')));
        assert_eq!(code, 2, "{words}: {error}");
        assert!(error.contains("leave it out"), "{words}: {error}");
    }
}
