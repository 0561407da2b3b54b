//! Nothing in the tree ties it to the machine it was written on, or to one registry.
//!
//! A mirror must be able to take the registry's place, and a clone to stand in any folder. Lock
//! files are cargo's, and name the registry because they must.

use crate::finding::Finding;
use crate::tree::Tree;

/// Names of registry hosts, and absolute paths into a workplace.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    let written = tree.files().filter(|(name, _)| !name.ends_with(".lock"));
    written.flat_map(|(name, text)| judge_text(name, text)).collect()
}

fn judge_text(name: &str, text: &str) -> Vec<Finding> {
    let numbered = (1..).zip(text.lines());
    numbered.flat_map(|(number, line)| judge_line(name, number, line)).collect()
}

fn judge_line(name: &str, number: usize, line: &str) -> Vec<Finding> {
    let hosts = HOSTS.iter().map(|parts| parts.concat());
    let named = hosts.filter(|host| line.contains(host)).map(|host| {
        let message = format!("no registry host is named here, and this is `{host}`");
        Finding::at(name, number, message, "say what is fetched, not from where")
    });
    let mut findings: Vec<_> = named.collect();
    if names_workplace(line) {
        let message = "no path leads into one machine's workplace, and this one does".to_owned();
        findings.push(Finding::at(name, number, message, "make it relative to the repository"));
    }
    findings
}

/// True if an absolute path into the workplace begins in `line`: `crates/x` with that name in the
/// middle is not one.
fn names_workplace(line: &str) -> bool {
    let workplace = WORKPLACE.concat();
    line.match_indices(&workplace).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}".contains(c))
    })
}

/// In parts, so that this file does not name them either.
const HOSTS: [&[&str]; 8] = [
    &["//crates", ".io"],
    &["static.crates", ".io"],
    &["index.crates", ".io"],
    &["deb.debian", ".org"],
    &["pypi", ".org"],
    &["files.pythonhosted", ".org"],
    &["proxy.golang", ".org"],
    &["registry.npmjs", ".org"],
];
const WORKPLACE: [&str; 2] = ["/wo", "rk/"];

#[cfg(test)]
mod tests;
