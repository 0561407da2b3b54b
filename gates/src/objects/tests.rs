use super::{MOST_METHODS, judge};
use crate::tree::Tree;

fn found(file: &str, text: &str) -> Vec<String> {
    judge(&Tree::of(&[(file, text)])).iter().map(ToString::to_string).collect()
}

/// An `impl` block of `name` with `count` methods of `body`.
fn methods(name: &str, count: usize, body: &str) -> String {
    let methods: String = (0..count).map(|it| format!("fn m{it}(&self) {{ {body} }}\n")).collect();
    format!("impl<T> {name}<T> {{\n{methods}}}\n")
}

#[test]
fn type_with_as_many_methods_as_the_limit_passes() {
    let both = methods("A", MOST_METHODS / 2, "") + &methods("B", MOST_METHODS, "");
    assert_eq!(found("crates/a/src/lib.rs", &both), [""; 0]);
}

#[test]
fn methods_of_all_blocks_count_with_the_remedy() {
    let blocks = methods("A", 1, "") + &methods("A", MOST_METHODS, "");
    assert_eq!(
        found("crates/a/src/lib.rs", &blocks),
        ["crates/a/src/lib.rs:2: `A` has at most 100 methods, now 101; give some of its fields, \
          with the methods that use them, a type of their own"]
    );
}

#[test]
fn delegations_functions_traits_and_tests_do_not_count() {
    let others =
        "impl A { fn new() -> Self { A } }\nimpl Clone for A { fn clone(&self) -> Self { A } }\n";
    let blocks = methods("A", MOST_METHODS, "")
        + &methods("A", 9, "self.part.act(&mut self.other)")
        + &methods("A", 9, "self.part.inner.act();")
        + others;
    assert_eq!(found("crates/a/src/lib.rs", &blocks), [""; 0]);
    assert_eq!(found("crates/a/src/lib/tests.rs", &methods("A", 200, "")), [""; 0]);
}

#[test]
fn calls_on_self_and_several_calls_count() {
    for body in ["self.act()", "self.part.act(); self.part.act()", "act(self.part)"] {
        let blocks = methods("A", MOST_METHODS + 1, body);
        assert_eq!(found("crates/a/src/lib.rs", &blocks).len(), 1, "{body}");
    }
}
