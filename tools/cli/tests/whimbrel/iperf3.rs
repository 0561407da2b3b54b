//! `whimbrel bulk` and iperf3: each a client of the other, over TUN and over the kernel's sockets.

use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::needs::IPV6;
use crate::netns::{Net, Serve};
use crate::running::{Running, Signal, await_that, fail, interrupt, output, succeed, unbroken};
use crate::schema::{checked, checked_all};

const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");
const TUN: &str = "-w tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";

fn server(net: &Net, words: &str) -> Serve {
    net.serving(&["bulk --server", words].join(" ").split_whitespace().collect::<Vec<_>>())
}

/// A document of a test in which the rates of both ends differ by less than 2 %, for both with
/// `--bidir`. A lack of processor time can cause a difference, so the test runs twenty times at most.
fn agreed(net: &Net, line: &str) -> Value {
    let mut attempts = (0..20).map(|_| document(net, line));
    let mut last = None;
    let found = attempts.find(|told| {
        let forth = disagreement(told, "", line);
        let back = line.contains("--bidir").then(|| disagreement(told, "_bidir_reverse", line));
        last = forth.or(back.flatten());
        last.is_none()
    });
    found.unwrap_or_else(|| panic!("{}", last.unwrap_or_default()))
}

/// The document that a line prints; it must succeed.
fn document(net: &Net, line: &str) -> Value {
    let text = net.run(line);
    if line.starts_with("iperf3") {
        return serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{line}: {error}: {text}"));
    }
    checked(&text)
}

/// By how much both ends' rates differ in one direction, the first or the other of `--bidir`, if that
/// is 2 % or more.
fn disagreement(document: &Value, other: &str, line: &str) -> Option<String> {
    let rate = |end: &str| {
        let rate = document["end"][format!("{end}{other}")]["bits_per_second"].as_f64();
        rate.unwrap_or_else(|| panic!("{line}: no {end}{other}: {document}"))
    };
    let (sent, received) = (rate("sum_sent"), rate("sum_received"));
    assert!(sent > 1e6, "{line}: {sent}");
    let agree = (sent - received).abs() < 0.02 * sent;
    (!agree).then(|| format!("{line}: {sent} sent, {received} received"))
}

/// `iperf3 -s`, when it listens.
fn iperf3_server(net: &Net, options: &[&str]) -> Running {
    let mut command = net.command("iperf3");
    command.args(["-s", "--forceflush"]).args(options);
    let server = Running::start(command.stdout(Stdio::null()));
    // At an address of either family.
    let tables = || succeed(net.command("sh").args(["-c", "cat /proc/net/tcp*"]));
    let listens = || tables().contains(":1451 ");
    await_that("iperf3 listens at port 5201", listens);
    server
}

#[test]
fn iperf3_clients_are_served_in_turn() {
    let Some(net) = Net::with(&[IPV6, "iperf3"]) else { return };
    let serve = server(&net, "");
    let one_way = ["-R", "-P 4", "-O 1 -R", "-w 256K", "-N -l 8K -M 1000", "-4 -C cubic -i 0.5"];
    for options in ["", "--bidir"].into_iter().chain(one_way) {
        let line = format!("iperf3 -J -t 2 -c 10.9.0.2 {options}");
        let told = agreed(&net, &line);
        assert!(
            told["end"]["cpu_utilization_percent"]["remote_total"].as_f64() > Some(0.0),
            "{line}"
        );
        // iperf3 names only its own end of a test both ways.
        let own = if options.contains("-R") { "sender" } else { "receiver" };
        let named = &told["end"][format!("{own}_tcp_congestion")];
        assert!(options == "--bidir" || named == "cubic", "{line}: {named}");
    }
    let line = "iperf3 -J -n 30M -b 400M -6 -c fd09::2 --get-server-output";
    let told = agreed(&net, line);
    let printed = told["server_output_text"].as_str().unwrap();
    assert!(printed.contains("Accepted connection from fd09::1"), "{printed}");
    let text = serve.stop();
    assert!(text.matches("Accepted connection from").count() >= 8, "{text}");
    assert!(unbroken(&text).contains("requests (0 refused); 0 connections failed"), "{text}");
}

#[test]
fn each_served_test_is_a_document() {
    let Some(net) = Net::with(&["iperf3"]) else { return };
    let mut command = net.command(WHIMBREL);
    let line = "bulk --server --json -w kernel: --listen 127.0.0.1:5301";
    command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::null());
    let server = Running::start(&mut command);
    await_that("the server listens", || net.run("cat /proc/net/tcp").contains(":14B5 "));
    for options in ["-P 2", "-R", "--bidir"] {
        net.run(&format!("iperf3 -t 1 -c 127.0.0.1 -p 5301 {options}"));
    }
    fail(net.command("iperf3").args(["-u", "-c", "127.0.0.1", "-p", "5301"]));
    server.signal(Signal::TERM);
    let ended = server.output();
    let told = checked_all(&String::from_utf8_lossy(&ended.stdout));
    let [up, down, both, refused, server] = told.as_slice() else { panic!("{told:#?}") };
    let whole = |test: &Value, sum: &str| {
        let named: u64 = test["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|interval| {
                let sum = sum.replace("_sent", "").replace("_received", "");
                interval[sum]["bytes"].as_u64().unwrap()
            })
            .sum();
        assert_eq!(test["end"][sum]["bytes"], named, "{sum}: {test:#}");
        assert!(named > 1 << 20, "{sum}: {test:#}");
    };
    whole(up, "sum_received");
    assert_eq!(up["start"]["connected"].as_array().unwrap().len(), 2, "{up:#}");
    assert_eq!(up["end"]["streams"][1]["receiver"]["sender"], false, "{up:#}");
    whole(down, "sum_sent");
    assert_eq!(down["start"]["test_start"]["reverse"], 1, "{down:#}");
    whole(both, "sum_received");
    whole(both, "sum_sent_bidir_reverse");
    assert_eq!(refused["error"], "the test was refused: only TCP is spoken here", "{refused:#}");
    assert_eq!(server["schema"], "whimbrel.serve/1", "{server:#}");
    assert_eq!(server["summary"]["requests"], 4, "{server:#}");
}

#[test]
fn unsupported_test_gets_iperf3_error() {
    let Some(net) = Net::with(&["iperf3"]) else { return };
    let serve = server(&net, "");
    let cases = [("-u", "protocol does not exist"), ("-R -S 8", "not implemented yet")];
    for (options, said) in cases {
        let mut command = net.command("iperf3");
        let line = format!("-t 1 -c 10.9.0.2 {options}");
        let (code, error) = fail(command.args(line.split_whitespace()));
        assert!(code == 1 && error.contains(said), "{options}: {code} {error}");
    }
    let text = serve.stop();
    assert!(text.contains("2 requests (2 refused)"), "{text}");
}

#[test]
fn whimbrel_runs_as_iperf3_client() {
    let Some(net) = Net::with(&[IPV6, "iperf3"]) else { return };
    let mut server = iperf3_server(&net, &[]);
    let lines = [
        "send 10.9.0.1 -t 2",
        "recv 10.9.0.1 -t 2 -P 2",
        "send 10.9.0.1 -t 2 --bidir",
        "send 10.9.0.1:5201 -t 1 -O 1 --window 512k",
    ];
    for words in lines {
        let line = format!("{WHIMBREL} bulk {words} {TUN} --json=iperf3");
        agreed(&net, &line);
    }
    let kernel = format!("{WHIMBREL} bulk recv ::1 -6 -t 1 -w kernel: --window 256k --json=iperf3");
    agreed(&net, &kernel);
    let line = format!("{WHIMBREL} bulk send 10.9.0.1 -n 40M {TUN} --get-server-output --json");
    let told = document(&net, &line);
    assert_eq!(told["summary"]["sent"], 40 << 20);
    // iperf3 leaves unread what waits behind the word that it is over: as much as the kernel's buffer takes.
    let there = told["streams"][0]["peer"]["octets"].as_u64().unwrap();
    assert!((32 << 20..=40 << 20).contains(&there), "{there}");
    assert!(told["summary"]["server_output"].as_str().unwrap().contains("receiver"), "{told}");
    // Afterwards it is as free as before.
    assert!(server.end().is_none());
    drop(server);
    // One that serves once is content.
    let mut server = iperf3_server(&net, &["-1"]);
    net.run(&format!("{WHIMBREL} bulk send 10.9.0.1 -t 1 {TUN}"));
    assert!(server.wait().success());
}

/// Unpaced, each is gigabits. Lack of processor time makes them slower, never faster.
#[test]
fn fq_rate_of_20m_is_kept_by_sender_with_iperf3_as_peer() {
    let Some(net) = Net::with(&["iperf3"]) else { return };
    let limits = 1e6..20.4e6;
    let serve = server(&net, "");
    let told = document(&net, "iperf3 -J -t 3 -O 1 -R -c 10.9.0.2 --fq-rate 20M");
    let rate = told["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!(limits.contains(&rate), "{rate}: {told:#}");
    serve.stop();
    // Of its server no more can be asked: it does not keep the rate that its own client asks for with -R either.
    let _server = iperf3_server(&net, &[]);
    let line = format!("bulk send 10.9.0.1 {TUN} -t 3 -O 1s --fq-rate 20M --json=iperf3");
    let told = document(&net, &format!("{WHIMBREL} {line}"));
    let rate = told["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!(limits.contains(&rate), "{rate}: {told:#}");
}

#[test]
fn whimbrel_client_uses_its_own_server_on_kernel_sockets() {
    let Some(net) = Net::new() else { return };
    let serve = server(&net, "-w kernel: --listen 127.0.0.1:5301");
    for words in ["send", "recv -P 2", "send --bidir"] {
        let line = format!("{WHIMBREL} bulk {words} 127.0.0.1:5301 -t 2 -w kernel: --json=iperf3");
        agreed(&net, &line);
    }
    let text = serve.end();
    assert!(text.contains("try        iperf3 -c 127.0.0.1 -p 5301"), "{text}");
    assert!(unbroken(&text).contains("requests (0 refused); 0 connections failed"), "{text}");
}

#[test]
fn busy_server_refuses_and_continues() {
    let Some(net) = Net::with(&["iperf3", "ss"]) else { return };
    let serve = server(&net, "");
    // Long enough for both that are refused, and no faster than leaves them a processor.
    let first = ["-c", "10.9.0.2", "-t", "20", "-b", "10M", "--forceflush", "-i", "0.2"];
    let mut busy = net.command("iperf3");
    let mut busy = Running::start(busy.args(first).stdout(Stdio::piped()));
    let mut text = String::new();
    let mut lines = busy.take_stdout();
    let mut byte = [0];
    // Its first interval ends a little late on a busy machine: "0.00-0.21".
    while !text.contains(" 0.00-") && lines.read(&mut byte).unwrap() > 0 {
        text.push(byte[0].into());
    }
    assert!(text.contains(" 0.00-"), "it ended before: {text}");
    let mut second = net.command("iperf3");
    let (code, error) = fail(second.args(["-c", "10.9.0.2", "-t", "1"]));
    let said = "the server is busy running a test. try again later";
    assert!(code == 1 && error.contains(said), "{code} {error}");
    let mut third = net.command(WHIMBREL);
    let line = "bulk send 10.9.0.2 -t 1 -w kernel:";
    let (code, error) = fail(third.args(line.split_whitespace()));
    assert!(code == 1 && error.contains("busy with another test: try again"), "{code} {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    lines.read_to_string(&mut text).unwrap();
    assert!(busy.wait().success(), "{text}");
    // The server hears of the end a moment after its client's.
    let open = "-Htn state established state fin-wait-1 state fin-wait-2 state close-wait";
    await_that("the server has closed", || {
        succeed(net.command("ss").args(open.split(' '))).is_empty()
    });
    let text = serve.stop();
    assert!(unbroken(&text).contains("3 requests (2 refused); 0 connections failed"), "{text}");
}

#[test]
fn user_interrupt_is_sent_to_the_peer() {
    let Some(net) = Net::with(&["iperf3"]) else { return };
    // iperf3's client is interrupted: its last words are for its user, and ours for ours.
    let serve = server(&net, "");
    for (signal, ended) in [(Signal::INT, 1), (Signal::KILL, 2)] {
        let so_far = moved(&net);
        let mut client = net.command("iperf3");
        let mut client =
            Running::start(client.args(["-c", "10.9.0.2", "-t", "60"]).stdout(Stdio::null()));
        await_that("bytes flow", || moved(&net) > so_far + (1 << 20));
        client.signal(signal);
        client.wait();
        await_that("the server released it", || failures(&serve) == ended);
    }
    // Ours is.
    let so_far = moved(&net);
    let mut client = net.command(WHIMBREL);
    let line = "bulk send 10.9.0.2 -t 60 -w kernel:";
    let client = Running::start(client.args(line.split_whitespace()).stdout(Stdio::piped()));
    await_that("bytes flow", || moved(&net) > so_far + (1 << 20));
    interrupt(client.id());
    let ended = client.output();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("sender"), "{ended:?}");
    await_that("the server released it", || failures(&serve) == 3);
    // Our server is, in the midst of a test.
    let so_far = moved(&net);
    let mut client = net.command("iperf3");
    client.args(["-c", "10.9.0.2", "-t", "60"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let client = Running::start(&mut client);
    await_that("bytes flow", || moved(&net) > so_far + (1 << 20));
    let text = serve.stop();
    let ended = client.output();
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.code() == Some(1) && error.contains("the server has terminated"),
        "{error}"
    );
    assert_eq!(text.matches("the other side was ended by its user").count(), 2, "{text}");
    assert!(unbroken(&text).contains("3 connections failed"), "{text}");
}

/// Bytes that the kernel sent over TUN so far. A client can be connected before a server without a
/// processor has begun; once bytes were moved the server has begun.
fn moved(net: &Net) -> u64 {
    bytes(net, "whim0")
}

/// Bytes that the kernel sent to itself so far.
fn looped(net: &Net) -> u64 {
    bytes(net, "lo")
}

fn bytes(net: &Net, device: &str) -> u64 {
    let bytes = net.run(&format!("cat /sys/class/net/{device}/statistics/tx_bytes"));
    bytes.trim().parse().unwrap_or_else(|error| panic!("{error}: {bytes}"))
}

/// Number of failed tests that a server has reported: it is free for the next one.
fn failures(serve: &Serve) -> usize {
    serve.printed().matches("\niperf3: ").count()
}

#[test]
fn ended_or_killed_server_is_one_clear_line() {
    let Some(net) = Net::with(&["iperf3"]) else { return };
    for (signal, said) in [
        (Signal::INT, "the other side was ended by its user"),
        (Signal::KILL, "the control connection ended while the end of the test was waited for"),
    ] {
        let mut server = iperf3_server(&net, &[]);
        let mut client = net.command(WHIMBREL);
        let line = "bulk send 127.0.0.1 -t 60 -w kernel:";
        let before = looped(&net);
        client.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let client = Running::start(&mut client);
        // Of two connections alone, an end may not know yet that the test has begun.
        await_that("bytes flow", || looped(&net) > before + 1_000_000);
        server.signal(signal);
        let ended = client.output();
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(1) && error.contains(said), "{signal:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(String::from_utf8_lossy(&ended.stdout).contains("sender"), "{ended:?}");
        server.wait();
    }
}

#[test]
fn sink_on_the_port_hangs_no_client() {
    let Some(net) = Net::with(&["iperf3"]) else { return };
    let serve = net.serve(&["--sink"]);
    let mut command = net.command("iperf3");
    let (code, error) = fail(command.args(["-c", "10.9.0.2", "-t", "1"]));
    assert!(code == 1 && error.contains("received an unknown control message"), "{code} {error}");
    let mut command = net.command(WHIMBREL);
    let (code, error) = fail(command.args("bulk send 10.9.0.2 -t 1 -w kernel:".split(' ')));
    assert!(code == 1 && error.contains("it is no iperf3 server, and says so"), "{code} {error}");
    assert!(error.contains("--peer plain") && error.lines().count() == 1, "{error}");
    serve.stop();
    // A sink of another kind sends nothing.
    let serve = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:1234", "--respond", "1000,1"]);
    let mut command = net.command(WHIMBREL);
    let line = "bulk send 127.0.0.1:1234 -t 1 -w kernel: --timeout 300ms";
    let (code, error) = fail(command.args(line.split_whitespace()));
    let said = "timeout: waited for an answer to the cookie";
    assert!(code == 1 && error.contains(said) && error.lines().count() == 1, "{code} {error}");
    serve.end();
}

#[test]
fn unrelated_connections_do_not_disturb_the_next_client() {
    let Some(net) = Net::with(&["iperf3", "bash"]) else { return };
    let serve = server(&net, "");
    // In the namespace of the test only its programs can connect: a shell's own sockets do.
    for text in ["GET / HTTP/1.1\\r\\nHost: somewhere.example\\r\\n\\r\\n", "abc", ""] {
        let script = format!("exec 3<>/dev/tcp/10.9.0.2/5201 && printf '{text}' >&3 && sleep 0.1");
        let mut shell = net.command("bash");
        assert!(output(shell.args(["-c", &script])).status.success(), "{text}");
    }
    let told = document(&net, "iperf3 -J -t 1 -c 10.9.0.2");
    assert!(told["end"]["sum_received"]["bytes"].as_u64() > Some(1 << 20), "{told}");
    serve.stop();
}
