//! Result of a script, for people and for programs.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use whimbrel_base::Foreign;

use super::ast::Direction;
use super::packet::{Mismatch, Rules};

/// Result of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All matched.
    Passed {
        /// Differences that semantic mode accepted.
        rules: Rules,
        /// Warnings: packets after the last line, output of snippets.
        warnings: Vec<String>,
    },
    /// The first difference.
    Failed(Failure),
    /// The script needs something that this runner or the host lacks: a sentence for each.
    Skipped(Vec<String>),
}

/// The first difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Line (from 1).
    pub line: u32,
    /// Expected by the script.
    pub expected: String,
    /// Found instead.
    pub came: String,
    /// The last packets before it, at most [`LOGGED`].
    pub packets: Vec<LoggedPacket>,
}

/// A packet that matched, in the notation of scripts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedPacket {
    /// Time since the script's beginning.
    pub at: Duration,
    /// Direction: in or out.
    pub direction: Direction,
    /// Text with the script's numbers.
    pub text: String,
}

/// Number of packets that a failure shows.
pub const LOGGED: usize = 10;

/// A line that failed, before the earlier packets are added.
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

    /// Fault of a packet's field.
    pub(super) fn of(line: u32, mismatch: Mismatch) -> Self {
        let Mismatch { field, expected, came } = mismatch;
        Self { line, expected: alloc::format!("{field} {expected}"), came }
    }
}

impl Verdict {
    /// True if all matched.
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

/// Result of one file in full, for a program to write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScriptReport {
    /// Name of the file, as given.
    pub name: String,
    /// `ok`, `failed`, or `skipped`.
    pub outcome: &'static str,
    /// Names of the differences that semantic mode accepted.
    pub rules: Vec<&'static str>,
    /// Line that failed.
    pub line: Option<u32>,
    /// Expected by the script, if anything.
    pub expected: Option<String>,
    /// Found instead, if anything.
    pub came: Option<String>,
    /// The last packets before it, as lines of a script.
    pub packets: Vec<String>,
    /// Reasons for which it was skipped.
    pub reasons: Vec<String>,
    /// Warnings of a script that passed.
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

/// A line for the file; after a failure, one for each of the last packets.
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
