//! Whole scripts; tests of the parts are below.

use core::time::Duration;

use super::*;
use crate::ast::{EventTime, PacketBody};

mod arbitrary;
mod calls;
mod packets;
mod snippets;

pub(super) fn read(text: &str) -> Script {
    match parse(text, &Defines::of(Dialect::Linux)) {
        Ok(script) => script,
        Err(error) => panic!("{error}\n{text}"),
    }
}

pub(super) fn refuse(text: &str) -> String {
    match parse(text, &Defines::default()) {
        Ok(script) => panic!("accepted: {script:?}"),
        Err(error) => error.to_string(),
    }
}

/// The action of a script with one step.
pub(super) fn only(text: &str) -> Action {
    let mut steps = read(text).steps;
    assert_eq!(steps.len(), 1, "{text}");
    steps.remove(0).action
}

pub(super) const SCRIPT: &str = r#"// A server answers one request.
--ip_version=ipv4 --tolerance_usecs=75000  // two in one line
--mtu=1500
`../lib/quiet.sh
sysctl -q net.ipv4.tcp_sack=1`

 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, {sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr("192.168.0.1")}, ...) = 0
+0 listen(3, 5) = 0
/* The peer
   comes. */
+.05 < S 100:100(0) win 4000 <mss 900,nop,wscale 3,sackOK,TS val 7 ecr 0>
+0 > S. 0:0(0) ack 101 <...>
+.05 < . 101:101(0) ack 1 win 500 <nop,nop,TS val 8 ecr 0>
+0...0.2 accept(3, ..., ...) = 4
# An own line of remarks.
+.1~.2 > F. 1:1(0) ack 101
*  > R 2:2(0)
1.5 %{ assert tcpi_state == TCP_CLOSE, tcpi_state }%
+0 `sleep 1`
`../lib/loud.sh`
"#;

#[test]
fn whole_script_is_read() {
    let script = read(SCRIPT);
    let options: Vec<_> = script
        .options
        .iter()
        .map(|option| (option.line, option.name.as_str(), option.value.as_deref()))
        .collect();
    assert_eq!(
        options,
        [
            (2, "ip_version", Some("ipv4")),
            (2, "tolerance_usecs", Some("75000")),
            (3, "mtu", Some("1500"))
        ]
    );
    let setup = script.setup.unwrap();
    assert_eq!((setup.line, setup.text.lines().count()), (4, 2));
    assert_eq!(script.cleanup.unwrap().text, "../lib/loud.sh");
    let lines: Vec<_> = script.steps.iter().map(|step| step.line).collect();
    assert_eq!(lines, [7, 8, 9, 10, 13, 14, 15, 16, 18, 19, 20, 21]);
}

#[test]
fn times_are_absolute_relative_ranges_or_any() {
    let when = |text: &str| read(&format!("{text} > . 1:1(0)")).steps[0].when;
    let ms = Duration::from_millis;
    assert_eq!(when("0"), EventTime::Absolute(ms(0)));
    assert_eq!(when(".1"), EventTime::Absolute(ms(100)));
    assert_eq!(when("2.000000001"), EventTime::Absolute(Duration::new(2, 1)));
    assert_eq!(when("+0.25"), EventTime::Relative(ms(250)));
    assert_eq!(when("+ 0.1"), EventTime::Relative(ms(100)));
    assert_eq!(when("1~2.5"), EventTime::AbsoluteRange(ms(1000), ms(2500)));
    assert_eq!(when("+.1~+.2"), EventTime::RelativeRange(ms(100), ms(200)));
    assert_eq!(when("+.1 ~ .2"), EventTime::RelativeRange(ms(100), ms(200)));
    assert_eq!(when("*"), EventTime::Any);
}

#[test]
fn times_that_cannot_be_are_refused() {
    assert_eq!(
        refuse("2~1 > . 1:1(0)"),
        "line 1, column 3: expected a range that does not end before it begins, found \"1\""
    );
    assert!(refuse("1~+2 > . 1:1(0)").contains("an absolute time"));
    assert!(refuse("99999999999999999999 close(3) = 0").contains("a time in seconds"));
    assert!(refuse("2...1 close(3) = 0").contains("not before the beginning"));
    assert!(refuse("+2...1 close(3) = 0").contains("not before the beginning"));
    assert!(refuse("0...1 > . 1:1(0)").contains("a call, since"));
    assert!(refuse("close(3) = 0").contains("expected a time, found \"close(3)\""));
}

const BRANCHES: &str = "#ifdef FreeBSD\n0 close(3) = 0\n#ifdef STANDARD\n0 close(4) = 0\n#endif\n#else\n\
                        #ifndef FreeBSD\n0 close(5) = 0\n#else\n0 close(6) = 0\n#endif\n#endif\n0 close(7) = 0\n";

fn lines_of(text: &str, defines: &Defines) -> Vec<u32> {
    parse(text, defines).unwrap().steps.iter().map(|step| step.line).collect()
}

#[test]
fn dialect_chooses_the_branch_and_lines_keep_their_numbers() {
    assert_eq!(lines_of(BRANCHES, &Defines::of(Dialect::FreeBsd)), [2, 13]);
    assert_eq!(lines_of(BRANCHES, &Defines::of(Dialect::Whimbrel)), [8, 13]);
    let linux = "#ifdef Linux\n0 close(3) = 0\n#endif\n";
    assert_eq!(lines_of(linux, &Defines::of(Dialect::Linux)), [2]);
    assert_eq!(lines_of(linux, &Defines::of(Dialect::Whimbrel)), [0_u32; 0]);
}

#[test]
fn conditionals_must_be_whole() {
    assert_eq!(
        refuse("\n#ifdef A\n"),
        "line 2, column 1: expected an #endif for this, found the end"
    );
    assert!(refuse("#else\n").contains("an #ifdef before it"));
    assert!(refuse("#endif\n").contains("an #ifdef before it"));
    assert!(refuse("#ifdef A\n#else\n#else\n#endif\n").contains("an #ifdef before it"));
    assert!(refuse("#ifdef\n#endif\n").contains("a name"));
}

#[test]
fn names_that_are_defined_are_replaced_outside_of_quotations() {
    let text = "-D WIN=500 -D FLAGS=S.\n-D TEXT=\"a b\"\n#ifdef WIN\n\
                0 < FLAGS 0:0(0) ack 1 win WIN // WIN\n#endif\n0 `WIN` 0 write(3, \"WIN\", 3) = 3";
    let steps = read(text).steps;
    let Action::Packet(packet) = &steps[0].action else { panic!("{steps:?}") };
    let PacketBody::Tcp(segment) = &packet.body else { panic!("{packet:?}") };
    assert_eq!(segment.win, Some(500));
    assert!(matches!(&steps[1].action, Action::Shell(shell) if shell.text == "WIN"));
    assert_eq!(steps.len(), 3);
    let from_outside = Defines::default().with_macro("FD", "9");
    let script = parse("0 close(FD) = 0", &from_outside).unwrap();
    assert!(
        matches!(&script.steps[0].action, Action::Call(call) if call.args == [crate::ast::Arg::Int(9)])
    );
}

#[test]
fn definitions_are_checked() {
    assert!(refuse("-D =3").contains("-D NAME=VALUE"));
    assert!(refuse("-D A=3 4").contains("the end of the line"));
    assert!(refuse(&format!("-D A={}", "x".repeat(257))).contains("256 bytes"));
}

#[test]
fn unterminated_element_is_refused_at_its_start() {
    assert!(refuse("0 `echo").contains("a backquote that ends this"));
    assert!(refuse("0 %{ assert True").contains("}% that ends this"));
    assert!(refuse("/* 0 close(3) = 0").contains("expected a time, found \"/*\""));
    assert!(refuse("0 close(3) = 0 /* or").contains("found \"/*\""));
}

#[test]
fn command_without_a_time_is_first_or_last() {
    assert!(refuse("0 close(3) = 0\n`a`\n0 close(4) = 0").contains("the end, behind a command"));
    let script = read("`a`\n`b`");
    assert_eq!(script.setup.unwrap().text, "a");
    assert_eq!(script.cleanup.unwrap().text, "b");
}

#[test]
fn error_names_the_place_in_characters() {
    let error = parse("0 close(3) = 0\n/* é */ 0 nothing", &Defines::default()).unwrap_err();
    assert_eq!((error.line, error.column), (2, 18));
    assert_eq!(
        error.to_string(),
        "line 2, column 18: expected ( and the arguments of a call, found the end"
    );
}
