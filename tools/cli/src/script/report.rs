//! Results of the scripts, for people and for programs.

use whimbrel_io::text;
use whimbrel_script::report::{ScriptReport, Verdict};

use super::json::Document;
use super::plan::ScriptPlan;
use super::seconds;
use super::work::{Done, ScriptCounts};
use crate::failure::Failure;
use crate::output;

pub(super) enum Output {
    /// A line for each, as it comes; only the failures if it is to be quiet.
    Lines { quiet: bool },
    /// One document at the end.
    Json(Document),
}

impl Output {
    pub(super) fn new(plan: &ScriptPlan) -> Self {
        match plan.json {
            true => Self::Json(Document::new(plan)),
            false => Self::Lines { quiet: plan.quiet },
        }
    }

    /// Adds the result of a file.
    pub(super) fn add(&mut self, done: Done) -> Result<(), Failure> {
        match self {
            Self::Json(document) => document.add(&done),
            Self::Lines { quiet } => {
                if !*quiet || matches!(done.verdict, Verdict::Failed(_)) {
                    let report =
                        ScriptReport::new(&text::path(&done.path).to_string(), &done.verdict);
                    print(format_args!("{report}"))?;
                }
            }
        }
        Ok(())
    }

    /// Prints the rest.
    pub(super) fn finish(self, counts: &ScriptCounts) -> Result<(), Failure> {
        match self {
            Self::Json(document) => print(format_args!("{}", document.finish(counts))),
            Self::Lines { .. } => {
                let ScriptCounts { passed, by_rules, failed, skipped, .. } = counts;
                print(format_args!(
                    "{passed} passed, {by_rules} by semantic rules, {failed} failed, \
                     {skipped} skipped in {:.3} s",
                    seconds(counts.seconds)
                ))
            }
        }
    }
}

fn print(line: std::fmt::Arguments<'_>) -> Result<(), Failure> {
    output::print(&format!("{line}\n"))
}
