//! Checks that the reference page of UDP's counters matches their table, and that their names are
//! Linux's.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "compares a file with a table, and writes it if asked"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use whimbrel_udp::Counters;

#[test]
fn the_reference_of_counters_is_generated_from_their_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/udp-counters.md");
    let generated = page();
    if env::var_os("WHIMBREL_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/reference/udp-counters.md differs from the table: run \
         `WHIMBREL_BLESS=1 cargo test -p whimbrel-udp reference` and commit the page"
    );
}

#[test]
fn the_reference_calls_linux_what_linux_calls_so() {
    let text = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let Some(line) = text.lines().find(|line| line.starts_with("Udp: ")) else {
        eprintln!("skipped: this system shows no MIB of Linux");
        return;
    };
    let linux: Vec<_> = line.split(' ').skip(1).map(|field| format!("Udp{field}")).collect();
    for (name, ..) in Counters::default().iter() {
        let ours = name.starts_with("Whimbrel");
        assert!(ours || linux.iter().any(|it| it == name), "Linux has no {name}: Whimbrel…");
    }
}

fn page() -> String {
    let mut page = String::from(HEAD);
    for (name, help, _) in Counters::default().iter() {
        writeln!(page, "| `{name}` | {help} |").expect("a string takes all");
    }
    page
}

const HEAD: &str = "\
# Counters of UDP

A shard's counters of datagrams. This page is generated from the table in `crates/udp/src/counters.rs`:
edit the table, then run `WHIMBREL_BLESS=1 cargo test -p whimbrel-udp reference`. `Shard::udp` and
`Stack::udp_counters` return the counters. `Udp…` are the names of Linux's MIB (`nstat`,
`/proc/net/snmp`); `Whimbrel…` counters do not exist on Linux. See also the
[counters of TCP](counters.md).

| name | what it counts |
|---|---|
";
