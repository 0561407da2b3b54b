//! The requirement tables in `docs/rfc`: what an RFC demands, and where it is done and tested.
//!
//! A table that names code which is gone, or calls done what no test shows, is worse than none.
//! Whether a test shows what the table claims is for its reader to judge.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use crate::finding::Finding;
use crate::tree::Tree;

mod counts;
mod reference;
mod scripts;

use counts::Counts;
use reference::Kind;
use scripts::Cited;

/// One file of `docs/rfc`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    requirement: Vec<Requirement>,
}

/// One `[[requirement]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: Spanned<String>,
    section: String,
    level: Level,
    text: String,
    status: Status,
    #[serde(default)]
    code: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    scripts: Vec<String>,
    #[serde(default)]
    reason: String,
}

/// RFC 2119's words, and none for what an RFC describes without one of them.
#[derive(Clone, Copy, Debug, Deserialize)]
enum Level {
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "MUST NOT")]
    MustNot,
    #[serde(rename = "SHOULD")]
    Should,
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    #[serde(rename = "MAY")]
    May,
    #[serde(rename = "-")]
    None,
}

impl Level {
    /// True if the RFC leaves no choice.
    const fn is_must(self) -> bool {
        matches!(self, Self::Must | Self::MustNot)
    }
}

/// Status of a requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
enum Status {
    #[serde(rename = "done")]
    Done,
    #[serde(rename = "deviation")]
    Deviation,
    #[serde(rename = "open")]
    Open,
    #[serde(rename = "n/a")]
    NotApplicable,
}

/// Number of requirements of each RFC by status, and faults of the tables.
pub(crate) fn judge(tree: &Tree) -> (Vec<Counts>, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut counts = Vec::new();
    let cited = scripts::cited(tree);
    let tables = tree.files_ending(".toml").filter(|(name, _)| name.starts_with(FOLDER));
    for (name, text) in tables {
        match toml::from_str::<Table>(text) {
            Ok(table) => {
                counts.push(Counts::of(name, &table.requirement));
                findings.extend(judge_table(name, text, &table, tree));
                findings.extend(judge_scripts(name, text, &table, &cited));
            }
            Err(error) => findings.push(unreadable(name, text, &error)),
        }
    }
    (counts, findings)
}

fn judge_table(name: &str, text: &str, table: &Table, tree: &Tree) -> Vec<Finding> {
    let mut known = BTreeSet::new();
    let mut findings = Vec::new();
    for requirement in &table.requirement {
        let line = line_at(text, requirement.id.span().start);
        let id = requirement.id.get_ref();
        let mut messages = judge_requirement(requirement);
        if !known.insert(id) {
            messages.push(("its id stands there twice".to_owned(), RENAME));
        }
        messages.extend(reference::judge_all(Kind::Code, &requirement.code, tree));
        messages.extend(reference::judge_all(Kind::Test, &requirement.tests, tree));
        let place = |(message, remedy)| Finding::at(name, line, format!("{id}: {message}"), remedy);
        findings.extend(messages.into_iter().map(place));
    }
    findings
}

/// Lists of scripts that are not what the scripts say.
fn judge_scripts(name: &str, text: &str, table: &Table, cited: &Cited) -> Vec<Finding> {
    let rfc = rfc_of(name);
    let mut findings = Vec::new();
    for requirement in &table.requirement {
        let id = requirement.id.get_ref();
        let expected = cited.get(&(rfc.to_owned(), id.clone())).cloned().unwrap_or_default();
        let listed: BTreeSet<_> = requirement.scripts.iter().cloned().collect();
        if let Some(script) = listed.symmetric_difference(&expected).next() {
            let message = format!(
                "{id}: its scripts are those whose first line cites `RFC {rfc} {id}`, and with \
                 `{script}` it is otherwise"
            );
            let line = line_at(text, requirement.id.span().start);
            findings.push(Finding::at(name, line, message, BLESS));
        }
    }
    findings
}

/// Each table whose lists of scripts are not what the scripts say, as it should be.
pub(crate) fn rewritten(tree: &Tree) -> Vec<(&str, String)> {
    let cited = scripts::cited(tree);
    let tables = tree.files_ending(".toml").filter(|(name, _)| name.starts_with(FOLDER));
    let written =
        tables.map(|(name, text)| (name, text, scripts::rewritten(text, rfc_of(name), &cited)));
    written.filter(|(_, text, anew)| text != anew).map(|(name, _, anew)| (name, anew)).collect()
}

fn rfc_of(name: &str) -> &str {
    name.trim_start_matches(FOLDER).trim_end_matches(".toml")
}

/// Faults of a requirement, with remedies.
fn judge_requirement(requirement: &Requirement) -> Vec<(String, &'static str)> {
    let Requirement { section, text, status, code, tests, scripts, reason, .. } = requirement;
    let mut messages = Vec::new();
    if section.trim().is_empty() || text.trim().is_empty() {
        messages.push(("a requirement has a section and a text".to_owned(), FILL_IN));
    }
    if *status == Status::Done {
        if code.is_empty() {
            messages.push(("what is done stands somewhere, and no code is named".to_owned(), NAME));
        }
        if tests.is_empty() && scripts.is_empty() {
            let message = "what is done is tested, and no test and no script is named";
            messages.push((message.to_owned(), NAME));
        }
    } else if reason.trim().is_empty() {
        messages.push(("what is not done has a reason, and there is none".to_owned(), FILL_IN));
    }
    messages
}

fn unreadable(name: &str, text: &str, error: &toml::de::Error) -> Finding {
    let line = error.span().map_or(1, |span| line_at(text, span.start));
    let message = format!("not a requirement table: {}", error.message().replace('\n', " "));
    Finding::at(name, line, message, "see docs/rfc/README.md for the fields")
}

/// The line that the byte at `offset` stands in, counted from 1.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

const FOLDER: &str = "docs/rfc/";
const BLESS: &str =
    "cite it there, or not, and write the lists by `WHIMBREL_BLESS=1` in front of this command";
const RENAME: &str = "give each requirement an id of its own";
const FILL_IN: &str = "fill it in";
const NAME: &str = "name it, or call the requirement open and say what is missing";

#[cfg(test)]
mod tests;
