//! Snippets and shell lines of a script.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use whimbrel_posix::TcpInfo;

use super::super::ast::{Action, Script, Shell, Snippet};
use super::super::host::{Administration, ScriptHost, SetError};
use super::super::report::Fault;
use super::super::setup::NonFatal;
use super::super::shell::{self, ShellAct};
use super::super::snippet::{SnippetError, evaluate};
use super::{Played, Run, Stop};

impl<H: ScriptHost> Run<'_, H> {
    /// Evaluates a snippet with `TCP_INFO` of the socket under test.
    pub(super) fn snippet(&mut self, snippet: &Snippet) -> Played {
        let line = snippet.line;
        let info = match self.calls.under_test {
            None => TcpInfo::default(),
            Some(fd) => self
                .host
                .tcp_info(fd)
                .map_err(|errno| Fault::new(line, "an answer to TCP_INFO", errno))?,
        };
        let printed = self.variables.printed().len();
        let evaluated = evaluate(snippet, &mut self.variables, &info);
        let printed = self.variables.printed().get(printed..).unwrap_or_default();
        self.warnings.extend(printed.iter().map(|text| format!("line {line} prints: {text}")));
        let fault = match evaluated {
            Ok(()) => return Ok(()),
            Err(SnippetError::Unsupported(what)) => {
                return Err(Stop::Unsupported(format!("line {line}: {what} in a snippet")));
            }
            Err(SnippetError::Assertion { line, text, message }) => {
                let came = message.unwrap_or_else(|| "something else".into());
                Fault::new(line, format!("assert {text}"), came)
            }
            Err(SnippetError::Raised(what)) => Fault::new(line, "a value", what),
        };
        if !self.setup.non_fatal.contains(&NonFatal::Snippets) {
            return Err(fault.into());
        }
        let Fault { line, expected, came } = fault;
        self.warnings.push(format!("line {line}: expected {expected}, came {came}"));
        Ok(())
    }

    /// Performs shell lines.
    pub(super) fn shell(&mut self, shell: &Shell) -> Played {
        let line = shell.line;
        let unsupported = |why| Stop::Unsupported(format!("line {line}: {why}"));
        for act in shell::read(&shell.text).map_err(|error| unsupported(format!("{error}")))? {
            let outcome = match &act {
                ShellAct::NoEffect => Ok(()),
                ShellAct::Set { name, value } => self.host.set(name, value),
                ShellAct::Administer(what) => self.host.administer(what),
                ShellAct::Count { filter, expected } => match self.host.count_sockets(filter) {
                    Ok(count) if !expected.is_met(count) => {
                        let expected = format!("sockets that match: {expected}");
                        return Err(Fault::new(line, expected, count).into());
                    }
                    counted => counted.map(|_| ()),
                },
            };
            match outcome {
                Ok(()) => {}
                Err(SetError::Elsewhere(system)) => {
                    let what = act_in_words(&act);
                    let passed =
                        format!("line {line}: {what} is passed over: only {system} has it");
                    self.warnings.push(passed);
                }
                Err(error) => return Err(unsupported(refusal(&act, error))),
            }
        }
        self.collect().map(|_| ())
    }
}

/// An act in words.
fn act_in_words(act: &ShellAct) -> String {
    match act {
        ShellAct::Set { name, value } => format!("{name}={value}"),
        ShellAct::Administer(Administration::PurgeHostCache) => "purging the host cache".into(),
        ShellAct::Administer(Administration::PurgeCaches) => "forgetting paths".into(),
        ShellAct::Administer(what) => format!("{what:?}"),
        ShellAct::Count { filter, .. } => format!("{filter:?}"),
        ShellAct::NoEffect => String::new(),
    }
}

fn refusal(act: &ShellAct, error: SetError) -> String {
    let what = act_in_words(act);
    match error {
        SetError::Unknown => format!("the host does not know {what}"),
        SetError::Refused(why) => format!("the host refuses {what}: {why}"),
        SetError::Elsewhere(system) => format!("only {system} has {what}"),
    }
}

/// Lines of `script` that are not supported here, a sentence for each.
pub(super) fn unsupported(script: &Script) -> Vec<String> {
    let shell = |shell: &Shell| {
        shell::read(&shell.text).err().map(|error| (shell.line, format!("{error}")))
    };
    let steps = script.steps.iter().filter_map(|step| match &step.action {
        Action::Unsupported(reason) => Some((step.line, reason.clone())),
        Action::Snippet(snippet) => {
            let why = snippet.statements.as_ref().err()?;
            Some((snippet.line, format!("{why} in a snippet")))
        }
        Action::Shell(lines) => shell(lines),
        Action::Packet(_) | Action::Call(_) => None,
    });
    let head = script.setup.as_ref().and_then(shell);
    let foot = script.cleanup.as_ref().and_then(shell);
    let all = head.into_iter().chain(steps).chain(foot);
    all.map(|(line, reason)| format!("line {line}: {reason}")).collect()
}
