//! Each kind of mismatch is found and reported at its line.

use super::*;

#[test]
fn flags() {
    fails(&accepted("+.1 write(4, ..., 10) = 10\n+0 > . 1:11(10) ack 1\n"), 9, "flags .", "P.");
}

#[test]
fn sequence_number() {
    fails(
        &accepted("+.1 write(4, ..., 10) = 10\n+0 > P. 2:12(10) ack 1\n"),
        9,
        "sequence number 2",
        "1",
    );
}

#[test]
fn length() {
    fails(
        &accepted("+.1 < P. 1:11(10) ack 1 win 9\n+.04 > . 1:11(10) ack 11\n"),
        9,
        "length 10 bytes",
        "0 bytes",
    );
}

#[test]
fn acknowledgment_number() {
    fails(
        &accepted("+.1 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 3\n"),
        9,
        "acknowledgment number 3",
        "1",
    );
}

#[test]
fn window() {
    fails(
        &accepted("+.1 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1 win 7\n"),
        9,
        "window 7",
        "65535",
    );
}

#[test]
fn urgent_pointer() {
    fails(
        &accepted("+.1 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1 urg 4\n"),
        9,
        "urgent pointer 4",
        "0",
    );
}

#[test]
fn options_in_another_order() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop>
+0 > S. 0:0(0) ack 1 <nop,nop,sackOK,mss 1460>
";
    fails(text, 5, "options <nop,nop,sackOK,mss 1460>", "<mss 1460,nop,nop,sackOK>");
}

#[test]
fn echoed_timestamp() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,nop,nop,TS val 7 ecr 0>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,TS val 1 ecr 8>
";
    let Verdict::Failed(failure) = strictly(text) else { panic!("it should fail") };
    assert_eq!(failure.expected, "options <mss 1460,nop,nop,TS val 1 ecr 8>");
    assert!(failure.came.ends_with("ecr 7>"), "{}", failure.came);
}

#[test]
fn ecn_field_traffic_class_and_hop_limit() {
    let marked =
        |marks| accepted(&format!("+.1 write(4, ..., 9) = 9\n+0 > {marks} P. 1:10(9) ack 1\n"));
    fails(&marked("[ce]"), 9, "ECN field ce", "noecn");
    fails(&marked("[tos 0x10]"), 9, "traffic class 0x10", "0x00");
    fails(&marked("[ttl 3]"), 9, "hop limit 3", "64");
}

#[test]
fn too_late_and_too_early() {
    fails(
        &accepted("+.1 write(4, ..., 10) = 10\n+.1 > P. 1:11(10) ack 1\n"),
        9,
        "time 0.300000 (give or take 0.012500)",
        "0.200000 (P. 1:11(10) ack 1 win 65535)",
    );
}

#[test]
fn missing_packet_is_a_mismatch() {
    fails(
        &accepted("+.1 > . 1:1(0) ack 1\n"),
        8,
        "> . 1:1(0) ack 1 at 0.200000 (give or take 0.012500)",
        "nothing",
    );
}

#[test]
fn packet_that_is_not_written() {
    fails(
        &accepted("+.1 write(4, ..., 10) = 10\n"),
        8,
        "nothing more",
        "P. 1:11(10) ack 1 win 65535",
    );
}

#[test]
fn packet_that_is_not_written_fails_at_the_next_that_is() {
    fails(
        &accepted(
            "+.1 write(4, ..., 10) = 10
+.1 < . 1:1(0) ack 11 win 32792
+.1 < F. 1:1(0) ack 11 win 32792
+0 > . 11:11(0) ack 2
",
        ),
        11,
        "flags .",
        "P.",
    );
}

#[test]
fn result_of_a_call() {
    fails(&accepted("+0 write(4, ..., 10) = 11\n"), 8, "write: the result 11", "10");
}

#[test]
fn call_that_blocks_too_long() {
    fails(
        &accepted("+0...+.1 read(4, ..., 10) = 1\n"),
        8,
        "read to end at 0.200000",
        "nothing: it blocks",
    );
}

#[test]
fn call_that_should_have_blocked() {
    fails(
        &accepted("+0...+.1 write(4, ..., 10) = 10\n"),
        8,
        "write to end at 0.200000",
        "its end at 0.100000",
    );
}

#[test]
fn an_assertion() {
    fails(
        &accepted("+0 %{ assert tcpi_state == TCP_CLOSE }%\n"),
        8,
        "assert tcpi_state == TCP_CLOSE",
        "1 against 7",
    );
}

#[test]
fn strict_segments_are_counted() {
    let text = accepted("+.1 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1\n");
    fails(&format!("--strict_segments\n{text}"), 10, "flags P.", ".");
}

#[test]
fn unknown_options_and_lines_are_skipped() {
    let skipped = |text: &str| match strictly(text) {
        Verdict::Skipped(reasons) => reasons.join("; "),
        other => panic!("it should be skipped: {other:?}"),
    };
    assert_eq!(skipped("--frobnicate=1\n"), "line 1: option --frobnicate is not supported");
    assert_eq!(skipped("0 `rm -rf /tmp/x`\n"), "line 1: `rm -rf /tmp/x` is not known");
}

#[test]
fn foreign_scripts_get_warnings_for_leftovers() {
    let settings = Settings { leftovers: Leftovers::Warn, ..Settings::default() };
    let verdict = verdict(&accepted("+.1 write(4, ..., 10) = 10\n"), &settings);
    let Verdict::Passed { warnings, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(warnings, ["left over: P. 1:11(10) ack 1 win 65535".to_string()]);
}

#[test]
fn a_failure_shows_the_last_ten_packets() {
    let Verdict::Failed(failure) = strictly(&accepted("+.1 > . 1:1(0) ack 1\n")) else {
        panic!("it should fail")
    };
    let packets: Vec<String> = failure.packets.iter().map(ToString::to_string).collect();
    assert_eq!(
        packets,
        [
            "0.000000 < S 0:0(0) win 32792 <mss 1000>",
            "0.000000 > S. 0:0(0) ack 1 win 65535 <mss 1460>",
            "0.100000 < . 1:1(0) ack 1 win 32792",
        ]
    );
}

#[test]
fn drawn_port_is_learned_and_bound_port_is_compared() {
    let text = |port| {
        format!(
            "--ip_version=ipv4
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, {{sa_family = AF_INET, sin_port = htons(5555), sin_addr = inet_addr(\"192.168.0.1\")}}, ...) = 0
+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4
+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(4, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > 192.168.0.1:{port} > 192.0.2.1:8080: S 0:0(0) <...>
"
        )
    };
    passes(&text(5556));
    assert!(!strictly(&text(5555)).is_passed(), "the socket that connects is another");
}
