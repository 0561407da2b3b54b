use super::judge;
use crate::rooms::Package;
use crate::tree::Tree;

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let roots = vec!["a/src/lib.rs".to_owned()];
    let package = Package { name: "a".to_owned(), roots, ..Package::default() };
    judge(&[package], &Tree::of(files)).iter().map(ToString::to_string).collect()
}

const ROOT: (&str, &str) = ("a/src/lib.rs", "mod one;\nmod two;\nmod three;\n");
const NAMES_TWO: (&str, &str) = ("a/src/one.rs", "use crate::two::Two;\npub struct One(Two);\n");
const NAMES_ONE: (&str, &str) =
    ("a/src/two.rs", "pub struct Two;\n\nimpl From<super::one::One> for Two {}\n");

#[test]
fn files_in_an_order_pass() {
    let two = ("a/src/two.rs", "pub struct Two;\n");
    let three = ("a/src/three.rs", "use crate::{one::One, two::Two};\nstruct Three(One, Two);\n");
    assert_eq!(found(&[ROOT, NAMES_TWO, two, three]), [""; 0]);
}

#[test]
fn circle_of_two_files_is_found_with_both_lines() {
    assert_eq!(
        found(&[ROOT, NAMES_TWO, NAMES_ONE]),
        ["a/src/one.rs:1: files of one crate do not lead in a circle, and `one` names `two` \
          (a/src/one.rs:1), `two` names `one` (a/src/two.rs:3); move what both need into a file \
          below them, or what needs both above them"]
    );
}

#[test]
fn a_circle_of_three_is_found_once() {
    let two = ("a/src/two.rs", "use crate::three::Three;\npub struct Two(Three);\n");
    let three = ("a/src/three.rs", "pub struct Three;\n\nfn f(_: crate::one::One) {}\n");
    let findings = found(&[ROOT, NAMES_TWO, two, three]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    for place in ["a/src/one.rs:1", "a/src/two.rs:1", "a/src/three.rs:3"] {
        assert!(findings[0].contains(place), "{findings:?}");
    }
}

#[test]
fn parent_and_child_may_name_each_other() {
    let one = ("a/src/one.rs", "mod child;\nuse child::Child;\npub struct One(Child);\n");
    let child = ("a/src/one/child.rs", "use super::One;\npub struct Child;\nfn f(_: &One) {}\n");
    let root = ("a/src/lib.rs", "mod one;\npub use one::One;\n");
    assert_eq!(found(&[root, one, child]), [""; 0]);
}

#[test]
fn a_folder_is_one_with_its_file() {
    // `two` needs what lies in the folder of `one`, whose file needs `two`.
    let one = ("a/src/one.rs", "mod part;\npub use part::Part;\nuse crate::two::Two;\n");
    let part = ("a/src/one/part.rs", "pub struct Part;\n");
    let two = ("a/src/two.rs", "use crate::one::Part;\npub struct Two(Part);\n");
    let findings = found(&[ROOT, one, part, two]);
    assert_eq!(findings.len(), 1, "{findings:?}");
}

#[test]
fn a_name_re_exported_leads_to_where_it_is_defined() {
    // By the root's name for it, `two` leads to `one`; by the plain name, to nothing else.
    let root = ("a/src/lib.rs", "mod one;\nmod two;\npub use one::One as First;\n");
    let two = ("a/src/two.rs", "pub struct Two;\nfn f(_: crate::First) {}\n");
    assert_eq!(found(&[root, NAMES_TWO, two]).len(), 1);
    let root = ("a/src/lib.rs", "mod one;\nmod two;\npub use two::Two as First;\n");
    assert_eq!(found(&[root, NAMES_TWO, two]), [""; 0]);
}

#[test]
fn paths_within_macros_count() {
    let two =
        ("a/src/two.rs", "pub struct Two;\nfn f() { assert!(crate::one::check(), \"no\"); }\n");
    assert_eq!(found(&[ROOT, NAMES_TWO, two]).len(), 1);
    let two = ("a/src/two.rs", "pub struct Two;\nmacro_rules! m { () => { $crate::one::One }; }\n");
    assert_eq!(found(&[ROOT, NAMES_TWO, two]).len(), 1);
}

#[test]
fn paths_through_an_imported_module_count() {
    let two = ("a/src/two.rs", "use crate::one;\npub struct Two;\nfn f(_: one::One) {}\n");
    let findings = found(&[ROOT, NAMES_TWO, two]);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].contains("a/src/two.rs:1, a/src/two.rs:3"), "{findings:?}");
}

#[test]
fn tests_and_other_crates_lead_nowhere() {
    let two = (
        "a/src/two.rs",
        "use other::one::One;\npub struct Two(One);\n\n\
         #[cfg(test)]\nmod tests {\n    use crate::one::One;\n}\n\n\
         #[cfg(test)]\nfn help(_: crate::one::One) {}\n\n#[cfg(test)]\nuse crate::one;\n",
    );
    assert_eq!(found(&[ROOT, NAMES_TWO, two]), [""; 0]);
}
