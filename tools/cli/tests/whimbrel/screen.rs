//! The screen of `load`, on a terminal, by its keys.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::pty::Terminal;
use crate::running::{Signal, await_that};
use crate::scratch::scratch;

/// A folder of a test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = scratch(&format!("screen-{name}"));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// As long as no test waits.
const LONG: &str = "load -z 300s -q 200 -c 10";
const SIZE: (u16, u16) = (60, 110);

#[test]
fn keys_pause_change_save_and_end_a_load() {
    let folder = Folder::new("screen");
    let mut terminal = Terminal::run(LONG, &folder.0, SIZE);
    terminal.await_text("10 connections, kept alive, 200 requests/s");
    terminal.await_text("running");
    assert!(terminal.is_full());
    terminal.await_text("[200]");
    terminal.press("p");
    terminal.await_text("PAUSED");
    terminal.press("+");
    terminal.await_text("11 connections (begun with 10)");
    terminal.press("--");
    terminal.await_text("9 connections (begun with 10)");
    terminal.press(" ");
    terminal.await_text("running");
    terminal.press("++++");
    terminal.await_text("13 connections");
    await_that("all of them are open", || {
        terminal.text().split_whitespace().skip_while(|word| *word != "ESTAB").nth(1) == Some("13")
    });

    terminal.press("s");
    terminal.await_text("saved whimbrel-load-");
    let file = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap();
    let page = fs::read_to_string(file.path()).unwrap();
    for part in
        ["Responses per second", "13 connections (begun with 10)", "p99.9", "ESTAB", "</html>"]
    {
        assert!(page.contains(part), "{part:?} is not in: {page}");
    }

    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
    terminal.await_text("Error distribution: (none)");
    let text = terminal.text();
    assert!(text.contains("Summary:") && !text.contains("q quit"), "{text}");
    assert!(text.contains("Paused:") && text.contains("13 at the end, of 9 to 13"), "{text}");
}

#[test]
fn every_end_restores_terminal_and_prints_summary() {
    let folder = Folder::new("leave");
    let summary = |mut terminal: Terminal| {
        assert_eq!(terminal.end().code(), Some(0));
        terminal.await_text("Success rate:  100.00%");
    };
    for key in ["\u{3}", "\u{1b}"] {
        let mut terminal = Terminal::run(LONG, &folder.0, SIZE);
        terminal.await_text("[200]");
        terminal.press(key);
        summary(terminal);
    }
    let terminal = Terminal::run(LONG, &folder.0, SIZE);
    terminal.await_text("[200]");
    terminal.signal(Signal::TERM);
    summary(terminal);
    let terminal = Terminal::run("load -z 300ms -c 2", &folder.0, SIZE);
    summary(terminal);
}

#[test]
fn failed_load_restores_screen_and_prints_error() {
    let folder = Folder::new("fails");
    let refused = "load http://127.0.0.1:1/ -w kernel: -z 400ms";
    let mut terminal = Terminal::run(refused, &folder.0, SIZE);
    terminal.await_text("connection refused");
    assert_eq!(terminal.end().code(), Some(1));
    terminal.await_text("error: http://127.0.0.1:1/: no response");
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let folder = Folder::new("resize");
    let mut terminal = Terminal::run(LONG, &folder.0, (24, 80));
    terminal.await_text("Responses per second");
    terminal.resize(8, 40);
    await_gone(&terminal, "Responses per second");
    terminal.await_text("ports left");
    terminal.resize(30, 100);
    terminal.await_text("Responses per second");
    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
}

fn await_gone(terminal: &Terminal, text: &str) {
    await_that("it is drawn anew", || !terminal.text().contains(text));
}

#[test]
fn screen_needs_a_terminal() {
    let folder = Folder::new("none");
    let load = "load -z 600ms -q 100 -c 2";
    for (words, line) in [
        (format!("{load} --no-tui"), Some(false)),
        (format!("{load} --quiet"), Some(false)),
        (format!("{load} --json"), Some(true)),
        ("crr -l 600ms".into(), Some(true)),
        // It may be over before there is a line.
        (format!("{load} -w mem:delay=1ms --clock virtual"), None),
    ] {
        let mut terminal = Terminal::run(&words, &folder.0, SIZE);
        assert_eq!(terminal.end().code(), Some(0));
        let bytes = terminal.bytes();
        assert!(!bytes.contains("\u{1b}[?1049h"), "{words}: {bytes}");
        let has_line = bytes.contains("/s  p50");
        assert!(line.is_none_or(|line| line == has_line), "{words}: {bytes}");
    }
    let mut terminal = Terminal::run_with(load, &folder.0, SIZE, |c| c.stdout(Stdio::piped()));
    let text = terminal.piped();
    assert_eq!(terminal.end().code(), Some(0));
    assert!(text.contains("Summary:") && !text.contains('\u{1b}'), "{text}");
    assert!(terminal.bytes().contains("req/s  p50"), "the line is on the standard error");
}

#[test]
fn no_color_screen_has_no_colours() {
    let folder = Folder::new("plain");
    for options in ["", " --color never"] {
        let words = format!("load -z 500ms -q 100{options}");
        let no_color = if options.is_empty() { "1" } else { "" };
        let mut terminal =
            Terminal::run_with(&words, &folder.0, SIZE, |c| c.env("NO_COLOR", no_color));
        assert_eq!(terminal.end().code(), Some(0));
        let bytes = terminal.bytes();
        assert!(bytes.contains("\u{1b}[?1049h") && !bytes.contains("38;5;"), "{bytes}");
    }
    let mut terminal = Terminal::run("load -z 500ms -q 100", &folder.0, SIZE);
    assert_eq!(terminal.end().code(), Some(0));
    assert!(terminal.bytes().contains("38;5;"));
}
