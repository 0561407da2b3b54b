//! One load, and all views of it: ss, nstat, sysctl, `pcap --pid`, metrics and trace agree with the load's figures.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::namespace::{INSIDE, in_a_namespace};
use crate::needs::{self, TUN};
use crate::operate::blocks;
use crate::running::{Running, Signal, await_that, output};
use crate::schema::checked;
use crate::scratch::scratch;
use crate::service::Client;
use crate::signals::await_serving;

/// The server of the test, and the folder of its control socket.
struct World {
    folder: std::path::PathBuf,
}

impl World {
    fn whimbrel(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        command.args(words.split(' ')).env_remove(INSIDE);
        command.env("XDG_RUNTIME_DIR", &self.folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn ask(&self, words: &str) -> String {
        let output = output(&mut self.whimbrel(words));
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A counter by nstat.
    fn counter(&self, name: &str) -> u64 {
        let document: Value =
            serde_json::from_str(&self.ask(&format!("nstat -jz {name}"))).unwrap();
        document["kernel"][name].as_u64().unwrap()
    }
}

/// The value of a metric.
fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {text}")).parse::<f64>().unwrap() as u64
}

fn scrape() -> String {
    let mut stream = TcpStream::connect(METRICS).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Requests that wrk has counted, none of which failed.
fn requests(wrk: &str) -> u64 {
    assert!(!wrk.contains("Socket errors") && !wrk.contains("Non-2xx"), "{wrk}");
    let line = wrk.lines().find(|line| line.contains(" requests in ")).expect("a summary");
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Connections that a trace has opened, by its whole lines.
fn opened(trace: &Path) -> u64 {
    let lines = BufReader::new(fs::File::open(trace).unwrap()).lines().map(Result::unwrap);
    let values = lines.map(|line| checked(&line));
    let is_opened = |value: &Value| {
        assert!(value["dropped"].is_null(), "{value}");
        value["events"].as_array().is_some_and(|events| events.iter().any(|it| it == "opened"))
    };
    values.filter(is_opened).count() as u64
}

#[test]
fn all_views_of_a_load_agree() {
    in_a_namespace("agree::all_views_of_a_load_agree", &[TUN, "ip", "wrk"], || {
        needs::command("ip link set lo up").status().unwrap();
        let world = World { folder: scratch("agree") };
        fs::create_dir_all(&world.folder).unwrap();
        let [trace, capture] = ["trace.jsonl", "some.pcapng"].map(|name| world.folder.join(name));
        let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,queues=2";
        let line =
            format!("serve --shards 2 --metrics {METRICS} --trace {} -w {wire}", trace.display());
        let mut serve = Running::start(&mut world.whimbrel(&line));
        let mut printed = await_serving(&mut serve);
        let pid = serve.id();
        let pcap =
            format!("pcap --pid {pid} -s 80 -o {} tcp[tcpflags] & tcp-syn != 0", capture.display());
        let pcap = Running::start(&mut world.whimbrel(&pcap));
        await_that("a capture", || capture.exists());
        let mut wrk = needs::command("wrk -t 2 -c 1000 -d 600s --timeout 60s http://10.9.0.2/");
        let wrk = Running::start(wrk.stdout(Stdio::piped()).stderr(Stdio::piped()));
        // While it runs: the same connections by each view.
        let listed = |words: &str| world.ask(words).lines().count() as u64;
        await_that("1,000 connections", || {
            listed(&format!("ss {pid} -Htn state established")) == 1_000
        });
        assert_eq!(listed("ss -Htn state established sport = :80 and dst 10.9.0.1"), 1_000);
        assert_eq!(listed("ss -Htn state established sport != :80"), 0);
        assert_eq!(world.counter("TcpCurrEstab"), 1_000);
        assert_eq!(metric(&scrape(), "whimbrel_sockets{state=\"ESTABLISHED\"}"), 1_000);
        let key = "net.ipv4.tcp_keepalive_time";
        world.ask(&format!("sysctl {pid} {key}=1234"));
        assert!(world.ask(&format!("sysctl {pid} {key}")).contains("= 1234"));
        wrk.signal(Signal::INT);
        let wrk = wrk.output();
        let requests = requests(&String::from_utf8_lossy(&wrk.stdout));
        await_that("the end of all", || listed(&format!("ss {pid} -Htn state connected")) == 0);
        let accepted = world.counter("TcpPassiveOpens");
        // wrk asks for the page once before it begins.
        assert!((1_000..=1_001).contains(&accepted), "{accepted}");
        let text = scrape();
        for (name, metric_name) in [
            ("TcpPassiveOpens", "whimbrel_netstat_Tcp_PassiveOpens_total"),
            ("TcpInSegs", "whimbrel_netstat_Tcp_InSegs_total"),
            ("TcpOutSegs", "whimbrel_netstat_Tcp_OutSegs_total"),
            ("TcpExtListenOverflows", "whimbrel_netstat_TcpExt_ListenOverflows_total"),
        ] {
            assert_eq!(world.counter(name), metric(&text, metric_name), "{name}");
        }
        assert!(world.counter("TcpInSegs") >= requests);
        pcap.signal(Signal::INT);
        let pcap = pcap.output();
        assert!(pcap.status.success(), "{pcap:?}");
        let said = String::from_utf8_lossy(&pcap.stderr).into_owned();
        assert!(!said.contains("dropped"), "{said}");
        // A SYN and a SYN-ACK of each; a repeated one is a segment more.
        let syns = blocks(&fs::read(&capture).unwrap()) as u64;
        let repeated = world.counter("TcpRetransSegs");
        assert!((2 * accepted..=2 * accepted + 2 * repeated + 100).contains(&syns), "{syns}");
        let probes = drain(&world, serve);
        let mut summary = String::new();
        printed.read_to_string(&mut summary).unwrap();
        assert!(summary.contains("left over: none"), "{summary}");
        // Those of the drain, too.
        assert!((accepted + 20..=accepted + 20 + probes).contains(&opened(&trace)));
    });
}

/// Ends the server while clients with kept connections ask: none of their requests fails. Returns the
/// number of connections that looked for the end of the listener.
fn drain(world: &World, mut serve: Running) -> u64 {
    let at = "10.9.0.2:80".parse().unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| Client::new(at)).collect();
    let mut ask = |round: &str| {
        for client in &mut clients {
            let head = client.ask();
            assert!(head.starts_with("HTTP/1.1 200"), "{round}: {head}");
            assert_eq!(head.contains("Connection: close"), round == "draining", "{head}");
        }
    };
    ask("serving");
    assert_eq!(world.counter("TcpCurrEstab"), 20);
    serve.signal(Signal::TERM);
    let mut probes = 0;
    await_that("no listener", || {
        probes += 1;
        TcpStream::connect(at).is_err()
    });
    ask("draining");
    drop(clients);
    assert!(serve.wait().success());
    probes
}

const METRICS: &str = "127.0.0.1:9100";
