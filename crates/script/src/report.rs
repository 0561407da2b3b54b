//! What became of a script, for people and for programs.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use whimbrel_base::Foreign;

use super::ast::Direction;
use super::packet::{Mismatch, Rules};

/// What became of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All came as written.
    Passed {
        /// What semantic mode had to forgive.
        rules: Rules,
        /// What is worth a look all the same: packets behind the last line, what snippets print.
        warnings: Vec<String>,
    },
    /// Something was not as the script has it, and this is where.
    Failed(Failure),
    /// The script asks for what this runner or the host cannot do: a sentence for each.
    Skipped(Vec<String>),
}

/// The first thing that was not as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line (1 ..).
    pub line: u32,
    /// What the script says.
    pub expected: String,
    /// What came in its place.
    pub came: String,
    /// The last packets before, at most [`LOGGED`].
    pub packets: Vec<LoggedPacket>,
}

/// A packet that passed, in the language of scripts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedPacket {
    /// The time since the script's beginning.
    pub at: Duration,
    /// Whether it came in or went out.
    pub direction: Direction,
    /// With the script's numbers.
    pub text: String,
}

/// How many packets a failure shows.
pub const LOGGED: usize = 10;

/// A line that was not met, before it is known which packets passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    pub(super) line: u32,
    pub(super) expected: String,
    pub(super) came: String,
}

impl Fault {
    pub(super) fn new(line: u32, expected: impl ToString, came: impl ToString) -> Self {
        Self { line, expected: expected.to_string(), came: came.to_string() }
    }

    /// A field of a packet that differs.
    pub(super) fn of(line: u32, mismatch: Mismatch) -> Self {
        let Mismatch { field, expected, came } = mismatch;
        Self { line, expected: alloc::format!("{field} {expected}"), came }
    }
}

impl Verdict {
    /// True if all was as the script has it.
    pub const fn is_passed(&self) -> bool {
        matches!(self, Self::Passed { .. })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, expected, came, .. } = self;
        write!(f, "line {line}: expected {expected}, came {came}")
    }
}

/// A line of a script: `0.100000 > S. 0:0(0) ack 1`.
impl fmt::Display for LoggedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            Direction::In => '<',
            Direction::Out => '>',
        };
        write!(f, "{} {arrow} {}", seconds(self.at), self.text)
    }
}

/// A time on a script's clock, to the microsecond.
pub(super) fn seconds(time: Duration) -> String {
    alloc::format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// What became of one file, with nothing left to look up: for a program to write down.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScriptReport {
    /// The file, as it was named.
    pub name: String,
    /// `ok`, `failed`, or `skipped`.
    pub outcome: &'static str,
    /// What semantic mode had to forgive, by name.
    pub rules: Vec<&'static str>,
    /// The line that failed.
    pub line: Option<u32>,
    /// What the script has at that place, if it expects anything.
    pub expected: Option<String>,
    /// What came in its place, if anything did.
    pub came: Option<String>,
    /// The last packets before, as lines of a script.
    pub packets: Vec<String>,
    /// Why it was skipped.
    pub reasons: Vec<String>,
    /// What is worth a look although it passed.
    pub warnings: Vec<String>,
}

impl ScriptReport {
    /// The report on the file `name`.
    pub fn new(name: &str, verdict: &Verdict) -> Self {
        let report = Self { name: name.to_string(), ..Self::default() };
        match verdict {
            Verdict::Passed { rules, warnings } => Self {
                outcome: "ok",
                rules: rules.iter().map(|rule| rule.name()).collect(),
                warnings: warnings.clone(),
                ..report
            },
            Verdict::Failed(failure) => Self {
                outcome: "failed",
                line: Some(failure.line),
                expected: Some(failure.expected.clone()),
                came: Some(failure.came.clone()),
                packets: failure.packets.iter().map(ToString::to_string).collect(),
                ..report
            },
            Verdict::Skipped(reasons) => {
                Self { outcome: "skipped", reasons: reasons.clone(), ..report }
            }
        }
    }
}

/// A line for the file; behind a failure, one for each of the last packets.
impl fmt::Display for ScriptReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Foreign::new(&self.name))?;
        match (self.line, &self.expected, &self.came) {
            (Some(line), Some(expected), Some(came)) => {
                let [expected, came] = [expected, came].map(Foreign::new);
                write!(f, "FAILED line {line}: expected {expected}, came {came}")?;
            }
            _ if self.outcome == "skipped" => {
                write!(f, "skipped: {}", Foreign::new(self.reasons.join("; ")))?;
            }
            _ if self.rules.is_empty() => f.write_str("ok")?,
            _ => write!(f, "ok ({})", self.rules.join(", "))?,
        }
        self.packets.iter().try_for_each(|packet| write!(f, "\n    {}", Foreign::new(packet)))?;
        self.warnings
            .iter()
            .try_for_each(|warning| write!(f, "\n    warning: {}", Foreign::new(warning)))
    }
}

#[cfg(test)]
mod tests;
