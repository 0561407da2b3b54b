//! Scripts in the dialect of FreeBSD, under its profile.

use super::*;

/// Asserts that a script is met without any rule.
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

/// A connection whose host takes 45 segments of 1,460, and cannot announce them without a scale.
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
fn what_lies_to_the_hosts_own_edge_as_written_is_not_moved() {
    passes_at_the_edge("+.1 < R 65700:65700(0) win 0\n+0 > . 10:10(0) ack 1");
    passes_at_the_edge("+.1 < R 65701:65701(0) win 0");
    passes_at_the_edge("+.1 < P. 65701:65711(10) ack 10 win 65535\n+0 > . 10:10(0) ack 1");
    passes_at_the_edge("+.1 < . 65701:65701(0) ack 10 win 65535\n+0 > . 10:10(0) ack 1");
}
