use super::judge;
use crate::tree::Tree;

fn found(files: &[(&str, &str)]) -> Vec<String> {
    judge(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

const CALLS_TWO: (&str, &str) = ("a/src/one.rs", "impl A { fn one(&self) { self.two() } }");
const TWO: (&str, &str) = ("a/src/two.rs", "impl A { fn two(&self) {} }");

#[test]
fn files_in_an_order_pass() {
    assert_eq!(found(&[CALLS_TWO, TWO]), [""; 0]);
    let own = "impl A { fn one(&self) { self.other() } fn other(&self) { self.one() } }";
    assert_eq!(found(&[("a/src/one.rs", own)]), [""; 0]);
}

#[test]
fn two_files_that_call_each_other_are_found() {
    let calls_one = ("a/src/two.rs", "impl A { fn two(&self) { if x { self.one(); } } }");
    assert_eq!(
        found(&[CALLS_TWO, calls_one]),
        ["a/src/one.rs:1: `A` has 2 files that call each other in a circle: \
          a/src/one.rs, a/src/two.rs; move what both files need into a file below them, or a part \
          into a type of its own"]
    );
}

#[test]
fn circle_of_three_is_found_and_who_leads_to_it_is_not() {
    let two = ("a/src/two.rs", "impl A { fn two(&self) { Self::three(self) } }");
    let three = ("a/src/three.rs", "impl A { fn three(&self) { self.one() } }");
    let outside = ("a/src/four.rs", "impl A { fn four(&self) { self.one() } }");
    let findings = found(&[CALLS_TWO, two, three, outside]);
    assert!(findings.len() == 1 && findings[0].contains("has 3 files"), "{findings:?}");
}

#[test]
fn other_types_other_crates_and_parts_make_no_circle() {
    for text in
        ["impl B { fn two(&self) { self.one() } }", "impl A { fn two(&self) { self.part.one() } }"]
    {
        assert_eq!(found(&[CALLS_TWO, ("a/src/two.rs", text)]), [""; 0], "{text}");
    }
    let elsewhere = ("b/src/two.rs", "impl A { fn two(&self) { self.one() } }");
    assert_eq!(found(&[CALLS_TWO, elsewhere]), [""; 0]);
}
