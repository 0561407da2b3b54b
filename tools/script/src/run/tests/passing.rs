//! Correct behaviour of a host passes.

use super::*;

#[test]
fn three_way_handshake_with_all_options() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 1000:1000(0) win 32792 <mss 1000,sackOK,TS val 7 ecr 0,nop,wscale 7>
+0 > S. 0:0(0) ack 1001 win 65535 <mss 1460,sackOK,TS val 100 ecr 7,nop,wscale 11>
+.1 < . 1:1(0) ack 1 win 257 <nop,nop,TS val 8 ecr 100>
+0 accept(3, ..., ...) = 4
",
    );
}

#[test]
fn three_way_handshake_over_ipv6() {
    passes(
        "--ip_version=ipv6
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1440>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
",
    );
}

#[test]
fn data_in_order_is_acknowledged_and_read() {
    passes(&accepted(
        "+.1 < P. 1:1001(1000) ack 1 win 32792
+.04 > . 1:1(0) ack 1001
+0 read(4, ..., 2000) = 1000
",
    ));
}

#[test]
fn long_write_may_come_in_segments() {
    passes(&accepted(
        "+.1 write(4, ..., 3000) = 3000
+0 > P. 1:3001(3000) ack 1
+.1 < . 1:1(0) ack 3001 win 32792
",
    ));
}

#[test]
fn unanswered_text_comes_again() {
    passes(&accepted(
        "+.1 write(4, ..., 100) = 100
+0 > P. 1:101(100) ack 1
+.3~+.4 > P. 1:101(100) ack 1
+.1 < . 1:1(0) ack 101 win 32792
",
    ));
}

#[test]
fn text_out_of_order_is_named_in_sack() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 500:500(0) win 32792 <mss 1000,sackOK,nop,nop>
+0 > S. 0:0(0) ack 501 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+.1 < . 1001:2001(1000) ack 1 win 32792
+0 > . 1:1(0) ack 1 <nop,nop,sack 1001:2001>
+.1 < . 1:1001(1000) ack 1 win 32792
+0 > . 1:1(0) ack 2001
",
    );
}

#[test]
fn peers_sack_triggers_retransmission() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+.1 write(4, ..., 5000) = 5000
+0 > P. 1:5001(5000) ack 1
+.1 < . 1:1(0) ack 1 win 32792 <nop,nop,sack 1001:2001>
+0 < . 1:1(0) ack 1 win 32792 <nop,nop,sack 1001:3001>
+0 < . 1:1(0) ack 1 win 32792 <nop,nop,sack 1001:4001>
+0 > . 1:1001(1000) ack 1
+.1 < . 1:1(0) ack 5001 win 32792
",
    );
}

#[test]
fn peers_fin_ends_the_stream() {
    passes(&accepted(
        "+.1 < F. 1:1(0) ack 1 win 32792
+0~+.04 > . 1:1(0) ack 2
+0 read(4, ..., 100) = 0
+0 close(4) = 0
+0 > F. 1:1(0) ack 2
+.1 < . 2:2(0) ack 2 win 32792
",
    ));
}

#[test]
fn peers_reset_ends_everything() {
    passes(&accepted(
        "+.1 < R. 1:1(0) ack 1 win 0
+0 read(4, ..., 100) = -1 ECONNRESET (Connection reset by peer)
",
    ));
}

#[test]
fn segment_to_a_closed_port_is_reset() {
    passes(
        "0 < S 7:7(0) win 1000
+0 > R. 0:0(0) ack 1
+.1 < . 8:8(0) ack 99 win 1000
+0 > R 99:99(0)
",
    );
}

#[test]
fn simultaneous_close_goes_through_closing() {
    passes(&accepted(
        "+.1 close(4) = 0
+0 > F. 1:1(0) ack 1
+.01 < F. 1:1(0) ack 1 win 32792
+0 > . 2:2(0) ack 2
",
    ));
}

#[test]
fn active_open_learns_its_isn() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 11>
+.1 < S. 123:123(0) ack 1 win 5840 <mss 1460,sackOK,TS val 700 ecr 100,nop,wscale 7>
+0 > . 1:1(0) ack 1 <nop,nop,TS val 200 ecr 700>
+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0
",
    );
}

#[test]
fn connect_blocks_until_the_peer_answers() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...0.1 connect(3, ..., ...) = 0
+0 > S 0:0(0) <...>
+.1 < S. 0:0(0) ack 1 win 5840 <mss 1460>
+0 > . 1:1(0) ack 1
",
    );
}

#[test]
fn blocked_read_ends_with_the_text() {
    passes(&accepted(
        "+0...+.1 read(4, ..., 100) = 10
+.1 < P. 1:11(10) ack 1 win 32792
+0~+.04 > . 1:1(0) ack 11
",
    ));
}

#[test]
fn icmp_ends_an_attempt_to_open() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...0.1 connect(3, ..., ...) = -1 ECONNREFUSED (Connection refused)
+0 > S 0:0(0) <...>
+.1 < icmp unreachable port_unreachable [0:0(0)]
",
    );
}

#[test]
fn icmpv6_ends_an_attempt_to_open() {
    passes(
        "--ip_version=ipv6
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...0.1 connect(3, ..., ...) = -1 ECONNREFUSED (Connection refused)
+0 > S 0:0(0) <...>
+.1 < icmp unreachable port_unreachable [0:0(0)]
",
    );
}

#[test]
fn narrow_path_has_text_cut_anew() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1460>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+.1 write(4, ..., 1460) = 1460
+0 > P. 1:1461(1460) ack 1
+.1 < icmp unreachable frag_needed mtu 1200 [1:1461(1460)]
+0 > . 1:1161(1160) ack 1
+0 > P. 1161:1461(300) ack 1
+.1 < . 1:1(0) ack 1461 win 32792
",
    );
}

#[test]
fn second_listener_gets_a_connection_of_its_own() {
    let second = ACCEPTED.replace("0 socket", "+.1 socket").replace("= 4", "= 5");
    let second =
        second.replace("(3,", "(6,").replace("= 3", "= 6").replace("0:0(0) win", "9:9(0) win");
    let second = second.replace("0:0(0) ack 1 <", "0:0(0) ack 10 <");
    passes(&accepted(&format!(
        "+.1 < R. 1:1(0) ack 1 win 0
+0 close(4) = 0
+0 close(3) = 0
{second}+.1 write(5, ..., 10) = 10
+0 > P. 1:11(10) ack 1
"
    )));
}

#[test]
fn two_connections_by_their_ends() {
    passes(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 2) = 0
+0 < 192.0.2.1:1000 > 192.168.0.1:8080 S 5:5(0) win 1000 <mss 1000>
+0 > 192.168.0.1:8080 > 192.0.2.1:1000 S. 0:0(0) ack 6 <mss 1460>
+.1 < 2000 > 8080 S 70:70(0) win 1000 <mss 1000>
+0 > 8080 > 2000 S. 0:0(0) ack 71 <mss 1460>
+.1 < 1000 > 8080 . 1:1(0) ack 1 win 1000
+.1 < 2000 > 8080 . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
+0 accept(3, ..., ...) = 5
+.1 write(5, ..., 10) = 10
+0 > 8080 > 2000 P. 1:11(10) ack 1
+.1 < 2000 > 8080 . 1:1(0) ack 11 win 1000
+.1 write(4, ..., 10) = 10
+0 > 8080 > 1000 P. 1:11(10) ack 1
",
    );
}

#[test]
fn snippets_see_the_connection() {
    passes(&accepted(
        "+0 %{ assert tcpi_state == TCP_ESTABLISHED }%
",
    ));
    passes(&accepted("+0 %{ assert tcpi_state == 1 and TCPI_ESTABLISHED == 1 }%\n"));
    // FreeBSD has other numbers for these states.
    let text = accepted("+0 %{ assert tcpi_state == 4 and TCPS_CLOSED == 0 }%\n");
    let freebsd = Settings { dialect: Dialect::FreeBsd, ..Settings::default() };
    assert!(verdict(&text, &freebsd).is_passed());
    assert!(!strictly(&text).is_passed());
}

#[test]
fn end_of_a_call_counts_from_the_event_before_it() {
    let text = |end| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1...{end} accept(3, ..., ...) = 4
+.1 < . 1:1(0) ack 1 win 32792
"
        )
    };
    passes(&text("0.2"));
    passes(&text("+0.2"));
    assert!(!strictly(&text("0.1")).is_passed());
}

#[test]
fn ack_of_a_syn_uses_the_numbers_of_that_syn() {
    let passive = |ack| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 900:900(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack {ack} <mss 1460>
+1 > S. 0:0(0) ack {ack} <mss 1460>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 1
"
        )
    };
    passes(&passive(901));
    let said = "acknowledgment number 1";
    fails(&passive(1), 5, said, "901");
    // The script may choose the host's number, if it stays the same.
    let active = |isn, ack| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS
+0 > S {isn}:{isn}(0) <...>
+.1 < S. 0:0(0) ack {ack} win 32792 <mss 1000>
+0 > . 1:1(0) ack 1
"
        )
    };
    passes(&active(0, 1));
    passes(&active(77, 78));
    fails(&active(77, 1), 4, "sequence number 77", "0");
}

#[test]
fn echo_is_answered_and_its_answer_need_not_be_written() {
    passes(&accepted(
        "+.1 < icmp echo_request id 7 [0:0(0)]
+0 > icmp echo_reply
",
    ));
    passes(&accepted(
        "+.1 < icmp echo_request
+.1 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 1
+0 < icmp echo_request
",
    ));
}
