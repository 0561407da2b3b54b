//! Calls of a run: made at their time, and over at theirs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::ast::{Action, CallStep, Script, Shell, Snippet};
use super::super::host::ScriptHost;
use super::super::setup::Setup;
use super::clock::Moment;
use super::{Played, Run, Stop};

/// The calls under way.
#[derive(Debug, Default)]
pub(super) struct Calls;

impl Calls {
    pub(super) fn new(_setup: &Setup) -> Self {
        Self
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        None
    }

    pub(super) fn judge_deadlines(&self, _now: Duration) -> Played {
        Ok(())
    }
}

impl<H: ScriptHost> Run<'_, H> {
    pub(super) fn call(&mut self, line: u32, call: &CallStep, _moment: Moment) -> Played {
        Err(Stop::Unsupported(format!("line {line}: {}", call.name)))
    }

    pub(super) fn snippet(&mut self, snippet: &Snippet) -> Played {
        Err(Stop::Unsupported(format!("line {}: a snippet", snippet.line)))
    }

    pub(super) fn shell(&mut self, shell: &Shell) -> Played {
        Err(Stop::Unsupported(format!("line {}: a shell line", shell.line)))
    }

    pub(super) fn collect_calls(&mut self) -> Result<bool, Stop> {
        Ok(false)
    }
}

/// What `script` asks for and nobody here can do.
pub(super) fn unsupported(script: &Script) -> Vec<String> {
    let reason = |action: &Action| match action {
        Action::Unsupported(reason) => Some(reason.clone()),
        Action::Snippet(snippet) => snippet.statements.as_ref().err().cloned(),
        _ => None,
    };
    let line = |reason, line| format!("line {line}: {reason}");
    script.steps.iter().filter_map(|it| reason(&it.action).map(|why| line(why, it.line))).collect()
}
