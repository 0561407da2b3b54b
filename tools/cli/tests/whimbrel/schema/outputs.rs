//! Each command with `--json` prints documents as docs/schema has them, in each of its forms; together
//! they show every property.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use super::{SCHEMAS, checked_all, name_of, seen};
use crate::netns::Net;
use crate::operate::World;
use crate::running::{Running, Signal, await_that, interrupt, output, succeed};
use crate::scratch::scratch;
use crate::signals::free_address;

const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");

/// Lines of words, run one after the other in a folder with the files of [`SCRIPTS`]. Some fail, as
/// they shall: their documents are as the others.
const LINES: &[&str] = &[
    "load -n 5 --json > a.json",
    "load -c 20 -z 10s -K --close client --local-ports 2000-2009 -w mem:delay=1ms,loss=30% \
     --clock virtual --server-set msl=1s --fail-if p50>1us --json > b.json",
    "load http://127.0.0.1:1/ -w kernel: -n 2 --json",
    "load -n 9 --shards 2 --json-stream",
    "load -n 5 --json=oha",
    "crr -n 50 --confidence 99,50 --json",
    "crr -n 5 --clock virtual -w mem:delay=1ms --trace t.jsonl --json-stream",
    "bulk send -t 1s -w mem:rate=10M,delay=5ms,loss=1% --clock virtual --pcap c.pcapng --json",
    "bulk recv -t 1s -w mem:rate=10M,delay=5ms --clock virtual --json-stream",
    "bulk send --bidir -t 1s -w mem:rate=10M,delay=5ms --clock virtual --json=iperf3",
    "bulk send -t 100ms -w kernel: --json",
    "explain c.pcapng --nstat nstat.txt --json",
    "compare a.json b.json --json",
    "doctor --json",
    "lab run macos-16k --profile macos-12 --ablate --vary lasts=2s --vary ports.first=49152 --vary \
     ports.last=49351 --json",
    "lab run fddi-70ms --vary bytes=1M --profile freebsd-2.2.5 --json",
    "lab run unikraft-nginx --vary runs=1 --vary lasts=1s --profile whimbrel --json > l.json",
    "compare l.json l.json --json",
    "script run . --json",
    "sim run --seeds 0..2 --json",
    "sim grid 10M/1ms/reno --json > g.json",
    "sim grid 10M/1ms/reno --baseline g.json --json",
    "sim grid --full 10M/1ms/0%/1bdp/reno --json",
    "sim paths loss-1%/reno tail/400ms/sole fddi/100M/1998/route-64k --json",
    "sysctl --json",
    "sysctl --diff linux --json",
    "sysctl --profiles --json",
];

const OPEN: &str = include_str!("../../../../../tests/scripts/passive_open.pkt");

/// Requests to a control socket, the last in error.
const REQUESTS: &[&str] = &[
    r#"{"id":1,"method":"hello"}"#,
    r#"{"id":2,"method":"ss","params":{"host":"client","detail":"full"}}"#,
    r#"{"id":3,"method":"pcap","params":{"host":"client"}}"#,
    r#"{"id":4,"method":"close","params":{"host":"client","local":"10.0.0.1:1","remote":"10.0.0.2:2"}}"#,
    r#"{"id":5,"method":"counters","params":{"host":"client"}}"#,
    r#"{"id":6,"method":"summary","params":{"host":"client"}}"#,
    r#"{"id":7,"method":"sysctl","params":{"host":"client"}}"#,
    r#"{"id":"8","method":"none"}"#,
];

/// Beginnings of properties that no output here has, each with the reason.
const UNSEEN: [(&str, &str); 5] = [
    (
        "common-1.json#/$defs/summary/properties/unreached/items",
        "web.rs has a name of two addresses",
    ),
    ("iperf3-1.json#/properties/error", "iperf3.rs asks for a test that is refused"),
    ("sim-1.json#/properties/failed/items", "no seed fails"),
    ("trace-1.json#/$defs/dropped", "the disk is fast enough"),
    ("trace-1.json#/$defs/refused", "trace.rs refuses segments"),
];
/// Schemas that only interfaces give outputs of.
const ON_WIRES: [&str; 3] = ["forward-1", "link-1", "run-1"];

#[test]
fn every_json_form_has_a_schema_and_every_property_is_shown() {
    let folder = scratch("schema");
    fs::create_dir_all(&folder).unwrap();
    let mut outputs = thread::scope(|scope| {
        let lines = scope.spawn(|| of_lines(&folder));
        let running = of_running(&folder);
        [lines.join().unwrap(), running].concat()
    });
    let on_wires = of_wires();
    let has_wires = on_wires.is_some();
    outputs.extend(on_wires.unwrap_or_default());
    let forms: BTreeSet<_> = outputs.iter().filter_map(|(words, _)| form(words)).collect();
    let is_wired =
        |at: &str| !has_wires && ON_WIRES.iter().any(|it| at.starts_with(&it[..it.len() - 2]));
    let untested = |form: &String| !forms.contains(form) && !is_wired(form);
    let untested: Vec<_> = known_forms(&folder).into_iter().filter(untested).collect();
    assert!(untested.is_empty(), "no output here is of {untested:?}");
    let mut shown = BTreeSet::new();
    for mut value in outputs.iter().flat_map(|(_, text)| checked_all(text)) {
        shown.extend(seen(&value));
        let schema = &SCHEMAS[&name_of(&value)];
        value["another"] = true.into();
        assert!(!schema.validator.is_valid(&value), "the schema is open: {value}");
    }
    let is_excused =
        |at: &str| is_wired(at) || UNSEEN.iter().any(|(begin, _)| at.starts_with(begin));
    let (visible, hidden): (Vec<_>, Vec<_>) =
        properties().into_iter().partition(|at| shown.contains(at));
    let hidden: Vec<_> = hidden.iter().filter(|at| !is_excused(at)).collect();
    assert!(hidden.is_empty(), "no output here has {hidden:#?}");
    let excuse = UNSEEN.iter().find(|(begin, _)| visible.iter().any(|at| at.starts_with(begin)));
    assert_eq!(excuse, None, "an output here has it: strike it out");
}

/// The outputs of [`LINES`].
fn of_lines(folder: &Path) -> Vec<(String, String)> {
    let wrong = OPEN.replace("ack 1 <mss 1460>", "ack 1 <mss 1461>");
    let skipped = format!("--no_such_option\n{OPEN}");
    for (name, text) in [("a.pkt", OPEN), ("b.pkt", &wrong), ("c.pkt", &skipped)] {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::write(folder.join("nstat.txt"), "TcpRetransSegs 5 0.0\n").unwrap();
    let run = |line: &&str| {
        let (words, file) = line.split_once(" > ").unwrap_or((line, "out.json"));
        let mut command = Command::new(WHIMBREL);
        let ended = output(command.current_dir(folder).args(words.split_whitespace()));
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(!text.is_empty(), "{words}: {}", String::from_utf8_lossy(&ended.stderr));
        fs::write(folder.join(file), &text).unwrap();
        (words.to_owned(), text)
    };
    let mut outputs: Vec<_> = LINES.iter().map(run).collect();
    let trace = fs::read_to_string(folder.join("t.jsonl")).unwrap();
    outputs.push(("a trace".into(), trace));
    outputs
}

/// The outputs of servers, and of commands that look into a running one.
fn of_running(folder: &Path) -> Vec<(String, String)> {
    let mut world = World::new("schema-running");
    let pid = world.start("load -z 1h -c 3 --no-tui");
    world.await_connections("ss --host server -Htan state established", 3);
    let asked = [
        "ss --host client -tan --json",
        "nstat --host client -z --json",
        &format!("sysctl {pid} --host client net.ipv4.tcp_retries2 --json"),
    ];
    let mut outputs: Vec<_> = asked.map(|words| (words.to_owned(), world.ask(words))).into();
    let socket = world.folder.join(format!("whimbrel/{pid}.sock"));
    outputs.push(("a control socket".into(), answers(&socket)));
    for (words, clients) in [
        (
            "serve -w kernel: -l AT --file-root . --access-log log --json",
            "load http://AT/a.pkt -n 3",
        ),
        ("serve -w kernel: -l AT --json-stream", "load http://AT/ -z 1200ms"),
        (
            "bulk --server -w kernel: --listen AT --json-stream",
            "bulk send AT -w kernel: -t 1 --get-server-output --json",
        ),
        (
            "bulk --server -w kernel: --listen AT --json",
            "bulk recv AT -w kernel: -t 1 --get-server-output --json=iperf3",
        ),
        ("crr --server AT -w kernel: --json", "crr AT -w kernel: -n 5"),
    ] {
        let at = free_address().to_string();
        let command = |words: &str| {
            let mut command = Command::new(WHIMBREL);
            let words = words.replace("AT", &at);
            command.current_dir(folder).args(words.split(' ')).stdout(Stdio::piped());
            command.stderr(Stdio::null());
            command
        };
        let server = Running::start(&mut command(words));
        await_that("it listens", || std::net::TcpStream::connect(&at).is_ok());
        let clients =
            clients.to_owned() + if clients.starts_with("load") { " -w kernel:" } else { "" };
        let told = succeed(&mut command(&clients));
        server.signal(Signal::TERM);
        outputs.push((words.into(), String::from_utf8(server.output().stdout).unwrap()));
        if clients.contains("--json") {
            outputs.push((clients, told));
        }
    }
    outputs
}

/// The answers to [`REQUESTS`].
fn answers(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut text = String::new();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for request in REQUESTS {
        writeln!(stream, "{request}").unwrap();
    }
    while !text.contains("unknown-method") {
        assert_ne!(answers.read_line(&mut text).unwrap(), 0, "{text}");
    }
    text
}

/// The outputs of commands that need interfaces, if those can be.
fn of_wires() -> Option<Vec<(String, String)>> {
    let net = Net::with(&[])?;
    let run = |words: &str| {
        let mut command = net.command(WHIMBREL);
        command.current_dir(net.folder()).args(words.split(' '));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(&mut command)
    };
    let forward = "forward -w tun:whim0,addr=10.9.0.2/24 -l 7 --to 127.0.0.1:7 --json";
    let running = run(forward);
    interrupt(running.id());
    let mut outputs = vec![(forward.to_owned(), running.output())];
    for words in [
        "link tun:left tun:right delay=1ms -z 100ms --json",
        "run --link delay=1ms -w tun:whim1,addr=10.8.0.2/24 --json -o /dev/stdout -- true",
    ] {
        outputs.push((words.to_owned(), run(words).output()));
    }
    let text = |(words, output): (String, std::process::Output)| {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}: {errors}");
        (words, String::from_utf8(output.stdout).unwrap())
    };
    Some(outputs.into_iter().map(text).collect())
}

/// Command and form of a line, as `load --json=oha`, if it is one.
fn form(words: &str) -> Option<String> {
    let is_option = |word: &&str| word.starts_with("--json");
    let option = words.split(' ').find(is_option)?;
    let command: Vec<_> = words.split(' ').take(2).collect();
    let is_group = ["lab", "sim", "script"].contains(&command[0]);
    Some(format!("{} {option}", command[..if is_group { 2 } else { 1 }].join(" ")))
}

/// Every form of every command, by its manual page.
fn known_forms(folder: &Path) -> BTreeSet<String> {
    let pages = folder.join("pages");
    succeed(Command::new(WHIMBREL).arg("man").arg("--dir").arg(&pages));
    let mut forms = BTreeSet::new();
    for page in fs::read_dir(&pages).unwrap().map(|it| it.unwrap().path()) {
        let name = page.file_stem().unwrap().to_str().unwrap().replace('-', " ");
        let command = name.trim_start_matches("whimbrel ");
        let text = fs::read_to_string(&page).unwrap().replace("\\-", "-");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let is_option = line.starts_with("\\fB-") && line.contains("\\fB--json");
            let Some((_, option)) = line.split_once("\\fB--json").filter(|_| is_option) else {
                continue;
            };
            let option = option.split('\\').next().unwrap();
            forms.insert(format!("{command} --json{option}"));
            let about = lines.next().unwrap_or_default();
            let formats = about.split([' ', ';']).filter_map(|word| word.strip_prefix('='));
            forms
                .extend(formats.map(|it| format!("{command} --json={}", it.trim_end_matches(':'))));
        }
    }
    assert!(forms.len() > 20, "{forms:?}");
    forms
}

/// Every property of every schema, as `load-1.json#/properties/config`.
fn properties() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (name, schema) in SCHEMAS.iter() {
        properties_of(&schema.text, &format!("{name}.json#"), &mut all);
    }
    all
}

fn properties_of(schema: &Value, at: &str, all: &mut BTreeSet<String>) {
    let each: Vec<(String, &Value)> = match schema {
        Value::Object(object) => object.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(array) => (0..).map(|at: usize| at.to_string()).zip(array).collect(),
        _ => return,
    };
    for (key, value) in each {
        let at = format!("{at}/{key}");
        if key == "properties" {
            for (name, property) in value.as_object().unwrap() {
                assert!(property["description"].is_string(), "{at}/{name} has no description");
                all.insert(format!("{at}/{name}"));
            }
        }
        properties_of(value, &at, all);
    }
}
