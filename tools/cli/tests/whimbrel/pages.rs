//! `whimbrel completions`, `whimbrel man`, and the help of every command.

use std::fs;
use std::process::Command;

use crate::needs;
use crate::running::{fail, succeed};
use crate::scratch::scratch;

const COMMANDS: [&str; 23] = [
    "serve",
    "forward",
    "run",
    "script",
    "script run",
    "load",
    "crr",
    "bulk",
    "pcap",
    "explain",
    "lab",
    "lab list",
    "lab show",
    "lab run",
    "compare",
    "sim",
    "sim run",
    "sim grid",
    "sim paths",
    "sysctl",
    "doctor",
    "completions",
    "man",
];

fn whimbrel(words: &str) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

#[test]
fn every_command_has_help_and_is_listed() {
    let all = whimbrel("--help");
    for command in COMMANDS {
        let help = whimbrel(&format!("{command} --help"));
        assert!(help.contains(&format!("Usage: whimbrel {command}")), "{help}");
        let says_what = |line: &str| line.contains(' ') && !line.starts_with("Usage");
        assert!(help.lines().next().is_some_and(says_what), "{command}: {help}");
        let first = command.split(' ').next().unwrap();
        assert!(all.contains(&format!("\n  {first} ")), "{first} is not in: {all}");
    }
}

#[test]
fn stack_options_have_a_separate_heading() {
    for (command, options) in [
        ("serve", 5),
        ("forward", 5),
        ("run", 5),
        ("load", 7),
        ("crr", 7),
        ("bulk", 7),
        ("script run", 4),
    ] {
        let help = whimbrel(&format!("{command} --help"));
        let (own, rules) = help.split_once("Rules of the stack:").unwrap();
        assert!(own.contains("--quiet") && !own.contains("--print-config"), "{help}");
        let listed = rules.matches("\n      --").count() + rules.matches("\n  -").count();
        assert_eq!(listed, options, "{help}");
    }
}

#[test]
fn completions_have_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = whimbrel(&format!("completions {shell}"));
        for word in ["doctor", "print-config", "no-keepalive"] {
            assert!(script.contains(word), "{word} is not in what {shell} reads");
        }
    }
    let (code, error) =
        fail(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(["completions", "ed"]));
    assert_eq!(code, 2);
    assert!(error.contains("bash"), "{error}");
}

#[test]
fn bash_reads_its_script() {
    if !needs::found(&["bash"]) {
        return;
    }
    let script = whimbrel("completions bash");
    let check = format!("{script}\ncomplete -p whimbrel");
    let told = succeed(Command::new("bash").args(["-c", &check]));
    assert!(told.contains("_whimbrel"), "{told}");
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    assert!(whimbrel("man").contains(".TH whimbrel 1"));
    let folder = scratch("man");
    whimbrel(&format!("man --dir {}", folder.display()));
    for command in COMMANDS {
        let page = folder.join(format!("whimbrel-{}.1", command.replace(' ', "-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page:?}: {error}"));
        assert!(text.contains(".SH SYNOPSIS"), "{text}");
        // Its separate page is the same.
        let title = format!(".TH whimbrel-{} 1", command.replace(' ', "-"));
        let alone = whimbrel(&format!("man {command}"));
        assert!(text.contains(&title) && alone.contains(&title), "{command}: {alone}");
    }
    fs::remove_dir_all(&folder).unwrap();
    let mut nowhere = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let (code, error) = fail(nowhere.args(["man", "--dir", "/proc/nowhere"]));
    assert_eq!(code, 1);
    assert!(error.contains("/proc/nowhere") && error.contains("use a directory"), "{error}");
}
