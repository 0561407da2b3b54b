//! `whimbrel explain` on captures of two Linux kernels over `whimbrel link`, taken by `dumpcap`: what nstat and
//! ss of the ends say is the truth.
//!
//! `WHIMBREL_LINUX=all` plays all scenes, of which some take a minute; otherwise the quick ones. With
//! `WHIMBREL_LABEL=LOSS` it plays labels that begin so. A folder in `WHIMBREL_KEEP` keeps the captures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;
use whimbrel_link::reader;

use crate::netns::{Net, WHIMBREL};
use crate::running::{Running, Signal, await_that, succeed, whimbrel};
use scenes::{SCENES, Scene, Spot};

mod scenes;
mod tshark;

/// Programs of the scenes.
const PROGRAMS: [&str; 5] = ["dumpcap", "python3", "nstat", "ss", "tshark"];
/// Scenes at a time.
const WORKERS: usize = 3;
/// A path that was late is no judge: so often a scene is played at most.
const TRIES: usize = 3;

#[test]
fn captures_of_linux_are_explained_as_its_own_counters_say() {
    let is_all = asked("WHIMBREL_LINUX").is_some_and(|it| it == "all");
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default();
    let label = asked("WHIMBREL_LABEL").unwrap_or_default();
    let chosen = SCENES.iter().enumerate().filter(|(_, scene)| {
        scene.label.starts_with(&label)
            && (is_all || scene.is_quick)
            && known.split_whitespace().any(|name| name == scene.control)
    });
    let mut jobs: Vec<_> = chosen.collect();
    assert!(!jobs.is_empty(), "no congestion control of {known:?} has a scene");
    jobs.reverse();
    let count = jobs.len();
    let mut workers = Vec::new();
    for _ in 0..WORKERS.min(count) {
        let (Some(client), Some(server)) = (Net::with(&PROGRAMS), Net::with(&PROGRAMS)) else {
            return;
        };
        workers.push([client, server]);
    }
    let (jobs, wrong) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for nets in &workers {
            scope.spawn(|| {
                while let Some((number, scene)) = { jobs.lock().unwrap().pop() } {
                    let told = judge(scene, number, nets);
                    println!(
                        "{} {}: {}",
                        scene.label,
                        scene.control,
                        told.clone().unwrap_or_else(|wrong| format!("WRONG: {wrong}"))
                    );
                    wrong.lock().unwrap().extend(told.err());
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    // Of thirty captures 28 are right, of ten nine: on a loaded machine a path in real time may show another cause.
    assert!(
        wrong.len() <= count.div_ceil(15),
        "{} of {count} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Plays a scene. Returns all that was found, or an account of the fault.
fn judge(scene: &Scene, number: usize, nets: &[Net; 2]) -> Result<String, String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let played = play(scene, number, nets);
        let names = played.findings("");
        let lacking: Vec<_> = scene.truth.iter().filter(|fact| !played.shows(fact)).collect();
        last = format!("{} {}: {names:?}", scene.label, scene.control);
        if lacking.is_empty() && names.first().is_some_and(|first| first == scene.label) {
            played.settled(scene)?;
            let differences = tshark::differences(&played.file, scene.label)?;
            return Ok(format!("{}{differences}", names.join(", ")));
        }
        if !lacking.is_empty() {
            last = format!("{last}; the cause was not there: {lacking:?}\n{}", played.told);
        } else if !played.is_late {
            break;
        }
    }
    Err(last)
}

/// The label of a finding: its id, and for `LOSS` the kind, too, as in `LOSS:policer`.
fn name(finding: &Value) -> String {
    match (finding["id"].as_str().unwrap(), finding["kind"].as_str().unwrap()) {
        ("LOSS", kind) => format!("LOSS:{kind}"),
        (id, _) => id.to_owned(),
    }
}

/// A scene's capture, and what both ends say.
struct Played {
    file: PathBuf,
    /// Files of nstat and ss of the host of the capture.
    evidence: [PathBuf; 2],
    /// Text of nstat at the client and at the server, and of both programs.
    told: String,
    counters: [Value; 2],
    is_late: bool,
}

impl Played {
    /// The names of the findings, with these arguments.
    fn findings(&self, words: &str) -> Vec<String> {
        let findings = self.explained(words);
        findings.as_array().unwrap().iter().map(name).collect()
    }

    fn explained(&self, words: &str) -> Value {
        let line = format!("explain --json {words} {}", self.file.display());
        let document: Value = serde_json::from_str(&succeed(&mut whimbrel(&line))).unwrap();
        document["captures"][0]["findings"].clone()
    }

    /// Checks that the host's own words contradict no right finding, and confirm those that they can.
    fn settled(&self, scene: &Scene) -> Result<(), String> {
        let [nstat, ss] = &self.evidence;
        let words = format!("--nstat {} --ss {}", nstat.display(), ss.display());
        let first = &self.explained(&words)[0];
        let is_settled = first["evidence"].as_array().is_some_and(|it| !it.is_empty());
        let is_right = name(first) == scene.label
            && !first["evidence"].to_string().contains("refutes")
            && (is_settled || !scene.is_settled);
        if is_right { Ok(()) } else { Err(format!("{}: settled as {first:#}", scene.label)) }
    }

    /// True if a counter of an end rose, or an end printed this: `server TcpRetransSegs`, `says sndbuf_limited`.
    fn shows(&self, fact: &str) -> bool {
        let (who, what) = fact.split_once(' ').unwrap();
        match who {
            "client" => self.counters[0]["kernel"][what].as_u64() > Some(0),
            "server" => self.counters[1]["kernel"][what].as_u64() > Some(0),
            _ => self.told.contains(what),
        }
    }
}

fn play(scene: &Scene, number: usize, [client, server]: &[Net; 2]) -> Played {
    for net in [client, server] {
        net.set("net.ipv4.tcp_no_metrics_save", "1");
        let value = if scene.scales { "1" } else { "0" };
        net.set("net.ipv4.tcp_window_scaling", value);
    }
    let link = link([client, server], scene.path);
    let file = keep(client.folder(), scene, number);
    let (net, interface) = match scene.spot {
        Spot::Client => (client, "left"),
        Spot::Server => (server, "right"),
    };
    let before = packets(net, interface);
    let mut dumpcap = net.command("dumpcap");
    dumpcap.args(["-q", "-s", "120", "-i", interface, "-w"]).arg(&file);
    let mut dumpcap = Running::start(dumpcap.stdout(Stdio::null()).stderr(Stdio::null()));
    await_that("dumpcap captures", || fs::metadata(&file).is_ok_and(|it| it.len() > 0));
    let counts = |net: &Net| succeed(net.command("nstat").args(["-azj"]));
    let base = [counts(client), counts(server)];
    let mut told = talk(scene, [client, server]);
    let counters = [(client, &base[0]), (server, &base[1])].map(|(net, base)| {
        let now = counts(net);
        told.push_str(&now);
        difference(&now, base)
    });
    let evidence = ["nstat", "ss"].map(|name| file.with_extension(name));
    let at = usize::from(scene.spot == Spot::Server);
    fs::write(&evidence[0], counters[at].to_string()).unwrap();
    fs::write(&evidence[1], format!("State Recv-Q Send-Q\n{told}")).unwrap();
    let sent = packets(net, interface) - before;
    await_that("all packets are captured", || {
        fs::read(&file).is_ok_and(|bytes| captured(&bytes) >= sent)
    });
    dumpcap.signal(Signal::INT);
    assert!(dumpcap.wait().success());
    link.signal(Signal::TERM);
    let ended = link.output();
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
    Played { file, evidence, told, counters, is_late: document["is_late"] == true }
}

/// Both programs, until the client's ends or its time is over. Returns what they print.
fn talk(scene: &Scene, [client, server]: [&Net; 2]) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/talk.py");
    let control = format!("cc={}", scene.control);
    let start = |net: &Net, mode: &str, words: &str, limit: &str| {
        let mut command = net.command("python3");
        command.arg(&program).args([mode, "10.1.0.2", "8080", &control, limit]);
        command.args(words.split_whitespace());
        Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let limit = format!("limit={}", scene.seconds);
    let serve = scene.server.map(|words| {
        let serve = start(server, "serve", words, &limit);
        await_that("it listens", || server.run("ss -ltn").contains(":8080"));
        serve
    });
    let mut text = String::new();
    let ended = start(client, "connect", scene.client, &limit).output();
    text.push_str(&String::from_utf8_lossy(&ended.stdout));
    if let Some(serve) = serve {
        let ended = serve.output();
        text.push_str(&String::from_utf8_lossy(&ended.stdout));
        text.push_str(&String::from_utf8_lossy(&ended.stderr));
    }
    text
}

/// A link from 10.1.0.1 of the client to 10.1.0.2 of the server.
fn link([client, server]: [&Net; 2], path: &str) -> Running {
    let far = format!("tun:right,netns={},addr=10.1.0.2/24", server.name());
    let mut command = client.command(WHIMBREL);
    command.args(["link", "tun:left,addr=10.1.0.1/24", &far, "--seed", "7", "--json"]);
    command.args(path.split_whitespace());
    let link = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("the path is there", || {
        client.run("ip address").contains("10.1.0.1")
            && server.run("ip address").contains("10.1.0.2")
    });
    link
}

/// Packets that an interface has received and sent.
fn packets(net: &Net, interface: &str) -> usize {
    let text = net.run("cat /proc/net/dev");
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)).unwrap();
    let fields: Vec<usize> =
        line.trim_start_matches(':').split_whitespace().map(|it| it.parse().unwrap()).collect();
    fields[1] + fields[9]
}

/// Packets of a capture that may still be written.
fn captured(bytes: &[u8]) -> usize {
    let (mut reader, mut rest, mut count) = (reader::Reader::of_any_link(), bytes, 0);
    while let Ok(block) = reader.block(rest)
        && !rest.is_empty()
    {
        count += usize::from(block.packet.is_some());
        rest = &rest[block.len..];
    }
    count
}

/// Growth of the counters of an end that several scenes use.
fn difference(now: &str, base: &str) -> Value {
    let [mut now, base] = [now, base].map(|text| serde_json::from_str::<Value>(text).unwrap());
    for (key, value) in now["kernel"].as_object_mut().unwrap() {
        let before = base["kernel"][key].as_u64().unwrap_or(0);
        *value = value.as_u64().unwrap_or(0).saturating_sub(before).into();
    }
    now
}

/// The file of a scene's capture.
fn keep(folder: &Path, scene: &Scene, number: usize) -> PathBuf {
    let folder = asked("WHIMBREL_KEEP").map_or(folder.to_owned(), PathBuf::from);
    let label = scene.label.replace([':', ' '], "-");
    let file = folder.join(format!("{label}-{}-{number}.pcapng", scene.control));
    let _ = fs::remove_file(&file);
    file
}

#[allow(clippy::disallowed_methods, reason = "a test may be asked for more")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
