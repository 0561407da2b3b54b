//! What signals do beside SIGINT and SIGTERM: SIGHUP ends a run, and its summary comes.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{ChildStdout, Command, Output, Stdio};

use crate::needs;
use crate::running::{Running, Signal, await_handler};

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An address of this machine that nobody listens at.
pub(crate) fn free_address() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_terminal_that_is_closed_ends_a_run_and_the_summary_comes() {
    for words in ["load -z 1h -c 2", "crr -l 1h", "bulk send -t 1h", "serve -w kernel: -l AT"] {
        let words = words.replace("AT", &free_address().to_string());
        let run = Running::start(&mut whimbrel(&words));
        await_handler(run.id());
        run.signal(Signal::HUP);
        let Output { status, stdout, stderr } = run.output();
        let text = String::from_utf8_lossy(&stdout);
        assert!(status.success(), "{words}: {status} {}", String::from_utf8_lossy(&stderr));
        let said = match words.split(' ').next().unwrap() {
            "load" => "Requests/sec:",
            "crr" => "TCP_CRR",
            "bulk" => "sender",
            _ => "served     0 connections",
        };
        assert!(text.contains(said), "{words}: {text}");
    }
}

#[test]
fn under_nohup_a_closed_terminal_ends_nothing() {
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

/// Waits until a server says where to try it; what it says after that can be read on.
pub(crate) fn await_serving(serve: &mut Running) -> BufReader<ChildStdout> {
    let (mut output, mut text) = (BufReader::new(serve.take_stdout()), String::new());
    while !text.contains("try  ") {
        assert!(output.read_line(&mut text).unwrap() > 0, "it ended: {text}");
    }
    output
}
