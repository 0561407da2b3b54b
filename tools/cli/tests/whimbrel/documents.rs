//! README.md and the pages of `docs` show the true output of commands.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// Figures that may change are quoted as they were: `TRYCMD=overwrite` writes the present output.
#[test]
fn document_blocks_show_true_output() {
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
fn unrun_block_gives_a_reason() {
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

/// Files for users.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    [vec![root.join("README.md")], files::below(&root.join("docs"), "md")].concat()
}
