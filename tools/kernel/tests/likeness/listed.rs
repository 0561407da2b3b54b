//! Differences between two hosts, and the list of known ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::case::{Case, CaseSet};
use crate::play::{Account, Moment};

/// The first difference between two accounts of a case.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The state, and the stimuli up to here.
    pub(crate) path: String,
    /// Actions of the stack, or `-`.
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl Difference {
    pub(crate) fn first(case: &Case, ours: &Account, theirs: &Account) -> Option<Self> {
        let at = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs)?;
        let (our, their) = (ours.get(at)?, theirs.get(at)?);
        let event = (0..).find(|event| our.came.get(*event) != their.came.get(*event))?;
        let came = |moment: &Moment| moment.came.get(event).map_or("-", String::as_str).to_owned();
        let mut path = case.state();
        for moment in ours.iter().take(at + 1).skip(case.scene.moments.len()) {
            path = path + " " + &moment.done;
        }
        Some(Self { path, ours: came(our), theirs: came(their) })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, ours, theirs } = self;
        write!(f, "{path} | {ours} | {theirs}")
    }
}

/// Differences by the number of the line that matches them.
pub(crate) type Used = BTreeMap<usize, BTreeSet<String>>;

/// The list of known differences.
pub(crate) struct KnownDifferences(Vec<Line>);

/// A line of it.
struct Line {
    number: usize,
    which: CaseSet,
    at_times: bool,
    /// Pattern of `path | ours | theirs`.
    text: String,
}

impl KnownDifferences {
    /// Parses the list. Lines that begin with `#` are reasons. `# all:` begins lines for the full
    /// set of cases, and `# at times:` lines that need not match.
    pub(crate) fn read(text: &str) -> Self {
        let (mut which, mut at_times) = (CaseSet::Default, false);
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match line {
                "# all:" => which = CaseSet::All,
                "# at times:" => (which, at_times) = (CaseSet::Default, true),
                _ if line.starts_with('#') || line.trim().is_empty() => {}
                _ => lines.push(Line { at_times, ..Line::read(at + 1, line, which) }),
            }
        }
        Self(lines)
    }

    /// Returns the numbers of the lines that match a difference, of those for the cases played.
    pub(crate) fn find(&self, difference: &Difference, which: CaseSet) -> Vec<usize> {
        let told = difference.to_string();
        let lines = self.0.iter().filter(|line| line.is_for(which) && matches(&line.text, &told));
        lines.map(|line| line.number).collect()
    }

    /// Describes each line and its differences; `!` marks those that no other line matches.
    pub(crate) fn tell(&self, used: &Used) -> String {
        let mut lines_of: BTreeMap<&str, usize> = BTreeMap::new();
        for told in used.values().flatten() {
            *lines_of.entry(told).or_default() += 1;
        }
        let mut text = String::new();
        for line in &self.0 {
            text += &format!("{}: {}\n", line.number, line.text);
            for told in used.get(&line.number).into_iter().flatten() {
                let mark = if lines_of.get(told.as_str()) == Some(&1) { '!' } else { ' ' };
                text += &format!("    {mark} {told}\n");
            }
        }
        text
    }

    /// Returns the lines not in `used`, of those for the cases played.
    pub(crate) fn unmatched(&self, used: &Used, which: CaseSet) -> impl Iterator<Item = &str> {
        let others = self.0.iter().filter(|line| !used.contains_key(&line.number));
        let others = others.filter(move |line| !line.at_times && line.is_for(which));
        others.map(|line| line.text.as_str())
    }
}

impl Line {
    /// Parses a line.
    ///
    /// # Panics
    ///
    /// If it matches any actions of both hosts, because it would hide other differences.
    fn read(number: usize, text: &str, which: CaseSet) -> Self {
        let parts: Vec<_> = text.split(" | ").collect();
        assert_eq!(parts.len(), 3, "line {number} is not `path | ours | theirs`: {text}");
        assert_ne!(parts[1..], ["*", "*"], "line {number} says nothing of what happens: {text}");
        Self { number, which, at_times: false, text: text.to_owned() }
    }

    fn is_for(&self, which: CaseSet) -> bool {
        which == CaseSet::All || self.which == CaseSet::Default
    }
}

/// True if `text` matches `pattern`: `*` stands for any text within a part, `%1` for what the first
/// `*` matched, `{a;b}` for `a` or `b`.
fn matches(pattern: &str, text: &str) -> bool {
    matches_from(pattern, text, &mut Vec::new())
}

fn matches_from<'a>(pattern: &str, text: &'a str, stood: &mut Vec<&'a str>) -> bool {
    let Some(at) = pattern.find(['*', '%', '{']) else { return pattern == text };
    let Some(text) = text.strip_prefix(&pattern[..at]) else { return false };
    let rest = &pattern[at + 1..];
    match &pattern[at..=at] {
        "*" => {
            let most = text.find('|').unwrap_or(text.len());
            (0..=most).any(|end| {
                stood.push(&text[..end]);
                let found = matches_from(rest, &text[end..], stood);
                stood.pop();
                found
            })
        }
        "%" => {
            let same = rest[..1].parse::<usize>().ok().and_then(|which| stood.get(which - 1));
            let text = same.and_then(|same| text.strip_prefix(same));
            text.is_some_and(|text| matches_from(&rest[1..], text, stood))
        }
        _ => {
            let (either, rest) = rest.split_once('}').expect("a closing brace");
            let mut either = either.split(';').filter_map(|it| text.strip_prefix(it));
            either.any(|text| matches_from(rest, text, stood))
        }
    }
}

#[test]
fn patterns_stand_for_what_they_say() {
    for (pattern, text, is_it) in [
        ("a*c | b | d", "abc | b | d", true),
        ("a* | d", "abc | b | d", false),
        ("> . * ecr * | > . %1 ecr *", "> . 1(0) ecr 5 | > . 1(0) ecr 6", true),
        ("> . * ecr * | > . %1 ecr *", "> . 1(0) ecr 5 | > . 2(0) ecr 6", false),
        ("{fin;syn}-again* | -", "syn-again later | -", true),
        ("{fin;syn}-again | -", "rst-again | -", false),
        ("{fin;fin-again} | -", "fin-again | -", true),
    ] {
        assert_eq!(matches(pattern, text), is_it, "{pattern}: {text}");
    }
}
