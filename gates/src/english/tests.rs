use super::{Kind, judge};
use crate::tree::Tree;

/// The lines of `text` with a fault of `kind`.
fn lines_found(file: &str, kind: Kind, text: &str) -> Vec<usize> {
    let findings = judge(&Tree::of(&[(&format!("new/{file}"), text)]));
    let of_kind = findings.iter().filter(|finding| finding.remedy == kind.remedy());
    of_kind.map(|finding| finding.line).collect()
}

#[test]
fn banned_words_are_found_whole_and_in_any_case() {
    let text = "Nobody is told.\nNobodys, is toldx.\nLet go, lets go.\n";
    assert_eq!(lines_found("a.md", Kind::Word, text), [1, 1, 3, 3]);
}

#[test]
fn quotations_and_code_are_exempt_over_several_lines() {
    let text =
        "// RFC 1: \"nobody\n// nobody\" nobody\n//\n// `nobody`\nlet nobody = \"nobody\";\n";
    assert_eq!(lines_found("a.rs", Kind::Word, text), [2, 5, 5]);
    let document = "`nobody` \"nobody\n\nnobody\n> nobody\n```\nnobody\n```\nnobody\n";
    assert_eq!(lines_found("a.md", Kind::Word, document), [3, 8]);
}

#[test]
fn octets_are_found_in_names_but_not_in_keys_or_std_names() {
    let text = "let octets = ip.octets();\nmap(Ipv4Addr::octets);\n\"octets_sent\": 1\n\
                fn octets_sent() {}\n\"octets sent\"\n\"application/octet-stream\"\n";
    assert_eq!(lines_found("a.rs", Kind::Octet, text), [1, 4, 5]);
}

#[test]
fn only_first_line_of_docs_may_not_begin_with_question() {
    let text =
        "/// Whether a.\nstruct A;\n/// A.\n/// What b.\nstruct B;\n/// Whatever c.\nstruct C;\n";
    assert_eq!(lines_found("a.rs", Kind::Opening, text), [1]);
}

#[test]
fn test_names_have_at_most_60_letters() {
    let test = |letters| format!("#[test]\nfn {}() {{}}\n", "a".repeat(letters));
    assert_eq!(lines_found("tests.rs", Kind::TestName, &test(60)), [0; 0]);
    assert_eq!(lines_found("tests.rs", Kind::TestName, &test(61)), [2]);
}

#[test]
fn finding_names_place_and_remedy() {
    let found = judge(&Tree::of(&[("crates/a/src/b.rs", "// nobody\n")]));
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "crates/a/src/b.rs:1: banned words `nobody`; name the subject, or put a quotation in quotation marks"
        ]
    );
}
