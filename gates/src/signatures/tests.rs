use super::judge;
use crate::tree::Tree;

fn found(text: &str) -> Vec<String> {
    judge(&Tree::of(&[("a.rs", text)])).iter().map(ToString::to_string).collect()
}

fn lines_found(text: &str) -> Vec<usize> {
    judge(&Tree::of(&[("a.rs", text)])).iter().map(|finding| finding.line).collect()
}

#[test]
fn a_tuple_that_a_signature_takes_apart_is_found_at_its_line() {
    assert_eq!(
        found("fn send(\n    at: u64,\n    (flags, seq): (u8, u32),\n) {}\n"),
        [
            "a.rs:3: an argument is one thing, and `send` takes apart a tuple of several; give each its \
          own argument, or all of them a struct with a name"
        ]
    );
}

#[test]
fn it_is_found_in_methods_in_traits_and_behind_a_reference() {
    assert_eq!(lines_found("struct A;\nimpl A {\n    fn f(&self, (a, b): (u8, u8)) {}\n}\n"), [3]);
    assert_eq!(lines_found("trait A {\n    fn f((a, b): (u8, u8)) {}\n}\n"), [2]);
    assert_eq!(lines_found("fn f(&(a, b): &(u8, u8)) {}\n"), [1]);
}

#[test]
fn one_thing_passes_though_it_has_parts() {
    assert!(
        lines_found("fn f(pair: (u8, u8), [a, b]: [u8; 2], P { x }: P, (): ()) {}\n").is_empty()
    );
    assert!(lines_found("fn f() { g(|(a, b): (u8, u8)| a + b) }\n").is_empty());
}

#[test]
fn what_a_trait_asks_for_passes() {
    assert!(
        lines_found("impl Extend for A {\n    fn f(&self, (a, b): (u8, u8)) {}\n}\n").is_empty()
    );
}
