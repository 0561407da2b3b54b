//! The examples of README.md and at the end of each help, run as they stand there.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::netns::Net;
use crate::running::{Running, Signal, succeed};

/// Each ends by itself, or a second after it began by SIGINT.
#[test]
fn readme_and_help_examples_run_unchanged() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    symlink(&tests, net.folder().join("tests")).unwrap();
    symlink(tests.join("scripts/agreed"), net.folder().join("packetdrill")).unwrap();
    whimbrel(&net, "load -n 4 --quiet --pcap old.pcapng");
    net.run("ip link add eth0 type veth peer name far");
    net.run("ip link set eth0 up");
    net.run("ip link set far up");
    let mut ran = check_all(&net, &of_readme());
    assert!(ran > 10, "{ran} examples in README.md");
    ran += check_all(&net, &of_help("serve"));
    ran += check_all(&net, &of_help("forward"));
    // Servers for the other examples.
    let web = net.serve(&["-w", "kernel:", "-l", "0.0.0.0:8080"]);
    let characters = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:19", "--chargen"]);
    let iperf = net.serving(&["bulk", "--server", "--listen", "0.0.0.0:5201", "-w", "kernel:"]);
    // The one `serve` with a stack to look into.
    let control = net.folder().join("whimbrel");
    DirBuilder::new().mode(0o700).create(&control).unwrap();
    let control = control.join("serve.sock").display().to_string();
    let stack = net.serve(&["-w", "tun:stack,addr=10.8.0.2/24", "--control", &control]);
    for command in EXAMPLES {
        ran += check_all(&net, &of_help(command));
    }
    web.end();
    characters.end();
    iperf.end();
    stack.end();
    assert!(ran > 30, "{ran} examples");
}

/// Runs all, of which some are the servers of the next; how many there are.
fn check_all(net: &Net, examples: &[String]) -> usize {
    let mut server = None;
    for line in examples {
        if line.contains(" --server") || line.contains("-l 0.0.0.0:8080") {
            let words: Vec<_> = line.split(' ').skip(1).collect();
            server = Some(net.serving(&words));
        } else {
            check(net, line);
        }
    }
    drop(server);
    examples.len()
}

/// Runs it until it ends, a second at most.
fn check(net: &Net, line: &str) {
    let began = Instant::now();
    let mut command = shell(net, &format!("exec {line}"));
    let mut child = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    while child.end().is_none() && began.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(10));
    }
    let interrupted = child.end().is_none();
    if interrupted {
        child.signal(Signal::INT);
    }
    let ended = child.output();
    let errors = String::from_utf8_lossy(&ended.stderr);
    let is_as_it_should = match ended.status.code() {
        Some(0) => true,
        Some(1) => errors.starts_with("error: interrupted"),
        // Their result may be either.
        Some(3) => line.contains("--fail-if"),
        Some(4) => line.ends_with("doctor"),
        // That of the program, which the link may have delayed.
        Some(130) => interrupted && line.starts_with("whimbrel run "),
        _ => false,
    };
    assert!(is_as_it_should, "{line}: {}\n{errors}", ended.status);
}

/// The program's lines in README's blocks of the shell.
fn of_readme() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("\n```sh\n").skip(1).filter_map(|block| block.split("\n```").next());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.split('#').next());
    ours(lines.map(str::trim_end))
}

/// The program's lines among the examples of a command.
fn of_help(command: &str) -> Vec<String> {
    let mut help = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let help = succeed(help.args(command.split(' ')).arg("--help"));
    let (_, examples) = help.split_once("\nExamples:\n").unwrap();
    let examples = examples.split("\n\n").next().unwrap();
    let lines: Vec<&str> = examples.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    for line in lines.iter().filter(|line| !line.starts_with(' ')) {
        // It can be copied: a line longer than 80 columns would wrap.
        assert!(line.trim_start_matches("sudo ").starts_with("whimbrel "), "{command}: {line}");
    }
    ours(lines.into_iter())
}

fn ours<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let lines = lines.map(|line| line.trim_start_matches("sudo "));
    lines.filter(|line| line.starts_with("whimbrel ")).map(str::to_owned).collect()
}

fn whimbrel(net: &Net, words: &str) {
    succeed(&mut shell(net, &format!("exec whimbrel {words}")));
}

/// A shell in the test's folder, which finds the program by its name.
pub(crate) fn shell(net: &Net, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_whimbrel"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = net.command("sh");
    command.args(["-c", script]).current_dir(net.folder()).stdin(Stdio::null());
    command.env("HOME", net.folder()).env("XDG_RUNTIME_DIR", net.folder());
    command.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    command
}

/// Commands whose examples need no peer, or one that is there.
const EXAMPLES: [&str; 12] = [
    "load",
    "crr",
    "bulk",
    "pcap",
    "script run",
    "lab",
    "lab run",
    "sim run",
    "sim grid",
    "sim paths",
    "sysctl",
    "doctor",
];
