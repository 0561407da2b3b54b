//! No code path knows a profile's name: a profile is data, and what it changes it changes by tunables.
//!
//! Who names one, to run with it or to show it, may; who compares with a name, or asks for the profile
//! of one in code that is no test, decides by it.

use crate::finding::Finding;
use crate::tree::Tree;

/// Comparisons with the name of a profile, and look-ups of one.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    let names: Vec<_> = tree
        .files_ending(".rs")
        .filter(|(file, _)| is_data(file))
        .flat_map(|(_, text)| names_in(text))
        .collect();
    let code = tree.files_ending(".rs").filter(|(file, _)| is_code(file));
    code.flat_map(|(file, text)| judge_file(file, text, &names)).collect()
}

/// True if profiles stand in this file.
fn is_data(file: &str) -> bool {
    file.starts_with("crates/stack/src/profile") && !file.contains("tests")
}

/// True if what stands in this file runs outside of tests, and is no profile.
fn is_code(file: &str) -> bool {
    let is_ours = file.starts_with("crates/") || file.starts_with("tools/");
    let in_source = is_ours && file.contains("/src/");
    in_source && !file.contains("tests") && !is_data(file)
}

/// The names of profiles that nothing else has: those with a digit.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let named =
        text.lines().filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","));
    named.filter(|name| name.contains(|c: char| c.is_ascii_digit()))
}

fn judge_file(file: &str, text: &str, names: &[&str]) -> Vec<Finding> {
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().starts_with("//"));
    let known = numbered.filter(|(_, line)| {
        let code = line.split(" // ").next().unwrap_or_default();
        names.iter().any(|name| decides_by(code, &format!("\"{name}\""))) || compares_names(code)
    });
    let message = "no code decides by the name of a profile, and this does";
    let remedy = "let a tunable say what differs, and profiles set it";
    known.map(|(number, _)| Finding::at(file, number, message.to_owned(), remedy)).collect()
}

/// True if something is decided by this literal where it stands in the line.
fn decides_by(line: &str, literal: &str) -> bool {
    line.match_indices(literal).any(|(at, _)| {
        let before = line[..at].trim_end();
        let after = line[at + literal.len()..].trim_start_matches([' ', ')']);
        let compared = ["==", "!=", "by_name(", "starts_with("];
        compared.iter().any(|mark| before.ends_with(mark))
            || ["=>", "==", "!=", "| \""].iter().any(|mark| after.starts_with(mark))
    })
}

/// True if the name of some profile is compared with something in this line.
fn compares_names(line: &str) -> bool {
    line.match_indices("profile.name").any(|(at, name)| {
        let after = line[at + name.len()..].trim_start();
        ["==", "!=", ".starts_with", ".contains"].iter().any(|mark| after.starts_with(mark))
    })
}

#[cfg(test)]
mod tests;
