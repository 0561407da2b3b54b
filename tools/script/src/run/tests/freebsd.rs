//! Scripts in FreeBSD's dialect, under its profile.

use super::*;

/// Asserts that a script passes without any rule.
#[track_caller]
fn passes_in(mode: Mode, text: &str) {
    match verdict_in(mode, text) {
        Verdict::Passed { rules, .. } => assert_eq!(rules, Rules::new(), "{mode:?}"),
        other => {
            panic!("{mode:?}: {}", super::super::super::report::ScriptReport::new("script", &other))
        }
    }
}

fn verdict_in(mode: Mode, text: &str) -> Verdict {
    let settings = Settings { mode, dialect: Dialect::FreeBsd, ..Settings::default() };
    let script = parse(text, &Defines::of(settings.dialect)).expect("a script that can be read");
    let setup = Setup::of(&script, settings.dialect).expect("no option");
    let profile = whimbrel_stack::Profile::by_name("freebsd").expect("a profile");
    let tunables = profile.tunables().expect("valid settings");
    let mut host = ShardHost::new(&setup.network, tunables).expect("a host");
    run(&script, &settings, &mut host)
}

/// A connection whose host accepts 45 segments of 1,460, more than the window field holds without a
/// scale.
#[track_caller]
fn passes_at_the_edge(rest: &str) {
    let text = format!(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+.1 < S 0:0(0) win 65535 <mss 1460>
+0 > S. 0:0(0) ack 1 win 65535 <mss 1460>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
+0 getsockopt(4, SOL_SOCKET, SO_RCVBUF, [65700], [4]) = 0
+.1 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 1 win 65535
+.1 < . 1:1(0) ack 10 win 65535
{rest}
+.1 write(4, ..., 9) = 9
+0 > P. 10:19(9) ack 1
"
    );
    for mode in [Mode::Strict, Mode::Semantic] {
        passes_in(mode, &text);
    }
}

#[test]
fn segment_up_to_host_edge_is_not_moved() {
    passes_at_the_edge("+.1 < R 65700:65700(0) win 0\n+0 > . 10:10(0) ack 1");
    passes_at_the_edge("+.1 < R 65701:65701(0) win 0");
    passes_at_the_edge("+.1 < P. 65701:65711(10) ack 10 win 65535\n+0 > . 10:10(0) ack 1");
    passes_at_the_edge("+.1 < . 65701:65701(0) ack 10 win 65535\n+0 > . 10:10(0) ack 1");
}

/// A client that gets a cookie on its first connection; without timestamps, window scale and SACK.
const ACQUAINTED: &str = "`sysctl -w net.inet.tcp.fastopen.client_enable=1 net.inet.tcp.rfc1323=0 net.inet.tcp.sack.enable=0`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 setsockopt(3, IPPROTO_TCP, TCP_FASTOPEN, [1], 4) = 0
+0 sendto(3, ..., 500, 0, ..., ...) = 500
+0 > S 0:0(0) win 65535 <mss 1460,FO,eol,eol>
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1040,FO 0102030405060708>
+0 > P. 1:501(500) ack 1 win 65535
+.1 < . 1:1(0) ack 501 win 65535
+0 close(3) = 0
+0 > F. 501:501(0) ack 1
+.1 < F. 1:1(0) ack 502 win 65535
+0 > . 502:502(0) ack 2
";

fn acquainted(rest: &str) -> String {
    format!("{ACQUAINTED}{rest}")
}

#[test]
fn sendto_requests_cookie_and_buffers_data() {
    passes_in(Mode::Strict, ACQUAINTED);
}

#[test]
fn sendto_brings_its_bytes_by_syn_once_cookie_is_known() {
    let text = acquainted(
        "+.1 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4
+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 setsockopt(4, IPPROTO_TCP, TCP_FASTOPEN, {enable=1}, 4) = 0
+0 sendto(4, ..., 1000, 0, ..., ...) = 1000
+0 > S 0:1000(1000) win 65535 <mss 1460,FO 0102030405060708,eol,eol>
+.1 < S. 0:0(0) ack 1001 win 65535 <mss 1040>
+0 > . 1001:1001(0) ack 1
+.1 send(4, ..., 10, 0) = 10
+0 > P. 1001:1011(10) ack 1
+.1 < R 1:1(0) win 0
",
    );
    passes_in(Mode::Strict, &text);
}

#[test]
fn text_beyond_syn_waits_until_connection_is_open() {
    let text = acquainted(
        "+.1 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5
+0 setsockopt(5, IPPROTO_TCP, TCP_FASTOPEN, [1], 4) = 0
+0 sendto(5, ..., 3000, 0, ..., ...) = 3000
+0 > S 0:1000(1000) win 65535 <mss 1460,FO 0102030405060708,eol,eol>
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1040>
+0 > . 1:1041(1040) ack 1
+0 > . 1041:2081(1040) ack 1
+0 > P. 2081:3001(920) ack 1
",
    );
    passes_in(Mode::Strict, &text);
}

#[test]
fn sendto_connects_without_fast_open_too() {
    let text = acquainted(
        "+.1 socket(..., SOCK_STREAM, IPPROTO_TCP) = 6
+0 fcntl(6, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 sendto(6, ..., 100, 0, ..., ...) = 100
+0 sendto(6, ..., 50, 0, ..., ...) = 50
+0 > S 0:0(0) win 65535 <mss 1460>
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1040>
+0 > P. 1:151(150) ack 1
+.1 < R 1:1(0) win 0
",
    );
    passes_in(Mode::Strict, &text);
}

#[test]
fn sendto_connects_in_no_other_dialect() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 sendto(3, ..., 9, 0, ..., ...) = -1 EPIPE (Broken pipe)
";
    passes(text);
    assert!(!verdict_in(Mode::Strict, text).is_passed());
}
