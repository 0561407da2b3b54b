//! `whimbrel link`: two kernels at the ends of a path of our making.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use whimbrel_link::reader;

use crate::netns::Net;
use crate::running::{Running, Signal, await_that, fail, output};
use crate::schema::checked;
use crate::scratch::scratch;

const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");

/// A link from an interface of `client`, 10.1.0.1, to one of `server`, 10.1.0.2, once both are there.
pub(crate) fn link(client: &Net, server: &Net, path: &str) -> Running {
    let far = format!("tun:right,netns={},addr=10.1.0.2/24", server.name());
    let mut command = client.command(WHIMBREL);
    command.args(["link", "tun:left,addr=10.1.0.1/24", &far]).args(path.split_whitespace());
    let link = Running::start(command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("the path is there", || {
        client.run("ip address").contains("10.1.0.1")
            && server.run("ip address").contains("10.1.0.2")
    });
    link
}

/// Its report after it is stopped.
pub(crate) fn end(link: Running) -> (Value, String) {
    link.signal(Signal::TERM);
    let ended = link.output();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{}: {errors}", ended.status);
    (checked(&String::from_utf8_lossy(&ended.stdout)), errors)
}

#[test]
fn kernels_see_the_requested_delay_and_loss() {
    let (Some(client), Some(server)) = (Net::new(), Net::new()) else { return };
    let link = link(&client, &server, "rate=100M delay=10ms drop=3 queue=1bdp");
    let serve = server.serve(&["-w", "kernel:", "-l", "10.1.0.2:8080", "--body", "64k"]);
    let load = "load http://10.1.0.2:8080/ -w kernel: -c 1 -n 5 --json";
    let told = client.run(&format!("{WHIMBREL} {load}"));
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["summary"]["success_rate"], 1.0, "{told}");
    let fastest = told["latency"]["min"].as_f64().unwrap();
    assert!((0.020..0.200).contains(&fastest), "{fastest} s for a round trip of 20 ms");
    serve.end();
    let (document, _) = end(link);
    let [there, back] = [0, 1].map(|at| &document["directions"][at]);
    assert_eq!((&there["from"], &there["to"]), (&"left".into(), &"right".into()));
    // The response has a third segment, the requests have not.
    assert_eq!((&there["lost"], &back["lost"]), (&0.into(), &1.into()), "{document}");
    assert_eq!(back["lost_targeted"], 1);
    for direction in [there, back] {
        assert_eq!((&direction["missed"], &direction["refused"]), (&0.into(), &0.into()));
        let packets = |key: &str| direction[key].as_u64().unwrap();
        let told = packets("delivered") + packets("lost") + packets("on_the_way");
        assert_eq!(packets("sent"), told, "{document}");
    }
    assert!(document["late_us"]["max"].as_u64() >= document["late_us"]["p50"].as_u64());
}

#[test]
fn link_reports_on_sigusr1_and_after_each_interval() {
    let (Some(client), Some(server)) = (Net::with(&["ping"]), Net::new()) else { return };
    let far = format!("tun:right,netns={},addr=10.1.0.2/24", server.name());
    let mut command = client.command(WHIMBREL);
    command.args(["link", "tun:left,addr=10.1.0.1/24", &far, "delay=1ms", "-i", "200ms"]);
    let mut link = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(link.take_stdout()).lines();
    assert!(lines.next().unwrap().unwrap().contains("left <-> right"));
    let interval = lines.next().unwrap().unwrap();
    assert!(interval.contains("left -> right: ") && interval.contains(" lost"), "{interval}");
    client.run("ping -c 1 10.1.0.2");
    let mut errors = BufReader::new(link.take_stderr());
    link.signal(Signal::USR1);
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with(&format!("whimbrel, pid {}: after ", link.id())), "{line}");
    line.clear();
    errors.read_line(&mut line).unwrap();
    let sent = line.split_whitespace().nth(2).and_then(|count| count.parse::<u64>().ok());
    assert!(line.starts_with("packets sent") && sent >= Some(1), "{line}");
    link.signal(Signal::TERM);
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.starts_with("packets delivered")), "{rest:?}");
}

#[test]
fn link_capture_has_each_packet_with_its_outcome() {
    let (Some(client), Some(server)) = (Net::with(&["ping"]), Net::new()) else { return };
    let folder = scratch("link-pcap");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("path.pcapng");
    let path = format!("delay=1ms back.loss=100% --pcap {},filter=icmp", file.display());
    let link = link(&client, &server, &path);
    client.command("ping").args(["-c", "2", "-i", "0.2", "-W", "1", "10.1.0.2"]).output().unwrap();
    let (document, _) = end(link);
    assert!(document["directions"][1]["lost"].as_u64() >= Some(2), "{document}");
    let bytes = fs::read(&file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("left") && text.contains("right"), "names of the interfaces");
    // Two requests that arrive, and two replies that are lost; nothing else is ICMP over IPv4.
    assert_eq!(text.matches("lost: random loss").count(), 2, "{text}");
    assert_eq!(reader::read(&bytes).unwrap().packets.len(), 4);
    fs::remove_dir_all(folder).unwrap();

    let (code, error) =
        fail(client.command(WHIMBREL).args(["link", "tun:a", "tun:b", "--pcap", "a,rotate=1M"]));
    assert!(code == 2 && error.contains("a path writes one file"), "{error}");
}

#[test]
fn late_path_is_reported_and_directions_may_differ() {
    let (Some(client), Some(server)) = (Net::with(&["ping"]), Net::new()) else { return };
    let link = link(&client, &server, "delay=1ms --back delay=40ms,ecn=0");
    let told = client.run("ping -c 2 -i 0.2 -Q 2 10.1.0.2");
    let trip = told.split("time=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(trip.parse::<f64>().unwrap() >= 41.0, "{told}");
    let (document, errors) = end(link);
    assert_eq!(document["directions"][0]["marked"], 0);
    assert!(document["directions"][1]["marked"].as_u64() >= Some(2), "{document}");
    assert_eq!(document["is_late"], !errors.is_empty(), "{document}\n{errors}");
    assert_eq!(document["is_late"], document["late_us"]["p99"].as_u64() > Some(1_000));
}

#[test]
fn unavailable_end_is_named_and_the_other_removed() {
    let Some(net) = Net::new() else { return };
    let refused = |words: &str| fail(net.command(WHIMBREL).arg("link").args(words.split(' ')));
    let (code, text) = refused("tun:left tun:right,netns=nowhere");
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("namespace /run/netns/nowhere") && text.contains("ip netns list"),
        "{text}"
    );
    assert!(!net.run("ip link").contains("left"));
    let mut link = net.command(WHIMBREL);
    let link = Running::start(
        link.args(["link", "tun:left", "tun:right"]).stdout(Stdio::null()).stderr(Stdio::piped()),
    );
    await_that("both are there", || net.run("ip link").contains("right"));
    let (code, text) = refused("tun:left tun:other");
    assert_eq!(code, 1);
    assert!(text.contains("left is busy"), "{text}");
    net.run("ip link delete right");
    let ended = link.output();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{text}");
    assert!(text.contains("the interface right is lost"), "{text}");
}

/// A figure of `/proc/net/dev`: the first eight are of received packets, the next of sent ones.
fn counted(net: &Net, interface: &str, place: usize) -> u64 {
    let text = net.run("cat /proc/net/dev");
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)).unwrap();
    line.trim_start_matches(':').split_whitespace().nth(place).unwrap().parse().unwrap()
}

#[test]
fn stalled_path_reports_interface_drops_and_delay() {
    let (Some(client), Some(server)) = (Net::with(&["cat", "ping"]), Net::with(&["cat"])) else {
        return;
    };
    let link = link(&client, &server, "delay=3s --back delay=0s");
    let ping = |count: &str| {
        let words = ["-q", "-c", count, "-l", count, "-w", "1", "10.1.0.2"];
        output(client.command("ping").args(words))
    };
    // These are on the path when it stops, and due before it continues.
    let until = Instant::now() + Duration::from_millis(3_300);
    ping("20");
    let before = counted(&server, "right", 1);
    link.signal(Signal::STOP);
    // More than the 4,096 that the interface's queue holds, without a reader.
    ping("10000");
    let dropped = counted(&client, "left", 11);
    assert!((5_904..6_000).contains(&dropped), "{dropped}");
    thread::sleep(until.saturating_duration_since(Instant::now()));
    link.signal(Signal::CONT);
    await_that("what was on the path arrived", || counted(&server, "right", 1) >= before + 20);
    let (document, errors) = end(link);
    let there = &document["directions"][0];
    assert!(there["missed"].as_u64() >= Some(dropped), "{dropped}: {document}");
    assert!(there["sent"].as_u64() > Some(4_096), "what the queue held was read: {document}");
    assert_eq!((&there["lost"], &document["directions"][1]["missed"]), (&0.into(), &0.into()));
    let late = ["p99", "max"].map(|key| document["late_us"][key].as_u64().unwrap());
    assert!(document["is_late"] == true && late[0] > 1_000 && late[1] > 100_000, "{document}");
    assert!(errors.contains("1 % of packets left"), "{errors}");
    assert!(errors.contains("us late or more (at most"), "{errors}");
}

/// Five responses of 200 kB, or an echo where nothing else can pass.
fn passes_over(path: &str, command: &str) -> Value {
    let (Some(client), Some(server)) = (Net::with(&["ping"]), Net::new()) else {
        return Value::Null;
    };
    for net in [&client, &server] {
        net.set("net.ipv4.tcp_ecn", "1");
    }
    let link = link(&client, &server, path);
    let serve = server.serve(&["-w", "kernel:", "-l", "10.1.0.2:8080", "--body", "200k"]);
    let mut words = command.split_whitespace();
    let done = output(client.command(words.next().unwrap()).args(words));
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{path}: {told} {}", String::from_utf8_lossy(&done.stderr));
    serve.end();
    end(link).0
}

#[test]
fn each_key_acts_between_two_kernels() {
    let load =
        format!("{WHIMBREL} load http://10.1.0.2:8080/ -w kernel: -c 1 -n 5 --fail-if errors>0");
    // The way there carries the acknowledgments, the way back the responses.
    for (path, direction, figure) in [
        ("police=20M:30k", 1, "lost_policed"),
        ("ack-batch=2ms", 0, "batched"),
        ("rate=200k ack-filter --back rate=50M", 0, "lost_replaced"),
        ("ecn-bleach", 1, "bleached"),
        ("ecn=0", 1, "marked"),
        ("accecn-strip", 1, "delivered"),
        ("rate=100M at=0s:rate=20M at=0s:delay=2ms", 1, "delivered"),
        ("back.police=20M:30k", 1, "lost_policed"),
        ("back.ack-batch=2ms", 1, "batched"),
    ] {
        let document = passes_over(path, &load);
        let figures = document.get("directions").map(|both| &both[direction]);
        assert!(figures.is_none_or(|it| it[figure].as_u64() > Some(0)), "{path}: {document}");
        let other = document.get("directions").map(|both| &both[1 - direction]);
        let is_one_way = path.starts_with("back.");
        assert!(other.is_none_or(|it| !is_one_way || it[figure] == 0), "{path}: {document}");
    }
    // Packets that are longer than a step allows vanish, shorter ones pass.
    let document = passes_over("at=0s:mtu=500", "ping -c 2 -i 0.2 -s 56 10.1.0.2");
    let figures = document.get("directions").map(|both| &both[0]);
    assert!(figures.is_none_or(|it| it["delivered"].as_u64() >= Some(2)), "{document}");
    let document = passes_over("at=0s:mtu=83 at=2s:mtu=1500", "ping -c 1 -w 10 -s 56 10.1.0.2");
    let figures = document.get("directions").map(|both| &both[0]);
    assert!(figures.is_none_or(|it| it["lost_too_long"].as_u64() > Some(0)), "{document}");
}
