//! `whimbrel bulk`: in memory, and against the kernel over TUN, both ways.

use std::process::Command;

use serde_json::Value;

use crate::netns::{Net, WHIMBREL};
use crate::running::{fail, succeed, unbroken};
use crate::schema::checked;

fn whimbrel(words: &str) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

fn parse(text: &str) -> Value {
    checked(text)
}

#[test]
fn the_table_names_the_limit_of_a_long_path() {
    let line = "bulk send -t 5 -w mem:rate=45M,delay=35ms --clock virtual --window";
    let text = whimbrel(&format!("{line} 256K,exact"));
    assert!(text.contains("Limited by") && text.contains("sender"), "{text}");
    assert_eq!(text.matches(" receiver\n").count(), 1, "{text}");
    assert!(text.contains("256 KBytes per 70."), "{text}");
    assert!(text.contains("Limited by: send buffer") && text.contains("% of the time\n"), "{text}");
    assert!(text.contains("; give --window "), "{text}");
    let wider = whimbrel(&format!("{line} 1M"));
    assert!(!wider.contains("send buffer 9"), "{wider}");
}

#[test]
fn every_sent_byte_arrives() {
    let document = parse(&whimbrel("bulk send -n 10M -P 2 --json"));
    assert_eq!(document["summary"]["sent"], 10 << 20);
    for stream in document["streams"].as_array().unwrap() {
        assert_eq!(stream["confirmed"], 5 << 20);
    }
    let document = parse(&whimbrel("bulk recv -n 5M -w kernel: --json"));
    assert!(document["summary"]["received"].as_u64().unwrap() >= 5 << 20);
}

#[test]
fn full_line_is_named_instead_of_a_window() {
    let said = |wire: &str| {
        let text = whimbrel(&format!("bulk send -t 10 --clock virtual -w mem:{wire}"));
        unbroken(text.split_once("Limited by: ").expect(&text).1)
    };
    let full = said("rate=45M,delay=35ms");
    assert!(
        full.starts_with("the line, which is full (43.4 Mbits/sec of 45.0 Mbits/sec)"),
        "{full}"
    );
    assert!(full.contains(" long: the round trip rose from 70.02ms to 2"), "{full}");
    // One statement: a window that the line fills is no limit.
    assert!(!full.contains("window") && !full.contains("at most"), "{full}");
    // A rate that changes is not known: a flat rate and a round trip that grew tell.
    let unknown = said("rate=10M,delay=20ms,at=1s:rate=11M");
    assert!(unknown.starts_with("the line, which is full (10.6 Mbits/sec)"), "{unknown}");
    // A program that sends no faster is the limit, even if that is all that the line carries.
    let paced = whimbrel("bulk send -t 10 -b 42M --clock virtual -w mem:rate=45M,delay=35ms");
    assert!(paced.contains("Limited by: application") && !paced.contains("is full"), "{paced}");
    // As text with semicolons, which need quotes in a shell.
    let steps = said("rate=10M,delay=20ms;at=1s:rate=11M;at=2s:rate=11M");
    assert!(steps.starts_with("the line, which is full (10.6 Mbits/sec)"), "{steps}");
    // Losses leave it empty.
    let lossy = said("rate=100M,delay=20ms,loss=1%");
    assert!(!lossy.contains("is full"), "{lossy}");
}

/// Each interval of a flow of 100 Mb/s whose path has these steps: its beginning, and the bytes sent.
fn sent_by_interval(steps: &str) -> (Value, Vec<(f64, u64)>) {
    let line = "bulk send -t 30 -O 20s -i 0.1 --clock virtual --json -w mem:rate=100M,delay=20ms";
    let document = parse(&whimbrel(&format!("{line},{steps}")));
    let intervals = document["streams"][0]["intervals"].as_array().expect("intervals");
    let sent = |it: &Value| (it["start"].as_f64().unwrap(), it["sent"].as_u64().unwrap());
    let sent = intervals.iter().map(sent).collect();
    (document, sent)
}

#[test]
fn path_that_drops_full_segments_stops_text_for_three_rtos() {
    let (document, sent) = sent_by_interval("at=25s:mtu=1200");
    let silent = |it: &&(f64, u64)| it.0 >= 25.0 && it.1 == 0;
    // A round trip of 136 ms with its queue makes an RTO of 336 ms.
    assert!(sent.iter().filter(silent).count() <= 10, "{sent:?}");
    let late: u64 = sent.iter().filter(|it| it.0 >= 30.0).map(|it| it.1).sum();
    assert!(late * 8 / 20 > 90_000_000, "{late} bytes in 20 s");
    let counters = &document["stack"]["client"]["counters"];
    assert_eq!(counters["WhimbrelPathMtuSuspected"], 1, "{counters}");
    assert!(counters["TcpExtTCPMTUPFail"].as_u64() >= Some(1), "{counters}");

    // Without probing the flow is stuck for ever, and its line is not called full.
    let path = "mem:rate=100M,delay=20ms,at=5s:mtu=1200";
    let mut off = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    off.args(["bulk", "send", "-t", "20", "--clock", "virtual", "-w", path]);
    let output = off.args(["-S", "net.ipv4.tcp_mtu_probing=0"]).output().expect("it runs");
    let stuck = String::from_utf8_lossy(&output.stdout);
    assert!(stuck.contains("Limited by: ") && !stuck.contains("is full"), "{stuck}");
}

#[test]
fn outage_costs_at_most_one_probe_and_leaves_segments_full() {
    for (steps, up) in [("at=25s:down,at=26s:up", 26.0), ("at=25s:down,at=30s:up", 30.0)] {
        let (document, sent) = sent_by_interval(steps);
        let counters = &document["stack"]["client"]["counters"];
        assert!(counters["WhimbrelPathMtuSuspected"].as_u64() >= Some(1), "{counters}");
        // A probe, or text that arrived before, while its acknowledgments were lost, shows that the path is wide.
        let shown = ["TcpExtTCPMTUPSuccess", "WhimbrelPathMtuRefuted"];
        let shown = shown.map(|name| counters.get(name).and_then(Value::as_u64).unwrap_or(0));
        assert_eq!(shown.iter().sum::<u64>(), 1, "{counters}");
        assert!(counters.get("TcpExtTCPMTUPFail").is_none(), "{counters}");
        // The path is back before the last time-out is over, which waits as long as the outage was.
        let late: Vec<_> = sent.iter().filter(|it| it.0 >= up + 8.0).collect();
        let bytes: u64 = late.iter().map(|it| it.1).sum();
        // As much as full segments bring, 96.5 %, which smaller ones do not.
        assert!(bytes as f64 * 8.0 / late.len() as f64 > 96.0e5, "{steps}: {bytes} bytes");
    }
}

#[test]
fn window_to_set_is_the_rate_times_the_least_round_trip() {
    let small = "bulk send -t 5 --clock virtual --window 64k,exact -w mem:delay=100ms";
    let known = whimbrel(&format!("{small},rate=20M"));
    // 20 Mb/s x 200 ms are 500 kB.
    assert!(known.contains("give --window 512k\n"), "{known}");
    let unknown = whimbrel(&format!("{small},rate=20M,at=1ms:rate=21M"));
    assert!(unbroken(&unknown).contains("give --window 128k or more"), "{unknown}");
}

#[test]
fn first_line_says_whether_the_window_grows() {
    for (typed, said) in [
        ("--window 64k", ", window 64.0 KiB and growing"),
        ("--window 64k/32k,exact", ", window 64.0 KiB / 32.0 KiB, fixed"),
        ("--window 64k -w kernel:", ", window 64.0 KiB, fixed"),
    ] {
        let text = whimbrel(&format!("bulk send -n 1M {typed}"));
        let first = unbroken(text.split_once("[ ID]").unwrap().0);
        assert!(first.trim_end().ends_with(said), "{first}");
    }
}

#[test]
fn ports_that_ran_out_are_named_with_their_figures() {
    let mut short = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    short.args("bulk send -t 1 -P 3 -S".split(' ')).arg("net.ipv4.ip_local_port_range=50000 50001");
    let (code, error) = fail(&mut short);
    let reason = "no free port (ports 50000 to 50001: 2 in use, 0 in TIME-WAIT): widen net.ipv4.ip";
    assert!(code == 1 && error.contains(reason), "{code} {error}");
    assert_eq!(error.lines().count(), 1, "{error}");

    let Some(net) = Net::new() else { return };
    net.set("net.ipv4.ip_local_port_range", "50000 50001");
    let mut kernels = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    let serve = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:5201", "--sink"]);
    let (code, error) =
        fail(kernels.args("bulk send 127.0.0.1 --peer plain -w kernel: -P 3".split(' ')));
    let reason = "no free port (ports 50000 to 50001: 0 in TIME-WAIT): widen net.ipv4.ip";
    assert!(code == 1 && error.contains(reason), "{code} {error}");
    serve.end();
}

#[test]
fn iperf3_document_omits_unmeasured_values() {
    let virtually = "-t 3 -w mem:rate=10M,delay=5ms --clock virtual --json=iperf3";
    let document = parse(&whimbrel(&format!("bulk send {virtually}")));
    let load = &document["end"]["cpu_utilization_percent"];
    let sides: Vec<_> = load.as_object().unwrap().keys().collect();
    assert_eq!(sides, ["host_system", "host_total", "host_user"]);
    assert!(load["host_total"].as_f64() > Some(0.0), "{load}");
    assert_eq!(document["intervals"].as_array().unwrap().len(), 3);
    let both = parse(&whimbrel(&format!("bulk send --bidir {virtually}")));
    assert!(both["end"]["sum_received_bidir_reverse"]["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn route_sets_initial_values_of_connections() {
    let line = "bulk send -t 5 -w mem:rate=100M,delay=35ms --clock virtual --json=iperf3 -C cubic";
    let sent = |more: &str| {
        let document = parse(&whimbrel(&format!("{line}{more}")));
        let rate = document["end"]["sum_sent"]["bits_per_second"].as_f64().unwrap();
        (rate, document["end"]["sender_tcp_congestion"].as_str().unwrap().to_owned())
    };
    let (as_it_comes, algorithm) = sent("");
    assert_eq!(algorithm, "cubic");
    // Of two routes to a network both count, and the second where they differ.
    let route = " --route 10.0.0.0/24,initcwnd=500 --route 10.0.0.0/24,recvpipe=2M,congestion=reno";
    let (told, algorithm) = sent(route);
    assert_eq!(algorithm, "reno");
    assert!(told > as_it_comes * 1.05, "no slow start: {told} for {as_it_comes}");
    let (old, _) = sent(" -S buffers=route --route 10.0.0.0/24,recvpipe=64k");
    assert!((6.5e6..7.6e6).contains(&old), "a window of 64 KiB in 70 ms: {old}");
}

#[test]
fn our_stack_and_the_kernel_send_to_each_other_over_tun() {
    let Some(net) = Net::new() else { return };
    let run = |words: &str| {
        parse(&net.run(&format!("{} {words} --json", env!("CARGO_BIN_EXE_whimbrel"))))
    };
    let wire = "tun:whim1,addr=10.8.0.2/24,host=10.8.0.1";

    let ours = net.serve(&["--sink"]);
    let document = run("bulk send 10.9.0.2:5201 --peer plain -w kernel: -n 40M -P 2");
    assert_eq!(document["streams"][1]["confirmed"], 20 << 20);
    ours.stop();
    let ours = net.serve(&["--chargen", "-l", "10.9.0.2:5202"]);
    let document = run("bulk recv 10.9.0.2:5202 --peer plain -w kernel: -t 500ms");
    assert!(document["summary"]["received"].as_u64().unwrap() > 1 << 20);
    ours.stop();

    let kernel = net.serve(&["--sink", "-w", "kernel:"]);
    let document = run(&format!("bulk send 10.8.0.1 --peer plain -w {wire} -n 40M -P 2"));
    assert_eq!(document["streams"][0]["confirmed"], 20 << 20);
    kernel.end();
    let kernel = net.serve(&["--chargen", "-w", "kernel:"]);
    let document = run(&format!("bulk recv 10.8.0.1:19 --peer plain -w {wire} -t 500ms"));
    assert!(document["summary"]["received"].as_u64().unwrap() > 1 << 20);
    kernel.end();
}

/// Packets with ECT(0) that the kernel of a namespace received.
fn ect0_packets(net: &Net) -> u64 {
    let text = net.run("cat /proc/net/netstat");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "InECT0Pkts").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

#[test]
fn ecn_is_agreed_with_the_kernel_whichever_asks() {
    let Some(net) = Net::new() else { return };
    let wire = "tun:whim1,addr=10.8.0.2/24,host=10.8.0.1";
    let send = format!("{WHIMBREL} bulk send 10.8.0.1 --peer plain -w {wire} -n 4M");

    net.set("net.ipv4.tcp_ecn", "1");
    let ours = net.serve(&["--chargen", "-l", "10.9.0.2:5202"]);
    net.run(&format!("{WHIMBREL} bulk recv 10.9.0.2:5202 --peer plain -w kernel: -n 4M"));
    ours.stop();
    let by_kernel = ect0_packets(&net);
    assert!(by_kernel > 0, "the kernel asks");

    let kernel = net.serve(&["--sink", "-w", "kernel:"]);
    net.run(&format!("{send} -S net.ipv4.tcp_ecn=1"));
    let by_us = ect0_packets(&net);
    assert!(by_us > by_kernel, "we ask");
    net.run(&send);
    assert_eq!(ect0_packets(&net), by_us, "neither asks");
    net.set("net.ipv4.tcp_ecn", "0");
    net.run(&format!("{send} -S net.ipv4.tcp_ecn=1"));
    assert_eq!(ect0_packets(&net), by_us, "the kernel does not agree");
    kernel.end();
}

/// The mark is half a bandwidth-delay product of 100 Mb/s and 40 ms: 250 kB, of 20 ms. A full line carries
/// 96.5 Mb/s of text.
#[test]
fn marks_keep_line_full_and_queue_short_without_losses() {
    let line = "--clock virtual -w mem:rate=100M,delay=20ms,ecn=250000,queue=100000p";
    let missed = "bitrate<93.6M||wait.p99>24ms||again>0";
    for algorithm in ["reno", "cubic"] {
        let run = format!("bulk send -t 60 -O 20s {line} -C {algorithm} --fail-if {missed}");
        let text = whimbrel(&format!("{run} -S net.ipv4.tcp_ecn=1"));
        assert!(text.contains("Waited in the queue: "), "{text}");
    }
    // Unless both ends agree, nothing is marked and the queue grows.
    let run = format!("bulk send -t 5 -O 10s {line} -C reno --fail-if {missed}");
    let (code, error) = fail(Command::new(WHIMBREL).args(run.split_whitespace()));
    assert!(code == 3 && error.contains("wait.p99 is "), "{code} {error}");
}

/// An iperf3 server paces what it sends, and the kernel's TCP what goes over the loopback.
#[test]
fn fq_rate_is_kept_by_either_side_and_by_the_kernel() {
    let line = "--clock virtual -w mem:rate=100M,delay=20ms";
    let exact = "bitrate<19.8M||bitrate>20.2M";
    for (run, limits) in [
        (format!("bulk send -t 10 -O 1s {line}"), exact),
        (format!("bulk send -t 10 -O 1s {line} -C reno --peer iperf3"), exact),
        (format!("bulk recv -t 10 -O 1s {line} --peer iperf3"), exact),
        // What left unpaced at the beginning counts; unpaced, it is gigabits.
        ("bulk send -t 2 -w kernel:".to_owned(), "bitrate>40M"),
    ] {
        whimbrel(&format!("{run} --fq-rate 20M --fail-if {limits}"));
    }
    let document = parse(&whimbrel(&format!("bulk send -n 1M {line} --fq-rate 20M --json")));
    assert_eq!(document["config"]["max_pacing_rate"].as_u64(), Some(2_500_000), "{document}");
}

/// Bytes on the way at the end of the time are in the sink's count: in its time, too.
#[test]
fn a_sink_receives_no_faster_than_the_line_is() {
    let run = "bulk send -t 10 -P 2 -w mem:rate=45M,delay=35ms --clock virtual";
    let document = parse(&whimbrel(&format!("{run} --json")));
    for stream in document["streams"].as_array().unwrap() {
        let (came, after) = (&stream["confirmed"], stream["confirmed_after"].as_f64().unwrap());
        assert!(came.as_u64() > stream["sent"].as_u64() && after > 10.1, "{stream}");
    }
    let text = whimbrel(run);
    let sum = text.lines().find(|line| line.contains("SUM") && line.ends_with("receiver")).unwrap();
    let rate: f64 = sum.split_whitespace().rev().nth(2).unwrap().parse().unwrap();
    assert!((40.0..44.0).contains(&rate), "{text}");
}

#[test]
fn limits_of_a_sender_add_up_to_its_time() {
    let virtually = "-t 3 -w mem:rate=1G,delay=35ms --clock virtual";
    let text = whimbrel(&format!("bulk send {virtually} --window 1M/192k,exact --json-stream"));
    let lines: Vec<Value> = text.lines().map(parse).collect();
    assert_eq!(lines.len(), 4, "{text}");
    let limited = &lines[2]["data"]["streams"][0]["limited"];
    assert!(limited["rwnd"].as_f64() > Some(0.99), "{limited}");
    let sum: f64 = limited.as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert!((sum - 1.0).abs() < 0.003, "{limited}");

    let table = whimbrel(&format!("bulk send -b 1M {virtually} --csv"));
    let (heading, rows) = table.split_once('\n').unwrap();
    assert!(heading.ends_with("limited_app,limited_rwnd,limited_cwnd,limited_sndbuf"), "{heading}");
    for row in rows.lines() {
        let app: f64 = row.split(',').nth(11).unwrap().parse().unwrap();
        assert!(app > 0.9, "who keeps a rate is the limit: {row}");
    }
}

#[test]
fn segments_and_windows_follow_options() {
    let virtually = "-t 2 -w mem:rate=1G,delay=10ms --clock virtual --json";
    let narrow = parse(&whimbrel(&format!("bulk send -M 500 -N -C reno {virtually}")));
    let segments = |document: &Value| {
        let sent = document["summary"]["sent"].as_u64().unwrap();
        sent / document["stack"]["server"]["counters"]["TcpInSegs"].as_u64().unwrap()
    };
    assert!(segments(&narrow) <= 500, "{}", segments(&narrow));
    let rate = |wscale: &str| {
        let document = parse(&whimbrel(&format!("bulk send --wscale {wscale} {virtually}")));
        document["summary"]["sent_rate"].as_f64().unwrap()
    };
    // 65,535 bytes in each round trip of 20 ms are 26.2 Mbit/s.
    for wscale in ["off", "0"] {
        assert!((23e6..27e6).contains(&rate(wscale)), "{wscale}: {}", rate(wscale));
    }
    assert!((46e6..54e6).contains(&rate("1")), "{}", rate("1"));
    let kernel = parse(&whimbrel("bulk send -n 1M -w kernel: -M 1000 -C reno --json=iperf3"));
    assert_eq!(kernel["end"]["sender_tcp_congestion"], "reno");
    assert!(kernel["start"]["tcp_mss_default"].as_u64() <= Some(1000), "{kernel}");
}

#[test]
fn reverse_swaps_the_direction() {
    let document = parse(&whimbrel("bulk send -R -n 1M --json"));
    assert_eq!(document["config"]["direction"], "recv");
    // A block under way may come on top.
    assert!(document["summary"]["received"].as_u64() >= Some(1 << 20), "{}", document["summary"]);
    let document = parse(&whimbrel("bulk recv -R -n 1M --json"));
    assert_eq!(document["config"]["direction"], "send");
    assert_eq!(document["summary"]["sent"], 1 << 20);
}

#[test]
fn window_limits_bytes_per_round_trip() {
    let line = "-t 20 -w mem:rate=1G,delay=50ms --clock virtual --json";
    let rate = |window: &str| {
        let document = parse(&whimbrel(&format!("bulk send --window {window},exact {line}")));
        assert_eq!(document["rules"]["tunables"]["buffers.recv"]["origin"], "--window");
        document["summary"]["sent_rate"].as_f64().unwrap()
    };
    // 64 KiB in each round trip of 100 ms are 5.2 Mbit/s.
    let narrow = rate("1M/64k");
    assert!((4.7e6..5.6e6).contains(&narrow), "{narrow}");
    let wide = rate("512k");
    assert!(wide > 5.0 * narrow, "{wide} is not above {narrow}");
}
