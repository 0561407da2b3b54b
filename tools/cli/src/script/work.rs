//! One script, from its text to its result.

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use whimbrel_script::dialect::Dialect;
use whimbrel_script::host::ScriptHost;
use whimbrel_script::packet::Mode;
use whimbrel_script::parse::{ParseError, parse};
use whimbrel_script::report::{self, Verdict};
use whimbrel_script::run::{self, Settings};
use whimbrel_script::setup::Setup;
use whimbrel_script::shard_host::Recording;

use super::files::File;
use super::plan::ScriptPlan;
use super::{ScriptTarget, capture, host};
use crate::failure::Failure;

/// The result of a file.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) path: PathBuf,
    /// Dialect in which it was read.
    pub(super) dialect: Dialect,
    pub(super) verdict: Verdict,
    /// Its duration, by the wall clock.
    pub(super) took: Duration,
    /// Why its capture could not be written, if it could not.
    pub(super) written: Result<(), Failure>,
}

/// Number of scripts with each verdict.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ScriptCounts {
    pub(super) passed: usize,
    /// Passed, but not to the letter.
    pub(super) by_rules: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// Duration of all.
    pub(super) seconds: Duration,
}

impl ScriptCounts {
    /// Number of scripts.
    pub(super) const fn all(&self) -> usize {
        self.passed + self.by_rules + self.failed + self.skipped
    }

    pub(super) fn count(&mut self, done: &Done) {
        *match &done.verdict {
            Verdict::Passed { rules, .. } if rules.is_empty() => &mut self.passed,
            Verdict::Passed { .. } => &mut self.by_rules,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::Skipped(_) => &mut self.skipped,
        } += 1;
    }
}

/// Runs the script of a file, with the requested repetitions.
pub(super) fn run_file(plan: &ScriptPlan, file: &File) -> Done {
    let begun = Instant::now();
    let recording = Recording::default();
    let settings = plan.settings(&file.text);
    // One script that finds a way to make the stack panic is that script's failure.
    let verdict = panic::catch_unwind(AssertUnwindSafe(|| match plan.against {
        ScriptTarget::Shard => match other_profiles(&file.text, plan.rules.profile.name) {
            Some(reason) => Verdict::Skipped(vec![reason]),
            None => {
                judge(plan, &settings, &file.text, |setup| host::shard(plan, setup, &recording))
            }
        },
        ScriptTarget::Kernel => judge(plan, &settings, &file.text, host::kernel),
    }));
    let verdict = verdict.unwrap_or_else(|panic| panicked(&*panic));
    let written = capture::write(plan, &file.path, &recording.borrow());
    let (path, dialect) = (file.path.clone(), settings.dialect);
    Done { path, dialect, verdict, took: begun.elapsed(), written }
}

/// Why a script is not for this profile, if it names those that it is for: `// Profiles: linux. Why`.
fn other_profiles(text: &str, profile: &str) -> Option<String> {
    let list = text.lines().find_map(|line| line.strip_prefix("// Profiles: "))?;
    let list = list.split('.').next().unwrap_or_default();
    let is_named = list.split(',').any(|name| name.trim() == profile);
    (!is_named).then(|| format!("it is for --profile {}", list.replace(", ", " or ")))
}

fn judge<H: ScriptHost>(
    plan: &ScriptPlan,
    settings: &Settings,
    text: &str,
    make_host: impl Fn(&Setup) -> Result<H, String>,
) -> Verdict {
    let script = match parse(text, &plan.defines(settings.dialect)) {
        Ok(script) => script,
        Err(error) => return unreadable(error),
    };
    if settings.mode == Mode::Semantic {
        let other = parse(text, &plan.defines(other(settings.dialect)));
        // Without conditionals both are the same; a branch that cannot be read is none.
        let other = other.ok().filter(|other| *other != script);
        let branches: Vec<_> = std::iter::once(script).chain(other).collect();
        return run::run_semantic(&branches, settings, make_host);
    }
    let setup = match Setup::of(&script, settings.dialect) {
        Ok(setup) => setup,
        Err(reasons) => return Verdict::Skipped(reasons),
    };
    match make_host(&setup) {
        Ok(mut host) => run::run(&script, settings, &mut host),
        Err(reason) => Verdict::Skipped(vec![reason]),
    }
}

/// The dialect in which each `#ifdef` has its other branch.
const fn other(dialect: Dialect) -> Dialect {
    match dialect {
        Dialect::FreeBsd => Dialect::Linux,
        Dialect::Linux | Dialect::Whimbrel => Dialect::FreeBsd,
    }
}

fn unreadable(error: ParseError) -> Verdict {
    let ParseError { line, column, expected, found } = error;
    failed(line, format!("{expected} at column {column}"), found)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Verdict {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    failed(0, "no panic".into(), format!("a panic: {text}"))
}

fn failed(line: u32, expected: String, came: String) -> Verdict {
    Verdict::Failed(report::Failure { line, expected, came, packets: Vec::new() })
}
