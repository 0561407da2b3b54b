use super::judge;
use crate::tree::Tree;

fn lines_found(text: &str) -> Vec<usize> {
    let tree = Tree::of(&[("docs/guide.md", text), ("docs/cases/one.md", ""), ("README.md", "")]);
    judge(&tree).iter().map(|finding| finding.line).collect()
}

#[test]
fn links_that_lead_somewhere_pass() {
    let text =
        "[a](cases/one.md), [b](../README.md#top), [c](cases), [d](./cases/)\n[e]: guide.md\n";
    assert!(lines_found(text).is_empty());
}

#[test]
fn links_that_lead_nowhere_are_found() {
    assert_eq!(lines_found("[a](cases/two.md)\n\n[b]: none.md\n[c](../../README.md)\n"), [1, 3, 4]);
}

#[test]
fn a_second_link_on_a_line_and_a_title_are_read() {
    assert_eq!(lines_found("[a](guide.md \"title\") [b](nowhere.md \"title\")\n"), [1]);
}

#[test]
fn links_out_of_the_repository_are_not_looked_at() {
    assert!(
        lines_found("[a](https://example.org/x) [b](mailto:a@b.example) [c](#here)\n").is_empty()
    );
}

#[test]
fn code_has_no_links() {
    assert!(lines_found("`[a](nowhere)` and\n```\n[b](nowhere)\n```\n").is_empty());
}
