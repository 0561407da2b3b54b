//! The packet scripts without choices in the RFCs hold for Linux, too, except for listed deviations
//! with reasons.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::needs;
use crate::running::output;
use crate::script::kernel_is_there;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts");
const LISTED: &str = include_str!("../../../../tests/scripts/linux-deviations.txt");
/// The scripts without a choice, and those of choices that Linux made, too.
const FOLDERS: [&str; 24] = [
    "agreed", "calls", "rfc1191", "rfc2018", "rfc2883", "rfc3042", "rfc3168", "rfc3522", "rfc3708",
    "rfc5681", "rfc5682", "rfc5927", "rfc6191", "rfc6298", "rfc6582", "rfc6675", "rfc6937",
    "rfc7323", "rfc7413", "rfc7661", "rfc8201", "rfc8985", "rfc9293", "rfc9438",
];

/// Time limit of retries: later the test fails while it can still report.
const PATIENCE: Duration = Duration::from_secs(180);

/// Scripts that Linux does not pass as they are written.
#[derive(Default, Debug, PartialEq, Eq)]
struct Deviations {
    /// Those that it passes but for where PSH is.
    push: BTreeSet<String>,
    /// All others.
    others: BTreeSet<String>,
}

#[test]
fn linux_passes_scripts_except_listed_deviations() {
    if !kernel_is_there() || !needs::found(&[needs::IPV6]) {
        return;
    }
    let listed = listed();
    let mut found = deviations(FOLDERS.map(str::to_owned).into());
    // Real time: a late packet may come in time when repeated; and Linux acknowledges a FIN at once or
    // 40 ms later.
    let began = Instant::now();
    for _ in 0..8 {
        let unlisted = found.beyond(&listed);
        if unlisted.is_empty() || began.elapsed() > PATIENCE {
            break;
        }
        let again = deviations(unlisted.clone());
        for path in &unlisted {
            found.push.remove(path);
            found.others.remove(path);
        }
        found.push.extend(again.push);
        found.others.extend(again.others);
    }
    let unlisted: Vec<_> = found.others.difference(&listed.others).collect();
    assert!(unlisted.is_empty(), "Linux fails, and no reason is listed: {unlisted:#?}");
    assert_eq!(found, listed, "listed as a deviation, yet Linux passes, or PSH was not listed");
}

impl Deviations {
    /// Those that are not in `listed`, or for another reason.
    fn beyond(&self, listed: &Self) -> Vec<String> {
        let push = self.push.difference(&listed.push);
        push.chain(self.others.difference(&listed.others)).cloned().collect()
    }
}

fn listed() -> Deviations {
    let mut listed = Deviations::default();
    for line in LISTED.lines().filter(|line| line.ends_with(".pkt")) {
        match line.strip_prefix("push ") {
            Some(path) => listed.push.insert(path.into()),
            None => listed.others.insert(line.into()),
        };
    }
    listed
}

/// The deviations of Linux in scripts at these paths.
fn deviations(paths: Vec<String>) -> Deviations {
    let strict = run(&paths, "--strict", |file| file["verdict"] == "failed");
    if strict.is_empty() {
        return Deviations::default();
    }
    // Of what passes now without any rule it was but the moment.
    let mut others = strict.clone();
    let only_push = |file: &Value| {
        let rules = file["rules"].as_array().filter(|_| file["verdict"] == "passed");
        let passes = rules.is_some_and(|rules| rules.iter().all(|rule| rule == "push"));
        if passes {
            others.remove(&name(&file["path"]));
        }
        passes && rules.is_some_and(|rules| !rules.is_empty())
    };
    let paths: Vec<String> = strict.into_iter().collect();
    let push = run(&paths, "--semantic", only_push);
    Deviations { push, others }
}

fn run(
    paths: &[String],
    mode: &str,
    mut is_wanted: impl FnMut(&Value) -> bool,
) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(["script", "run", "--against", "kernel", "--json", "-j", "16", mode]);
    let output = output(command.args(paths).current_dir(FOLDER));
    let text = String::from_utf8(output.stdout).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    let files = document["files"].as_array().unwrap();
    assert!(files.len() >= paths.len());
    files.iter().filter(|file| is_wanted(file)).map(|file| name(&file["path"])).collect()
}

fn name(path: &Value) -> String {
    let path = Path::new(path.as_str().unwrap());
    path.strip_prefix("./").unwrap_or(path).display().to_string()
}
