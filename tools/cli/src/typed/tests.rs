//! Tests of the typed command on a page.

use super::*;

fn told(words: &[&str]) -> String {
    of(words.iter().map(|word| (*word).to_owned()))
}

#[test]
fn output_options_are_left_out() {
    let words = ["load", "-z", "3s", "--json", "--html", "/home/me/page.html", "-K"];
    assert_eq!(told(&words), "whimbrel load -z 3s -K");
    assert_eq!(told(&["bulk", "send", "--html=a b.html"]), "whimbrel bulk send");
}

#[test]
fn header_values_are_not_shown() {
    let told = [
        told(&["load", "-H", "Authorization: Bearer s3cret"]),
        told(&["load", "-HAuthorization: s3cret"]),
        told(&["load", "--header=Authorization: s3cret"]),
    ];
    assert!(told.iter().all(|it| it == "whimbrel load -H 'Authorization: …'"), "{told:?}");
}

#[test]
fn typed_command_survives_shell_quoting() {
    let words =
        ["load", "--fail-if", "p99>100ms", "-w", "mem:rate=10M,delay=20ms,loss=1%", "it's", ""];
    let expected =
        r"whimbrel load --fail-if 'p99>100ms' -w mem:rate=10M,delay=20ms,loss=1% 'it'\''s' ''";
    assert_eq!(told(&words), expected);
}
