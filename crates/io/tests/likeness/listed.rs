//! Where two hosts differ, and what is listed of that.

use std::collections::BTreeSet;

use crate::case::{Case, Which};
use crate::play::{Account, Moment};

/// The first thing in which two accounts of a case differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The state, and what met the host up to here.
    pub(crate) path: String,
    /// What each host did, or `-`.
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

/// The list.
pub(crate) struct Listed(Vec<Line>);

/// A line of it: patterns in which `*` is anything.
struct Line {
    number: usize,
    which: Which,
    text: String,
    path: String,
    ours: String,
    theirs: String,
}

impl Listed {
    /// `path | ours | theirs`; lines that begin with `#` are reasons. Behind `# all:` stands what only
    /// the whole product has.
    pub(crate) fn read(text: &str) -> Self {
        let mut which = Which::Usual;
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match line {
                "# all:" => which = Which::All,
                _ if line.starts_with('#') || line.trim().is_empty() => {}
                _ => lines.push(Line::read(at + 1, line, which)),
            }
        }
        Self(lines)
    }

    /// The numbers of the lines that a difference has.
    pub(crate) fn find(&self, difference: &Difference) -> Vec<usize> {
        let lines = self.0.iter().filter(|line| line.is_for(difference));
        lines.map(|line| line.number).collect()
    }

    /// The lines beside these, of those that are for the cases played.
    pub(crate) fn beside(
        &self,
        used: &BTreeSet<usize>,
        which: Which,
    ) -> impl Iterator<Item = &str> {
        let others = self.0.iter().filter(|line| !used.contains(&line.number));
        let others = others.filter(move |line| which == Which::All || line.which == Which::Usual);
        others.map(|line| line.text.as_str())
    }
}

impl Line {
    fn read(number: usize, text: &str, which: Which) -> Self {
        let parts: Vec<_> = text.split('|').map(|part| part.trim().to_owned()).collect();
        let [path, ours, theirs] = <[String; 3]>::try_from(parts)
            .unwrap_or_else(|_| panic!("line {number}: not `path | ours | theirs`: {text}"));
        Self { number, which, text: text.to_owned(), path, ours, theirs }
    }

    fn is_for(&self, difference: &Difference) -> bool {
        matches(&self.path, &difference.path)
            && matches(&self.ours, &difference.ours)
            && matches(&self.theirs, &difference.theirs)
    }
}

/// Whether `text` is as `pattern` has it, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| matches(rest, text)))
        }),
    }
}
