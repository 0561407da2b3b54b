//! Every packet script of `tests/scripts` holds, over IPv4 and over IPv6.
//!
//! `cargo run -- script run FILE` runs one, and prints the packets before what was not as written.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test that reads files")]

use std::fs;
use std::path::{Path, PathBuf};

use whimbrel_sim::script::parse::{Defines, parse};
use whimbrel_sim::script::report::{Report, Verdict};
use whimbrel_sim::script::run::{Settings, run};
use whimbrel_sim::script::setup::Setup;
use whimbrel_sim::script::shard_host::ShardHost;
use whimbrel_stack::Profile;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts");

#[test]
fn every_script_holds_over_ipv4() {
    play(|text| Some(text.to_owned()));
}

#[test]
fn every_script_that_names_no_family_holds_over_ipv6() {
    play(|text| (!text.contains("--ip_version")).then(|| format!("--ip_version=ipv6 {text}")));
}

/// Plays what `dress` makes of each script.
fn play(dress: impl Fn(&str) -> Option<String>) {
    let mut scripts = Vec::new();
    collect(Path::new(FOLDER), &mut scripts);
    scripts.sort();
    let mut played = 0;
    let mut failed = Vec::new();
    for path in scripts {
        let Some(text) = dress(&fs::read_to_string(&path).unwrap()) else { continue };
        played += 1;
        let verdict = verdict(&text);
        if !matches!(verdict, Verdict::Passed { .. }) {
            failed.push(Report::new(&path.display().to_string(), &verdict).to_string());
        }
    }
    assert!(failed.is_empty(), "{} of {played} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(played >= 250, "only {played} scripts");
}

fn verdict(text: &str) -> Verdict {
    let profile = Profile::by_name("whimbrel").unwrap();
    let script = parse(text, &Defines::for_persona(profile.name)).unwrap();
    let settings = Settings::default();
    let setup = Setup::of(&script, settings.dialect).unwrap();
    let mut host = ShardHost::new(&setup.network, profile.tunables().unwrap()).unwrap();
    run(&script, &settings, &mut host)
}

fn collect(folder: &Path, scripts: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, scripts);
        } else if path.extension().is_some_and(|it| it == "pkt") {
            scripts.push(path);
        }
    }
}
