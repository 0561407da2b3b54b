use super::*;
use crate::ast::{Arg, CallStep, Ending, Field};

fn call(text: &str) -> CallStep {
    match only(text) {
        Action::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

/// The only argument of a call.
fn arg(text: &str) -> Arg {
    let mut args = call(&format!("0 f({text}) = 0")).args;
    assert_eq!(args.len(), 1, "{text}");
    args.remove(0)
}

fn name(text: &str) -> Arg {
    Arg::Name(text.into())
}

fn field(name: &str, value: Arg) -> Field {
    Field { name: Some(name.into()), value }
}

#[test]
fn arguments_are_read_as_written() {
    assert_eq!(call("0 close() = 0").args, []);
    assert_eq!(arg("..."), Arg::Ellipsis);
    assert_eq!(arg("-1"), Arg::Int(-1));
    assert_eq!(arg("0xffffffff"), Arg::Int(0xffff_ffff));
    assert_eq!(arg("0xffffffffffffffff"), Arg::Int(-1));
    assert_eq!(arg("-2.5"), Arg::Float(-2.5));
    assert_eq!(arg(r#""a\n\"\x41\\""#), Arg::Text("a\n\"A\\".into()));
    assert_eq!(arg("A|B | 4"), Arg::Or(vec![name("A"), name("B"), Arg::Int(4)]));
    assert_eq!(arg("[1, [...]]"), Arg::List(vec![Arg::Int(1), Arg::List(vec![Arg::Ellipsis])]));
    assert_eq!(arg("htons(80)"), Arg::Apply("htons".into(), vec![Arg::Int(80)]));
    assert_eq!(arg("sizeof(int)"), Arg::Apply("sizeof".into(), vec![name("int")]));
    assert_eq!(arg("(size_t)7"), Arg::Int(7));
    assert_eq!(arg("(struct sockaddr *)NULL"), name("NULL"));
    assert_eq!(arg("(A|B)"), Arg::Or(vec![name("A"), name("B")]));
}

#[test]
fn structs_have_fields_with_and_without_names() {
    assert_eq!(
        arg("{onoff=1, linger = 0}"),
        Arg::Struct(vec![field("onoff", Arg::Int(1)), field("linger", Arg::Int(0))])
    );
    let piece = |len| {
        Arg::Struct(vec![
            Field { name: None, value: Arg::Ellipsis },
            Field { name: None, value: Arg::Int(len) },
        ])
    };
    assert_eq!(
        arg("{msg_name(...)=..., msg_iov(2)=[{..., 1000}, {...,500}], msg_flags=MSG_A|MSG_B}"),
        Arg::Struct(vec![
            field("msg_name", Arg::Ellipsis),
            field("msg_iov", Arg::List(vec![piece(1000), piece(500)])),
            field("msg_flags", Arg::Or(vec![name("MSG_A"), name("MSG_B")])),
        ])
    );
    assert_eq!(arg("{}"), Arg::Struct(vec![]));
}

#[test]
fn results_have_values_errors_and_remarks() {
    let expected = |text: &str| {
        let expected = call(&format!("0 f(3) = {text}")).expected;
        (expected.value, expected.errno, expected.note)
    };
    let note = |text: &str| Some(text.to_string());
    assert_eq!(expected("3"), (Arg::Int(3), None, None));
    assert_eq!(expected("..."), (Arg::Ellipsis, None, None));
    assert_eq!(expected("-1 // EAGAIN"), (Arg::Int(-1), None, None));
    assert_eq!(
        expected("-1 EAGAIN (Resource temporarily unavailable)"),
        (Arg::Int(-1), note("EAGAIN"), note("Resource temporarily unavailable"))
    );
    assert_eq!(
        expected("0x2 (flags O_RDWR|O_NONBLOCK)"),
        (Arg::Int(2), None, note("flags O_RDWR|O_NONBLOCK"))
    );
}

#[test]
fn blocking_call_has_an_end_time() {
    let ends = |time: &str| call(&format!("{time} accept(3, ..., ...) = 4")).ends;
    let ms = Duration::from_millis;
    assert_eq!(ends("0.2...0.3"), Some(Ending::Absolute(ms(300))));
    assert_eq!(ends("+.1...0.2"), Some(Ending::Relative(ms(200))));
    assert_eq!(ends("+0...+.2"), Some(Ending::Relative(ms(200))));
    assert_eq!(ends("0...+.2"), Some(Ending::Absolute(ms(200))));
    assert_eq!(ends("+0...30"), Some(Ending::Relative(ms(30_000))));
    assert_eq!(ends("+0"), None);
}

#[test]
fn call_may_take_several_lines() {
    let text = "0 poll([{fd=4,\n         events=POLLIN, // what is asked\n         revents=0}],\n       1, 0)\n   = 0";
    assert_eq!(call(text).args.len(), 3);
}

#[test]
fn calls_that_are_not_whole_are_refused() {
    assert!(refuse("0 close(3)").contains("= and what the call returns"));
    assert!(refuse("0 close(3 = 0").contains("a comma or )"));
    assert!(refuse("0 f({a=1) = 0").contains("a comma or }"));
    assert!(refuse("0 f(\"a) = 0").contains("a quotation mark"));
    assert!(refuse("0 f(\"\\q\") = 0").contains("an escape"));
    assert!(refuse("0 f(3) = -1 EX (text").contains(") that ends the remark"));
    assert!(refuse("0 f(18446744073709551615) = 0").contains("63 bits"));
    assert!(refuse("0 f() = 99999999999999999999").contains("a number"));
}

#[test]
fn brackets_do_not_nest_without_bound() {
    let nested = |depth| format!("0 f({}{}) = 0", "[".repeat(depth), "]".repeat(depth));
    assert!(matches!(only(&nested(32)), Action::Call(_)));
    for open in ["[", "{", "(", "f(", "(a)(", "{a="] {
        let text = format!("0 f({}", open.repeat(100_000));
        assert!(refuse(&text).contains("less nesting"), "{open}");
    }
}
