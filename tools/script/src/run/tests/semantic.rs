//! Differences that semantic mode accepts, and those that it does not.

use super::*;

fn semantically(text: &str) -> Verdict {
    verdict(text, &Settings { mode: Mode::Semantic, ..Settings::default() })
}

/// Asserts that a script passes with these rules, and fails without them.
#[track_caller]
fn passes_by(text: &str, expected: &[Rule]) {
    assert!(!strictly(text).is_passed(), "it passes without any rule");
    match semantically(text) {
        Verdict::Passed { rules, .. } => {
            assert_eq!(rules.into_iter().collect::<Vec<_>>(), expected);
        }
        other => panic!("{}", super::super::super::report::ScriptReport::new("script", &other)),
    }
}

#[test]
fn order_of_options_and_scale() {
    let text = |options: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,wscale 2,nop>
+0 > S. 0:0(0) ack 1 {options}
"
        )
    };
    passes_by(&text("<mss 1460,nop,wscale 11,sackOK,eol,eol>"), &[Rule::OptionsAsSet]);
    passes_by(&text("<mss 1460,nop,nop,sackOK,nop,wscale 9>"), &[Rule::WindowScale]);
    assert!(!semantically(&text("<mss 1460,nop,nop,sackOK>")).is_passed());
    assert!(!semantically(&text("<mss 1400,nop,nop,sackOK,nop,wscale 6>")).is_passed());
}

#[test]
fn window_but_not_a_closed_one() {
    let text =
        |win| accepted(&format!("+.1 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1 win {win}\n"));
    passes_by(&text(17), &[Rule::WindowSize]);
    assert!(!semantically(&text(0)).is_passed());
}

#[test]
fn window_of_a_reset() {
    let text = |win, options| {
        accepted(&format!(
            "+0 setsockopt(4, SOL_SOCKET, SO_LINGER, {{onoff=1, linger=0}}, 8) = 0
+0 close(4) = 0
+0 > R. 1:1(0) ack 1 win {win} {options}
"
        ))
    };
    assert!(strictly(&text(0, "")).is_passed());
    passes_by(&text(17, ""), &[Rule::WindowSize]);
    passes_by(&text(0, "<nop,nop,TS val 1 ecr 2>"), &[Rule::ResetTimestamps]);
    assert!(!semantically(&text(0, "<sackOK>")).is_passed());
}

#[test]
fn size_of_buffers() {
    passes_by(
        &accepted("+0 getsockopt(4, SOL_SOCKET, SO_RCVBUF, [777], [4]) = 0\n"),
        &[Rule::BufferSize],
    );
    let text = accepted("+0 getsockopt(4, SOL_SOCKET, SO_KEEPALIVE, [1], [4]) = 0\n");
    assert!(!semantically(&text).is_passed());
}

#[test]
fn push() {
    passes_by(&accepted("+.1 write(4, ..., 9) = 9\n+0 > . 1:10(9) ack 1\n"), &[Rule::Push]);
}

#[test]
fn acknowledgment_later_than_written() {
    passes_by(
        &accepted(
            "+.1 < P. 1:101(100) ack 1 win 32792
+0 > . 1:1(0) ack 101
+0 read(4, ..., 100) = 100
",
        ),
        &[Rule::LateAck],
    );
}

#[test]
fn acknowledgment_made_needless_by_text() {
    passes_by(
        &accepted(
            "+.1 < P. 1:101(100) ack 1 win 32792
+0 > . 1:1(0) ack 101
+.01 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 101
",
        ),
        &[Rule::LateAck],
    );
}

#[test]
fn acknowledgment_that_is_owed_must_come() {
    let text = accepted("+.1 > . 1:1(0) ack 1\n+.1 < . 1:1(0) ack 1 win 9\n");
    let Verdict::Failed(failure) = semantically(&text) else { panic!("it should fail") };
    assert_eq!((failure.line, failure.came.as_str()), (8, "nothing"));
}

#[test]
fn answer_that_repeats_the_last_is_not_made_needless() {
    let text = accepted(
        "+.1 > . 1:1(0) ack 1
+.1 < P. 1:101(100) ack 1 win 32792
+.04 > . 1:1(0) ack 101
",
    );
    let Verdict::Failed(failure) = semantically(&text) else { panic!("it should fail") };
    assert_eq!((failure.line, failure.came.as_str()), (8, "nothing"));
}

#[test]
fn acknowledgment_that_is_not_written() {
    passes_by(
        &accepted(
            "+.1 < P. 1:101(100) ack 1 win 32792
+.1 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 101
",
        ),
        &[Rule::RedundantAck],
    );
}

#[test]
fn acknowledgment_earlier_than_written() {
    passes_by(
        &accepted(
            "+.1 < P. 1:101(100) ack 1 win 32792
+.1 > . 1:1(0) ack 101
",
        ),
        &[Rule::EarlyAck],
    );
}

#[test]
fn answer_that_repeats_the_last_is_not_redundant() {
    let text = accepted(
        "+.1 < S 9:9(0) win 32792
+.1 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 1
+.5 < . 1:1(0) ack 10 win 32792
",
    );
    let Verdict::Failed(failure) = semantically(&text) else { panic!("it should fail") };
    assert_eq!(failure.expected, "no acknowledgment that repeats the last");
}

#[test]
fn simultaneous_close_by_another_segment() {
    passes_by(
        &accepted(
            "+.1 close(4) = 0
+0 > F. 1:1(0) ack 1
+.01 < F. 1:1(0) ack 1 win 32792
+0 > F. 1:1(0) ack 2
",
        ),
        &[Rule::SimultaneousClose],
    );
}

#[test]
fn segments_behind_fin_excuse_no_number_before_it() {
    let text = |seq: u32| {
        accepted(&format!(
            "+.1 < F. 1:1(0) ack 1 win 32792
+0 > . {seq}:{seq}(0) ack 2
+0 close(4) = 0
+0 > F. 1:1(0) ack 2
+.1 < F. 1:1(0) ack 1 win 32792
"
        ))
    };
    assert!(strictly(&(text(1) + "+0 > . 2:2(0) ack 2\n")).is_passed());
    let Verdict::Failed(failure) = semantically(&text(2)) else { panic!("it should fail") };
    assert_eq!((failure.line, failure.came.as_str()), (9, "nothing"));
}

#[test]
fn reset_beyond_the_window_is_aimed_at_ours() {
    passes_by(
        &accepted(
            "+.1 < P. 1:11(10) ack 1 win 32792
+.04 > . 1:1(0) ack 11 win 20000
+.1 < R. 20011:20011(0) ack 1 win 0
+.1 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 11
",
        ),
        &[Rule::WindowSize, Rule::ReAimed],
    );
}

#[test]
fn syn_at_the_last_byte_of_the_window_is_aimed_at_ours() {
    let text = |syn| {
        accepted(&format!(
            "+0 `sysctl -w net.inet.tcp.insecure_syn=1`
+.1 < P. 1:11(10) ack 1 win 32792
+.04 > . 1:1(0) ack 11 win 20000
+.1 < S {syn}:{syn}(0) win 1000
+0 > R. 1:1(0) ack 11 win 0
"
        ))
    };
    assert!(semantically(&text(11)).is_passed());
    passes_by(&text(20_010), &[Rule::WindowSize, Rule::ReAimed]);
    assert!(!semantically(&text(20_011)).is_passed());
}

#[test]
fn reset_at_the_last_byte_of_the_window_is_aimed_at_ours() {
    let text = accepted(
        "+.1 < P. 1:11(10) ack 1 win 32792
+.04 > . 1:1(0) ack 11 win 200
+.1 < R. 210:210(0) ack 1 win 0
+0 > . 1:1(0) ack 11
",
    );
    passes_by(&text, &[Rule::WindowSize, Rule::ReAimed]);
}

#[test]
fn either_branch_may_be_met() {
    let text = accepted(
        "+.1 write(4, ..., 9) = 9
#ifdef FreeBSD
+0 > P. 1:10(9) ack 1
#else
+0 > P. 1:10(9) ack 2
#endif
",
    );
    let branches =
        [Dialect::Linux, Dialect::FreeBsd].map(|it| parse(&text, &Defines::of(it)).unwrap());
    let verdict = run_semantic(&branches, &Settings::default(), |setup| Ok(host(setup)));
    let Verdict::Passed { rules, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(rules, Rules::from([Rule::OtherBranch]));
}

/// A connection with SACK, descriptor 4, whose peer sent 100 bytes beyond a hole; nine lines.
fn selective(rest: &str) -> String {
    format!(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+.1 < . 101:201(100) ack 1 win 32792
+0 > . 1:1(0) ack 1 <nop,nop,sack 101:201>
{rest}"
    )
}

#[test]
fn replacement_ack_names_the_same_blocks() {
    // An acknowledgment of duplicate data is not replaced by one without it.
    let text = |blocks| {
        selective(&format!(
            "+.1 < . 1:51(50) ack 1 win 32792
+0 > . 1:1(0) ack 51 <nop,nop,{blocks}>
+.01 < . 51:101(50) ack 1 win 32792
+0 > . 1:1(0) ack 201
+.01 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 201
"
        ))
    };
    assert!(strictly(&text("sack 101:201")).is_passed());
    for wrong in ["sack 102:201", "sack 101:202", "sack 1:51 101:201", "sack 120:130 101:201"] {
        let Verdict::Failed(failure) = semantically(&text(wrong)) else { panic!("{wrong} passes") };
        assert_eq!((failure.line, failure.came.as_str()), (11, "nothing"), "{wrong}");
    }
}

#[test]
fn replacement_ack_follows_from_its_numbers() {
    let text = |seq: u32, ack: u32| {
        accepted(&format!(
            "+.1 < P. 1:101(100) ack 1 win 32792
+0 > . {seq}:{seq}(0) ack {ack}
+.01 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 101
"
        ))
    };
    passes_by(&text(1, 101), &[Rule::LateAck]);
    for (seq, ack) in [(2, 101), (0, 101), (1, 100), (1, 51)] {
        let Verdict::Failed(failure) = semantically(&text(seq, ack)) else {
            panic!("{seq} and {ack} pass")
        };
        assert_eq!((failure.line, failure.came.as_str()), (9, "nothing"));
    }
}

#[test]
fn reset_pays_for_no_acknowledgment() {
    let text = accepted(
        "+0 setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0
+.1 < P. 1:101(100) ack 1 win 32792
+0 > . 1:1(0) ack 101
+.01 close(4) = 0
+0 > R. 1:1(0) ack 101
",
    );
    let Verdict::Failed(failure) = semantically(&text) else { panic!("it should fail") };
    assert_eq!((failure.line, failure.came.as_str()), (10, "nothing"));
}

#[test]
fn buffer_size_moves_no_edge_before_established() {
    // The window is 65,535 in the script and 30,000 here. The reset is the first segment beyond it.
    let text = |before: &str, after: &str, reset: u32| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [15000], 4) = 0
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS
+0 > S 0:0(0) win 65535 <...>
{before}
+.1 < S. 0:0(0) ack 1 win 32792 <mss 1000>
+0 > . 1:1(0) ack 1 win 65535
{after}
+.1 < R. {reset}:{reset}(0) ack 1 win 0
+.1 write(3, ..., 9) = 9
+0 > P. 1:10(9) ack 1
"
        )
    };
    let asked = "+0 getsockopt(3, SOL_SOCKET, SO_RCVBUF, [65536], [4]) = 0";
    passes_by(&text("", "", 65_536), &[Rule::WindowSize, Rule::ReAimed]);
    let rules = [Rule::WindowSize, Rule::BufferSize, Rule::ReAimed];
    passes_by(&text(asked, "", 65_536), &rules);
    // Of an established connection it gives the host's limit, more than the window field can.
    passes_by(&text("", asked, 65_537), &rules);
    assert!(!semantically(&text("", asked, 65_536)).is_passed());
}

#[test]
fn edge_beyond_headers_is_moved_to_host_edge() {
    // The script's host accepts 70,000; this one accepts what it announces, by another rule.
    let text = accepted(
        "+0 getsockopt(4, SOL_SOCKET, SO_RCVBUF, [70000], [4]) = 0
+.1 < P. 1:11(10) ack 1 win 32792
+.04 > . 1:1(0) ack 11 win 65535
+.1 < R 70010:70010(0) win 0
+0 > . 1:1(0) ack 11
+.1 < R 70011:70011(0) win 0
+.1 write(4, ..., 9) = 9
+0 > P. 1:10(9) ack 11
",
    );
    passes_by(&text, &[Rule::WindowSize, Rule::BufferSize, Rule::ReAimed]);
}
