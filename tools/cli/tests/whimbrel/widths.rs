//! Text for people fits 80 columns everywhere: every command runs, and its output is measured. Output
//! for programs is exempt: JSON, CSV, manual pages, completion scripts.

use std::process::{Command, Stdio};

use crate::pty::Terminal;
use crate::running::{Running, Signal, output};
use crate::scratch::scratch;
use crate::signals::{await_serving, free_address};

const WIDTH: usize = 80;

/// Number of columns of a line on a terminal.
fn columns(line: &str) -> usize {
    line.chars().fold(0, |column, letter| match letter {
        '\t' => column / 8 * 8 + 8,
        _ => column + 1,
    })
}

fn check(of: &str, text: &str) {
    for line in text.lines() {
        // Where the repository lies is no line's fault.
        if line.starts_with(env!("CARGO_MANIFEST_DIR")) {
            continue;
        }
        assert!(columns(line) <= WIDTH, "{of}: {} columns\n{line}\nof\n{text}", columns(line));
    }
}

fn measure(words: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let output = output(command.args(words.split(' ')));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    check(words, &text);
}

#[test]
fn measurements_print_no_overlong_line() {
    let virtually = "-w mem:rate=45M,delay=35ms,jitter=5ms,loss=1%,queue=100p --clock virtual";
    for words in [
        "load -n 2000 -c 10",
        "load -n 300 -c 20 -K --close client --repeat 3 --gap 10ms",
        "load -z 4s -q 12345 -c 1000 -K WIRE",
        "load -z 4s -q 12345 -c 100 --latency-correction off WIRE",
        "load -n 200 -c 2 -vv",
        "load -n 400 -c 4 --shards 2 --fastopen -K",
        "load -n 300 -c 9 -K --local-ports 50000-50003 -S msl=200ms",
        "load -n 200 -w kernel: -K",
        "crr -n 200",
        "crr -z 5s --mode rr -r 100,2k -c 7 -vv WIRE",
        "crr --mode cc -n 200 -c 3",
        "crr -i 3,5 -I 99,0.1 -l 1s WIRE",
        "crr -n 200 -w kernel:",
        "bulk send -t 3 WIRE",
        "bulk recv -t 2 -P 3 WIRE",
        "bulk send --bidir -P 2 -t 120 -i 60 -O 1 WIRE",
        "bulk send -t 1 -w kernel:",
        "sim run --seeds 0..2",
        "sim grid 10M/1ms/reno",
        "doctor",
        "lab list",
        "lab show illumos-1125ms",
        "lab run macos-16k --profile macos-12 -v",
        "lab run fddi-70ms --vary bytes=1M -v",
        "lab run fddi-70ms --profile freebsd-2.2.5+fix --vary bytes=1M --vary buffers.recv.max=64k \
         --vary net.ipv4.tcp_congestion_control=reno --vary net.ipv4.tcp_syn_retries=3 -v",
        "load --print-config --profile linux -S msl=5s",
        "serve -S help",
        "sysctl",
        "sysctl --profiles",
        "sysctl --profile macos-12",
        "sysctl --profile freebsd-2.2.5 --diff freebsd-15",
        "sysctl --explain msl",
        "sysctl --explain tw.syn",
    ] {
        measure(&words.replace("WIRE", virtually));
    }
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts/rfc9293/established");
    measure(&format!("script run {scripts}"));
}

/// The lines that a program drew one over the other, without the terminal's commands.
fn drawn_lines(bytes: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = bytes;
    while let Some((before, command)) = rest.split_once("\x1b[") {
        plain += before;
        let end = command.find(|letter: char| letter.is_ascii_alphabetic());
        rest = end.map_or("", |end| &command[end + 1..]);
    }
    plain += rest;
    plain.split(['\r', '\n']).map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn progress_of_crr_fits_80_columns_and_of_bulk_40() {
    let bulk = "bulk send -t 2 -w mem:rate=45M,delay=35ms";
    for (words, width, last) in [("crr -z 1s -c 2", 80, "errors 0"), (bulk, 40, "bits/sec")] {
        let mut terminal = Terminal::run(words, &std::env::temp_dir(), (40, width));
        assert_eq!(terminal.end().code(), Some(0), "{words}");
        let lines = drawn_lines(&terminal.bytes());
        let is_progress = |line: &&String| line.contains("%  ") && line.contains(['█', '░']);
        let progress: Vec<_> = lines.iter().filter(is_progress).collect();
        assert!(!progress.is_empty(), "{words}: {lines:#?}");
        for line in progress {
            assert!(columns(line) <= usize::from(width), "{words}: {line}");
            assert!(line.ends_with(last), "{words}: {line}");
        }
    }
}

#[test]
fn help_has_no_overlong_line() {
    let commands = "serve,forward,run,load,crr,bulk,pcap,script,script run,lab,lab show,lab run,compare,sim,sim run,sim grid,sim paths,sysctl,doctor,completions,man";
    for command in commands.split(',').map(|command| format!("{command} ")).chain([String::new()]) {
        for option in ["-h", "--help"] {
            measure(&format!("{command}{option}"));
        }
    }
}

#[test]
fn server_prints_no_overlong_line() {
    let at = free_address();
    let path = scratch("widths.sock");
    for words in [
        format!("serve -v -w kernel: -l {at}"),
        format!("serve -vv -w unix:{},addr=10.9.0.2/24,addr=fd09::2/64", path.display()),
        format!("serve -v -w kernel: -l {at} --echo"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut serve = Running::start(&mut command);
        let mut said = await_serving(&mut serve);
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        serve.signal(Signal::TERM);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut said, &mut text).unwrap();
        assert!(text.contains("conn/s") && text.contains("served  "), "{words}: {text}");
        check(&words, &text);
    }
}
