//! Which packet scripts show what: each cites it on its first line, and the tables repeat that.
//!
//! `RFC 9293 3.8.3, MUST-23; RFC 1122 4.2.3.5-1` cites two requirements, by the ids that the tables
//! give them. A section that is no requirement's id is for readers.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;

/// The scripts that cite a requirement, by RFC and id.
pub(super) type Cited = BTreeMap<(String, String), BTreeSet<String>>;

/// Requirements cited by the first lines of all scripts.
pub(super) fn cited(tree: &Tree) -> Cited {
    let mut cited = Cited::new();
    let scripts = tree.files_ending(".pkt").filter(|(name, _)| name.starts_with(FOLDER));
    for (name, text) in scripts {
        for citation in citations(text.lines().next().unwrap_or_default()) {
            cited.entry(citation).or_default().insert(name.to_owned());
        }
    }
    cited
}

/// The RFC and the words behind it, up to the first that is neither an id nor a section.
fn citations(line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for clause in line.split("RFC ").skip(1) {
        let mut words = clause.split_whitespace().map(|word| word.trim_matches(PUNCTUATION));
        let Some(rfc) = words.next() else { continue };
        let ids = words.take_while(|word| is_id(word));
        found.extend(ids.map(|id| (rfc.to_owned(), id.to_owned())));
    }
    found
}

/// `MUST-23`, `4.2.3.5-1`, `5.3-R1`, `3.8.3`: it has a digit, and small letters only at its end.
fn is_id(word: &str) -> bool {
    let front = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "-.".contains(c);
    word == "and" || front.contains(|c: char| c.is_ascii_digit()) && front.chars().all(is_part)
}

/// The text of the table of `rfc` with the lists of scripts that are `cited`.
pub(super) fn rewritten(text: &str, rfc: &str, cited: &Cited) -> String {
    let mut blocks = text.split("[[requirement]]");
    let mut page = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        let id = block.lines().find_map(|line| line.strip_prefix("id = ")).unwrap_or_default();
        let key = (rfc.to_owned(), id.trim_matches('"').to_owned());
        page += "[[requirement]]";
        page += &with_list(block, cited.get(&key));
    }
    page
}

/// One requirement with this list of scripts, behind what names its code and tests.
fn with_list(block: &str, scripts: Option<&BTreeSet<String>>) -> String {
    let entries = entries(block);
    let is = |key: &str, entry: &str| entry.starts_with(&format!("{key} = "));
    let rest: Vec<_> = entries.into_iter().filter(|entry| !is("scripts", entry)).collect();
    let place =
        rest.iter().rposition(|it| ["status", "code", "tests"].iter().any(|key| is(key, it)));
    let mut text = String::new();
    for (at, entry) in rest.iter().enumerate() {
        text += entry;
        if Some(at) == place {
            text += &scripts.map(list).unwrap_or_default();
        }
    }
    text
}

/// The lines of a requirement, those of a list of several lines together.
fn entries(block: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    let mut open = false;
    for line in block.split_inclusive('\n') {
        match entries.last_mut() {
            Some(entry) if open => entry.push_str(line),
            _ => entries.push(line.to_owned()),
        }
        let line = line.trim_end();
        open = if open { line != "]" } else { line.ends_with("= [") };
    }
    entries
}

fn list(scripts: &BTreeSet<String>) -> String {
    let quoted: Vec<_> = scripts.iter().map(|script| format!("\"{script}\"")).collect();
    match quoted.as_slice() {
        [one] => format!("scripts = [{one}]\n"),
        several => {
            let lines: String = several.iter().map(|it| format!("    {it},\n")).collect();
            format!("scripts = [\n{lines}]\n")
        }
    }
}

const FOLDER: &str = "tests/scripts/";
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '(', ')'];
