//! The chapters of `docs/cases` show what the lab prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::files;
use crate::running::succeed;

/// With `WHIMBREL_BLESS=1` the chapters are written anew.
#[test]
#[cfg_attr(debug_assertions, ignore = "the lab takes minutes in a debug build: give --release")]
fn chapters_show_what_the_lab_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cases");
    let mut shown = 0;
    for chapter in files::below(&folder, "md") {
        let text = fs::read_to_string(&chapter).unwrap();
        let (told, count) = retold(&text);
        shown += count;
        if std::env::var_os("WHIMBREL_BLESS").is_some() {
            fs::write(&chapter, told).unwrap();
        } else {
            let name = chapter.display();
            assert_eq!(text, told, "{name} is not what the lab prints: WHIMBREL_BLESS=1 writes it");
        }
    }
    assert!(shown >= 8, "{shown} blocks are shown");
}

/// The chapter with what its commands print now, and how many those are.
fn retold(text: &str) -> (String, usize) {
    let (mut told, mut count) = (String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        told += &format!("{line}\n");
        let command = lines.next_if(|next| line == BLOCK && next.starts_with(PROMPT));
        let Some(command) = command else { continue };
        let words = command[PROMPT.len()..].split_whitespace();
        let mut whimbrel = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let printed = succeed(whimbrel.args(words).env("COLUMNS", "80"));
        told += &format!("{command}\n{}\n```\n", printed.trim_end());
        // What was there.
        while lines.next().is_some_and(|old| old != "```") {}
        count += 1;
    }
    (told, count)
}

const BLOCK: &str = "```console,ignore";
const PROMPT: &str = "$ whimbrel ";
