//! Effects of other signals than SIGINT and SIGTERM: SIGHUP ends a run with its summary, SIGUSR1 asks a
//! server for its status.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::needs;
use crate::netns::Net;
use crate::running::{Running, Signal, await_handler, await_that, output, unbroken};
use crate::schema::checked;

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An address of this machine without a listener, for one caller only. Its port lies below the ephemeral ones: one of
/// those is soon another socket's, or connects to itself.
pub(crate) fn free_address() -> std::net::SocketAddr {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(61);
    let mut ports = std::iter::repeat_with(|| TOLD.fetch_add(1, Ordering::Relaxed))
        .map(|told| 10_000 + (first.wrapping_add(told) % 22_000) as u16);
    let free = ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    free.unwrap().local_addr().unwrap()
}

#[test]
fn sighup_ends_run_with_summary() {
    for words in [
        "load -z 1h -c 2 -i 20ms --json-stream",
        "crr -l 1h --interval 20ms --json-stream",
        "bulk send -t 1h -i 20ms --json-stream",
        "serve -w kernel: -l AT --json-stream",
    ] {
        let words = words.replace("AT", &free_address().to_string());
        let mut run = Running::start(&mut whimbrel(&words));
        let (mut output, mut text) = (BufReader::new(run.take_stdout()), String::new());
        assert!(output.read_line(&mut text).unwrap() > 0, "{words}");
        run.signal(Signal::HUP);
        output.read_to_string(&mut text).unwrap();
        assert!(run.wait().success(), "{words}: {text}");
        assert!(text.lines().last().unwrap().contains("\"event\":\"summary\""), "{words}: {text}");
    }
}

#[test]
fn sigusr1_reports_how_far_a_run_is_and_the_run_goes_on() {
    for words in [
        "load -z 1h -c 2 --quiet --json",
        "load -z 1h -c 2 -w kernel: --json",
        "load -z 1000h -c 2 -w mem:delay=1ms --clock virtual --json",
        "crr -l 1h --json",
        "bulk send -t 1h --json",
        "sim run --seeds 0..1000000 --json",
    ] {
        let mut run = Running::start(&mut whimbrel(words));
        await_handler(run.id());
        let (mut errors, mut line) = (BufReader::new(run.take_stderr()), String::new());
        run.signal(Signal::USR1);
        errors.read_line(&mut line).unwrap();
        let expected = format!("whimbrel, pid {}: ", run.id());
        assert!(line.starts_with(&expected) && line.contains('%'), "{words}: {line}");
        run.signal(Signal::INT);
        let mut document = String::new();
        run.take_stdout().read_to_string(&mut document).unwrap();
        let document: Value = checked(&document);
        if !words.starts_with("sim") {
            assert_eq!(document["interrupted"], true, "{words}");
        }
        drop(run);
    }
    let whole = output(&mut whimbrel("load -n 5 --json"));
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(whole["interrupted"], false);
}

#[test]
fn nohup_run_survives_sighup() {
    if !needs::found(&["nohup"]) {
        return;
    }
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_whimbrel")).args("load -z 1h -c 2".split(' '));
    let mut run = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_handler(run.id());
    run.signal(Signal::HUP);
    // A signal that comes later is handled later: had it ended the run, this would find it ended.
    run.signal(Signal::USR2);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(run.end().is_none_or(|end| !end.success()), "the summary came");
}

/// Waits until a server prints its address; its later output can be read on.
pub(crate) fn await_serving(serve: &mut Running) -> BufReader<ChildStdout> {
    let (mut output, mut text) = (BufReader::new(serve.take_stdout()), String::new());
    while !text.contains("try  ") {
        assert!(output.read_line(&mut text).unwrap() > 0, "it ended: {text}");
    }
    output
}

/// Output of a server on SIGUSR1, up to the line that begins with `last`.
fn told(serve: &Running, errors: &mut impl BufRead, last: &str) -> String {
    serve.signal(Signal::USR1);
    let mut text = String::new();
    while !text.lines().any(|line| line.starts_with(last)) {
        assert!(errors.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        assert!(!text.contains("missing"), "{text}");
    }
    text
}

#[test]
fn sigusr1_prints_states_queues_and_drops() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    command.args("serve -w tun:whim0,addr=10.9.0.2/24,host=10.9.0.1".split(' '));
    let mut serve = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut errors = BufReader::new(serve.take_stderr());
    let mut said = await_serving(&mut serve);
    let curl = "curl -sS --fail --max-time 20";
    net.run(&format!("{curl} -o /dev/null http://10.9.0.2/[1-3]"));
    // A port without a listener.
    let mut refused = net.command("curl");
    refused.args("-sS --max-time 5 http://10.9.0.2:81/".split(' '));
    assert!(!refused.stderr(Stdio::null()).status().unwrap().success());
    // Repeated signals find the server about to sleep.
    for _ in 0..200 {
        let text = told(&serve, &mut errors, "drops");
        assert!(unbroken(&text).contains("3 requests (0 refused)"), "{text}");
        assert!(text.contains("states     "), "{text}");
        assert!(text.contains("queues     accept 0 of 4,096, half-open 0,"), "{text}");
        assert!(text.contains("drops      1 NO_SOCKET"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    net.run(&format!("{curl} -o /dev/null http://10.9.0.2/"));
    serve.signal(Signal::TERM);
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    let status = serve.wait();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");
    assert!(text.contains("4 requests") && text.contains("left over: none ("), "{text}");
}

#[test]
fn sigusr1_works_on_kernel_sockets() {
    let at = free_address();
    let mut serve = Running::start(&mut whimbrel(&format!("serve -w kernel: -l {at}")));
    let mut errors = BufReader::new(serve.take_stderr());
    await_that("it serves", || TcpStream::connect(at).is_ok());
    let text = told(&serve, &mut errors, "states");
    assert!(text.contains("ss -tan") && text.contains("0 requests"), "{text}");
    serve.signal(Signal::TERM);
    assert!(serve.output().status.success());
}
