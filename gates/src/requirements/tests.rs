use super::{judge, rewritten};
use crate::tree::Tree;

const CODE: &str = "fn check_sequence() {}\n// fn told_of_only() {}\n";
const DONE: &str = r#"
[[requirement]]
id = "MUST-1"
section = "3.1"
level = "MUST"
text = "Windows are unsigned."
status = "done"
code = ["src/a.rs#check_sequence"]
tests = ["src/a.rs#check_sequence"]
"#;

/// Line and message of each finding in a table.
fn found(table: &str) -> Vec<(usize, String)> {
    let tree = Tree::of(&[("docs/rfc/1.toml", table), ("src/a.rs", CODE)]);
    let (_, findings) = judge(&tree);
    findings.into_iter().map(|finding| (finding.line, finding.message)).collect()
}

fn assert_found(table: &str, line: usize, part: &str) {
    let found = found(table);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == line && found[0].1.contains(part), "{found:?}");
}

#[test]
fn a_requirement_that_is_done_and_tested_passes_and_is_counted() {
    let other = DONE.replace("MUST-1", "MUST-2").replace("done", "open") + "reason = \"later\"\n";
    let table = format!("{DONE}{other}");
    assert_eq!(found(&table), []);
    let (counts, _) = judge(&Tree::of(&[("docs/rfc/1.toml", table.as_str())]));
    let [counts] = counts.as_slice() else { panic!("one table, not {counts:?}") };
    let expected = "RFC 1: 2 requirements, 1 done, 0 deviations, 1 open (1 MUST), 0 n/a";
    assert_eq!(counts.to_string(), expected);
}

#[test]
fn an_id_that_stands_there_twice_is_found_where_it_does_again() {
    assert_found(&format!("{DONE}{DONE}"), 12, "MUST-1: its id stands there twice");
}

#[test]
fn what_is_done_names_code_and_a_test() {
    assert_found(&DONE.replace("code = [\"src/a.rs#check_sequence\"]\n", ""), 3, "no code");
    assert_found(&DONE.replace("tests = [\"src/a.rs#check_sequence\"]\n", ""), 3, "no test");
}

#[test]
fn whatever_is_not_done_has_a_reason() {
    for status in ["open", "deviation", "n/a"] {
        let table = DONE.replace("done", status);
        assert_found(&table, 3, "has a reason");
        assert_found(&format!("{table}reason = \" \"\n"), 3, "has a reason");
        assert_eq!(found(&format!("{table}reason = \"because\"\n")), []);
    }
}

#[test]
fn references_lead_to_a_word_of_a_file() {
    let code = |to: &str| DONE.replace("code = [\"src/a.rs#check_sequence", to);
    assert_found(&code("code = [\"src/b.rs#check_sequence"), 3, "`src/b.rs` is no text file");
    assert_found(&code("code = [\"src/a.rs#check_seq"), 3, "does not contain `check_seq`");
    assert_found(&code("code = [\"src/a.rs"), 3, "a reference is `path#identifier`");
    assert_found(&code("code = [\"src/a.rs#"), 3, "a reference is `path#identifier`");
}

#[test]
fn a_test_is_a_function_and_not_talk_of_one() {
    let test = |to: &str| DONE.replace("tests = [\"src/a.rs#check_sequence", to);
    assert_found(&test("tests = [\"src/a.rs#fn"), 3, "has no `fn fn`");
    assert_found(&test("tests = [\"src/a.rs#told_of_only"), 3, "has no `fn told_of_only`");
}

/// A table whose one requirement has `scripts`, and a script that begins with `first`.
fn with_script(scripts: &str, first: &str) -> Tree {
    let table = DONE.replace("tests = [\"src/a.rs#check_sequence\"]\n", scripts);
    Tree::of(&[("docs/rfc/1.toml", &table), ("src/a.rs", CODE), (SCRIPT, first)])
}

const SCRIPT: &str = "tests/scripts/close/fin.pkt";
const LISTED: &str = "scripts = [\"tests/scripts/close/fin.pkt\"]\n";

#[test]
fn a_script_is_a_test_if_its_first_line_cites_the_requirement() {
    let found = |scripts: &str, first: &str| {
        let findings = judge(&with_script(scripts, first)).1;
        findings.into_iter().map(|it| it.message).collect::<Vec<_>>()
    };
    for first in ["// It. RFC 1 MUST-1.\n", "// RFC 2 3.1; RFC 1 3.1, MUST-1; 3.2.\n"] {
        assert_eq!(found(LISTED, first), [""; 0], "{first}");
    }
    let otherwise = format!(
        "MUST-1: its scripts are those whose first line cites `RFC 1 MUST-1`, and with `{SCRIPT}` it \
         is otherwise"
    );
    // Another RFC's, another requirement, words of prose, another line.
    for first in
        ["// RFC 2 MUST-1.", "// RFC 1 MUST-10.", "// RFC 1 says MUST-1.", "//\n// RFC 1 MUST-1"]
    {
        assert_eq!(found(LISTED, first), [otherwise.as_str()], "{first}");
    }
    // Cited and not listed, and so without a test in the table.
    assert_eq!(found("", "// RFC 1 MUST-1.")[1], otherwise);
}

#[test]
fn lists_of_scripts_are_written_anew_by_what_scripts_cite() {
    let unlisted = with_script("", "// RFC 1 MUST-1.");
    let [(name, text)] = &rewritten(&unlisted)[..] else { panic!("one table differs") };
    assert_eq!((*name, text.ends_with(LISTED)), ("docs/rfc/1.toml", true), "{text}");
    assert_eq!(judge(&with_script(LISTED, "// RFC 1 MUST-1.")).1, []);
    assert_eq!(rewritten(&with_script(LISTED, "// RFC 1 MUST-1.")), []);
    let uncited = with_script(LISTED, "//");
    let [(_, text)] = &rewritten(&uncited)[..] else { panic!("one table differs") };
    assert!(!text.contains("scripts"), "{text}");
}

#[test]
fn what_is_no_table_is_found_with_its_line() {
    assert_found(&DONE.replace("MUST\"\ntext", "OUGHT\"\ntext"), 5, "not a requirement table");
    assert_found(&DONE.replace("section", "chapter"), 4, "not a requirement table");
    assert_found("[[requirement]\n", 1, "not a requirement table");
}

#[test]
fn only_requirement_tables_are_read() {
    let tree = Tree::of(&[("docs/rfc/README.md", "[["), ("Cargo.toml", "[package]\n")]);
    let (counts, findings) = judge(&tree);
    assert!(counts.is_empty() && findings.is_empty());
}
