//! Every packet script of `tests/scripts` passes over IPv4 and IPv6, and under each profile of a
//! whole stack, unless a line of its own limits the profiles: `// Profiles: whimbrel, linux.` with
//! the reason.
//!
//! `cargo run -- script run FILE` runs one, and prints the packets before the first difference.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test that reads files")]

use std::fs;
use std::path::Path;

#[path = "../../../tests/harness/files.rs"]
mod files;

use whimbrel_script::dialect::Dialect;
use whimbrel_script::parse::{Defines, parse};
use whimbrel_script::report::{ScriptReport, Verdict};
use whimbrel_script::run::{Settings, run};
use whimbrel_script::setup::Setup;
use whimbrel_script::shard_host::ShardHost;
use whimbrel_stack::Profile;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts");

/// Profiles of scripts by default.
const PROFILES: [&str; 3] = ["whimbrel", "linux", "freebsd"];

#[test]
fn every_script_passes_over_ipv4_under_its_profiles() {
    for profile in PROFILES {
        play(profile, |text| Some(text.to_owned()));
    }
}

#[test]
fn every_script_that_names_no_family_holds_over_ipv6() {
    play("whimbrel", |text| {
        (!text.contains("--ip_version")).then(|| format!("--ip_version=ipv6 {text}"))
    });
}

/// Runs `dress` of each script for this profile.
fn play(profile: &str, dress: impl Fn(&str) -> Option<String>) {
    let mut played = 0;
    let mut failed = Vec::new();
    for path in files::below(Path::new(FOLDER), "pkt") {
        let text = fs::read_to_string(&path).unwrap();
        let Some(text) = dress(&text).filter(|_| is_for(profile, &text)) else { continue };
        played += 1;
        let verdict = verdict(profile, &text);
        if !matches!(verdict, Verdict::Passed { .. }) {
            failed.push(ScriptReport::new(&path.display().to_string(), &verdict).to_string());
        }
    }
    let (count, told) = (failed.len(), failed.join("\n"));
    assert!(failed.is_empty(), "{count} of {played} failed under {profile}:\n{told}");
    assert!(played >= 700, "only {played} scripts");
}

/// True if a script is for this profile.
fn is_for(profile: &str, text: &str) -> bool {
    let Some(list) = text.lines().find_map(|line| line.strip_prefix("// Profiles: ")) else {
        return true;
    };
    let (names, reason) = list.split_once('.').expect("the names end in a full stop");
    assert!(!reason.is_empty(), "no reason for {names}");
    let names: Vec<_> = names.split(", ").collect();
    assert!(names.iter().all(|name| PROFILES.contains(name)), "{names:?}");
    names.contains(&profile)
}

fn verdict(profile: &str, text: &str) -> Verdict {
    let profile = Profile::by_name(profile).unwrap();
    // On IPv6 the MTU of Linux' dialect makes the MSS that of IPv4.
    let settings = Settings { dialect: Dialect::Linux, ..Settings::default() };
    let script = parse(text, &Defines::of(settings.dialect)).unwrap();
    let setup = Setup::of(&script, settings.dialect).unwrap();
    let mut host = ShardHost::new(&setup.network, profile.tunables().unwrap()).unwrap();
    run(&script, &settings, &mut host)
}
