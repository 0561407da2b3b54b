//! `whimbrel bulk`: in memory, and against the kernel over TUN, both ways.

use std::process::Command;

use serde_json::Value;

use crate::netns::{Net, succeed};

fn whimbrel(words: &str) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_table_names_the_limit_of_a_long_path() {
    let text = whimbrel("bulk send -t 5 -w mem:rate=45M,delay=35ms --clock virtual");
    assert!(text.contains("Limited by") && text.contains("sender"), "{text}");
    assert!(text.contains("receiver (says so)"), "{text}");
    assert!(text.contains("in a round trip of 70."), "{text}");
}

#[test]
fn every_octet_that_was_sent_came() {
    let document = parse(&whimbrel("bulk send -n 5M -P 2 --json"));
    assert_eq!(document["summary"]["sent"], 10 << 20);
    for stream in document["streams"].as_array().unwrap() {
        assert_eq!(stream["confirmed"], 5 << 20);
    }
    let document = parse(&whimbrel("bulk recv -n 5M -w kernel: --json"));
    assert!(document["summary"]["received"].as_u64().unwrap() >= 5 << 20);
}

#[test]
fn the_document_of_iperf3_has_its_keys() {
    let virtually = "-t 3 -w mem:rate=10M,delay=5ms --clock virtual --json=iperf3";
    let document = parse(&whimbrel(&format!("bulk send {virtually}")));
    let keys =
        |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    // As printed by iperf 3.12, sorted.
    assert_eq!(
        keys(&document["start"]),
        "connected connecting_to cookie rcvbuf_actual sndbuf_actual sock_bufsize system_info \
         target_bitrate tcp_mss_default test_start timestamp version"
    );
    assert_eq!(
        keys(&document["start"]["test_start"]),
        "blksize blocks bytes duration num_streams omit protocol reverse target_bitrate tos"
    );
    assert_eq!(
        keys(&document["intervals"][0]["streams"][0]),
        "bits_per_second bytes end omitted pmtu retransmits rtt rttvar seconds sender snd_cwnd \
         snd_wnd socket start"
    );
    assert_eq!(
        keys(&document["intervals"][0]["sum"]),
        "bits_per_second bytes end omitted retransmits seconds sender start"
    );
    assert_eq!(
        keys(&document["end"]["streams"][0]["sender"]),
        "bits_per_second bytes end max_rtt max_snd_cwnd max_snd_wnd mean_rtt min_rtt retransmits \
         seconds sender socket start"
    );
    assert_eq!(
        keys(&document["end"]),
        "cpu_utilization_percent receiver_tcp_congestion sender_tcp_congestion streams \
         sum_received sum_sent"
    );
    assert_eq!(document["intervals"].as_array().unwrap().len(), 3);
    let both = parse(&whimbrel(&format!("bulk send --bidir {virtually}")));
    assert!(both["end"]["sum_received_bidir_reverse"]["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn our_stack_and_the_kernel_send_to_each_other_over_tun() {
    let Some(net) = Net::new() else { return };
    let run = |words: &str| {
        parse(&net.run(&format!("{} {words} --json", env!("CARGO_BIN_EXE_whimbrel"))))
    };
    let wire = "tun:whim1,addr=10.8.0.2/24,host=10.8.0.1";

    let ours = net.serve(&["--sink"]);
    let document = run("bulk send 10.9.0.2:5201 -w kernel: -n 20M -P 2");
    assert_eq!(document["streams"][1]["confirmed"], 20 << 20);
    ours.stop();
    let ours = net.serve(&["--chargen", "-l", "10.9.0.2:5202"]);
    let document = run("bulk recv 10.9.0.2:5202 -w kernel: -t 500ms");
    assert!(document["summary"]["received"].as_u64().unwrap() > 1 << 20);
    ours.stop();

    let kernel = net.serve(&["--sink", "-w", "kernel:"]);
    let document = run(&format!("bulk send 10.8.0.1:5201 -w {wire} -n 20M -P 2"));
    assert_eq!(document["streams"][0]["confirmed"], 20 << 20);
    kernel.end();
    let kernel = net.serve(&["--chargen", "-w", "kernel:"]);
    let document = run(&format!("bulk recv 10.8.0.1:19 -w {wire} -t 500ms"));
    assert!(document["summary"]["received"].as_u64().unwrap() > 1 << 20);
    kernel.end();
}

#[test]
fn reversed_it_goes_the_other_way() {
    let document = parse(&whimbrel("bulk send -R -n 1M --json"));
    assert_eq!(document["config"]["direction"], "recv");
    // A block under way may come on top.
    assert!(document["summary"]["received"].as_u64() >= Some(1 << 20), "{}", document["summary"]);
    let document = parse(&whimbrel("bulk recv -R -n 1M --json"));
    assert_eq!(document["config"]["direction"], "send");
    assert_eq!(document["summary"]["sent"], 1 << 20);
}

#[test]
fn a_window_bounds_what_goes_in_a_round_trip() {
    let line = "-t 20 -w mem:rate=1G,delay=50ms --clock virtual --json";
    let rate = |window: &str| {
        let document = parse(&whimbrel(&format!("bulk send --window {window} {line}")));
        assert_eq!(document["rules"]["tunables"]["buffers.recv"]["origin"], "--window");
        document["summary"]["sent_rate"].as_f64().unwrap()
    };
    // 64 KiB in each round trip of 100 ms are 5.2 Mbit/s.
    let narrow = rate("1M/64k");
    assert!((4.7e6..5.6e6).contains(&narrow), "{narrow}");
    let wide = rate("512k");
    assert!(wide > 5.0 * narrow, "{wide} is not above {narrow}");
}
