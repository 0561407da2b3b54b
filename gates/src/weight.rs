//! Dependencies that the library brings to a program: few packages of others, and of ours only those it
//! runs.

use std::collections::BTreeSet;
use std::process::Command;

use crate::Failure;
use crate::finding::Finding;

/// Too many packages of others, and packages of ours that are for tests and for the command line.
pub(crate) fn judge() -> Result<Vec<Finding>, Failure> {
    let options = ["tree", "--locked", "-p", LIBRARY, "-e", "normal", "--prefix", "none"];
    let output = Command::new("cargo").args(options).output()?;
    if !output.status.success() {
        return Err(format!("`cargo {}` failed", options.join(" ")).into());
    }
    Ok(judge_tree(&String::from_utf8(output.stdout)?))
}

fn judge_tree(tree: &str) -> Vec<Finding> {
    // A line is `name v1.2.3`, and more behind it if it stood there before.
    let packages: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let (ours, others): (Vec<&str>, Vec<&str>) = packages
        .into_iter()
        .filter(|name| !name.is_empty())
        .partition(|it| it.starts_with(LIBRARY));
    let mut findings = Vec::new();
    if others.len() > MOST {
        let message = format!(
            "`{LIBRARY}` pulls {} packages that are not ours, {MOST} at most: {}",
            others.len(),
            others.join(", ")
        );
        findings.push(Finding::of_file(MANIFEST, message, "put what pulls them behind a feature"));
    }
    for name in ours.into_iter().filter(|name| NOT_FOR_PROGRAMS.contains(name)) {
        let message = format!("`{LIBRARY}` pulls `{name}`, which no program over it runs");
        findings.push(Finding::of_file(MANIFEST, message, "put what pulls it behind a feature"));
    }
    findings
}

const LIBRARY: &str = "whimbrel";
const MANIFEST: &str = "crates/whimbrel/Cargo.toml";
/// Packages that are not ours: tokio and what it takes for sockets' readiness, and some ten more.
const MOST: usize = 18;
const NOT_FOR_PROGRAMS: [&str; 6] = [
    "whimbrel-posix",
    "whimbrel-apps",
    "whimbrel-sim",
    "whimbrel-script",
    "whimbrel-lab",
    "whimbrel-kernel",
];

#[cfg(test)]
mod tests;
