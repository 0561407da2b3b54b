//! Default wires: memory without a target, and to a target the kernel's sockets, which the output
//! names.

use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::running::{Running, await_that, fail, output};
use crate::signals::free_address;

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split(' '));
    command
}

/// A server on the kernel's sockets, and where it is.
fn serve(role: &str) -> (Running, String) {
    let at = free_address();
    let mut command = whimbrel(&format!("serve -w kernel: -l {at}{role}"));
    let serve = Running::start(command.stdout(Stdio::null()));
    await_that("it serves", || TcpStream::connect(at).is_ok());
    (serve, at.to_string())
}

const NOTE: &str =
    "note: using the kernel's sockets because there is no -w; use -w tun:… for this stack\n";

#[test]
fn target_without_wire_uses_kernel_sockets_with_a_note() {
    for (role, words) in [
        ("", "load http://AT/ -n 20 -c 2"),
        (" --echo", "crr AT -n 20"),
        (" --sink", "bulk send AT --peer plain -n 64k"),
    ] {
        let (serve, at) = serve(role);
        let words = words.replace("AT", &at);
        let told = |more: &str| {
            let Output { status, stdout, stderr } =
                output(&mut whimbrel(&format!("{words}{more}")));
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            let (stdout, stderr) = (text(stdout), text(stderr));
            assert!(status.success(), "{words}{more}: {stdout} {stderr}");
            (stdout, stderr)
        };
        let (text, note) = told("");
        assert!(text.contains("over kernel:"), "{words}: {text}");
        assert_eq!(note, NOTE, "{words}");
        let (document, note) = told(" --json");
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["env"]["wire"], "kernel:");
        assert_eq!(document["env"]["wire_by_default"], true);
        assert_eq!(note, NOTE);
        // There is no note with an explicit wire, or without text output.
        assert_eq!(told(" -w kernel:").1, "");
        assert_eq!(told(" --stack kernel").1, "");
        assert_eq!(told(" --quiet").1, "");
        drop(serve);
    }
}

#[test]
fn default_wire_is_memory_and_kernel_takes_no_tunables() {
    let Output { stdout, stderr, .. } = output(&mut whimbrel("load -n 5 -c 1 --json"));
    let document: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(document["env"]["wire"], "mem:");
    assert_eq!(stderr, b"");
    let (code, error) = fail(&mut whimbrel("load http://127.0.0.1:9/ -S msl=1s"));
    assert!(code == 2 && error.contains("or another wire (-w)"), "{error}");
    let (code, error) = fail(&mut whimbrel("crr 127.0.0.1:9 --stack user"));
    assert!(code == 2 && error.contains("--stack: user: this stack needs a wire"), "{error}");
}
