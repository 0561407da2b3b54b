//! The chapters of `docs/cases` show the lab's output, and the pages of the same runs can be passed on.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::files;
use crate::running::succeed;
use crate::scratch::scratch;

/// With `WHIMBREL_BLESS=1` the chapters are written anew.
#[test]
#[cfg_attr(debug_assertions, ignore = "the lab takes minutes in a debug build: give --release")]
fn chapters_show_what_the_lab_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cases");
    let (mut shown, mut pages) = (0, 0);
    for chapter in files::below(&folder, "md") {
        let text = fs::read_to_string(&chapter).unwrap();
        let (told, count, bytes) = retold(&text);
        (shown, pages) = (shown + count, pages + bytes);
        if std::env::var_os("WHIMBREL_BLESS").is_some() {
            fs::write(&chapter, told).unwrap();
        } else {
            let name = chapter.display();
            assert_eq!(text, told, "{name} is not what the lab prints: WHIMBREL_BLESS=1 writes it");
        }
    }
    assert!(shown >= 8, "{shown} blocks are shown");
    // One page of all shares its style; the missing case has five short rows.
    assert!(pages > 0 && pages <= MOST_PAGE, "the pages of all cases have {pages} bytes");
}

/// The chapter with what its commands print now, how many those are, and how many bytes their pages have.
fn retold(text: &str) -> (String, usize, u64) {
    let (mut told, mut count, mut bytes) = (String::new(), 0, 0);
    let page = scratch("chapter.html");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        told += &format!("{line}\n");
        let command = lines.next_if(|next| line == BLOCK && next.starts_with(PROMPT));
        let Some(command) = command else { continue };
        let words = command[PROMPT.len()..].split_whitespace();
        let mut whimbrel = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        whimbrel.args(words).env("COLUMNS", "80");
        let has_page = !command.contains("--ablate");
        if has_page {
            whimbrel.arg("--html").arg(&page);
        }
        let printed = succeed(&mut whimbrel);
        bytes += if has_page { fs::metadata(&page).unwrap().len() } else { 0 };
        told += &format!("{command}\n{}\n```\n", printed.trim_end());
        // The old block.
        while lines.next().is_some_and(|old| old != "```") {}
        count += 1;
    }
    (told, count, bytes)
}

const BLOCK: &str = "```console,ignore";
const PROMPT: &str = "$ whimbrel ";
/// The most bytes of the page of all cases.
const MOST_PAGE: u64 = 2 << 20;
