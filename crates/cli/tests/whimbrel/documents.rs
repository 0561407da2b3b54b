//! What README.md and the pages of `docs` show of commands is what these print.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// Figures that the stack may change stand there as they were: `TRYCMD=overwrite` writes what is printed
/// now.
#[test]
fn blocks_of_the_documents_show_what_commands_print() {
    let cases = trycmd::TestCases::new();
    let files = documents();
    cases
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .register_bin("whimbrel", Path::new(env!("CARGO_BIN_EXE_whimbrel")));
    for file in &files {
        cases.case(file);
    }
    assert!(files.len() > 10, "{files:?}");
}

#[test]
fn a_block_that_is_not_run_says_why() {
    let mut shown = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        let mut before = "";
        for line in text.lines() {
            shown += usize::from(line.starts_with("```console"));
            let says_why = ["<!-- not run by the tests: ", "<!-- run by manual.rs"];
            let says_why = says_why.iter().any(|why| before.starts_with(why));
            let is_run = line == "```console" || !line.starts_with("```console");
            assert!(is_run || says_why, "{}: {line}", file.display());
            before = line;
        }
    }
    assert!(shown > 0, "nothing is shown");
}

/// What a user reads.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    [vec![root.join("README.md")], files::below(&root.join("docs"), "md")].concat()
}
