#![allow(
    clippy::disallowed_methods,
    reason = "compares files with tables, and writes them if asked"
)]

use std::path::Path;
use std::{env, fs};

use whimbrel_tcp::Counters;

use crate::pages;

fn compare(page: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    if env::var_os("WHIMBREL_BLESS").is_some() {
        fs::write(&path, generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(generated.lines()).position(|(a, b)| a != b);
    assert!(
        committed == generated,
        "docs/reference/{page} is not what the tables say, from line {} on: run \
         `WHIMBREL_BLESS=1 cargo test -p whimbrel-tcp reference` and commit what it writes",
        differs.unwrap_or(committed.lines().count().min(generated.lines().count())) + 1
    );
}

#[test]
fn the_reference_of_tunables_is_generated_from_their_table() {
    compare("tunables.md", &pages::tunables());
}

#[test]
fn the_reference_of_counters_is_generated_from_their_tables() {
    compare("counters.md", &pages::counters());
}

/// The names that `/proc/net/snmp` or `/proc/net/netstat` shows, as `nstat` joins them.
fn names_of_linux(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut names = Vec::new();
    // Lines come in pairs, names above values, each with the same prefix.
    for line in text.lines().step_by(2) {
        if let Some((prefix, fields)) = line.split_once(": ") {
            names.extend(fields.split(' ').map(|field| format!("{prefix}{field}")));
        }
    }
    names
}

#[test]
fn the_reference_calls_linux_what_linux_calls_so() {
    let mut linux = names_of_linux("/proc/net/snmp");
    linux.extend(names_of_linux("/proc/net/netstat"));
    if !linux.iter().any(|name| name == "TcpExtTCPWinProbe") {
        eprintln!("skipped: this system shows no MIB of Linux");
        return;
    }
    for (name, ..) in Counters::default().iter() {
        let ours = name.starts_with("Whimbrel");
        assert!(ours || linux.iter().any(|it| it == name), "Linux has no {name}: Whimbrel…");
    }
}
