//! Compares a call's result and the data it filled in with the script. `...` matches all.

mod filled;

use alloc::format;
use alloc::string::{String, ToString};

use whimbrel_posix::{Errno, FileFlags};

use super::ast::{Arg, CallStep};
use super::call::Returned;
use super::names::Learned;
use super::value::number;

/// A difference between script and host.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: expected {expected}, came {came}")]
pub struct Mismatch {
    /// The part that differs, for people: `the result`, or the position of an argument.
    pub what: String,
    /// Value in the script.
    pub expected: String,
    /// Value of the host.
    pub came: String,
}

impl Mismatch {
    fn new(what: &str, expected: impl ToString, came: impl ToString) -> Self {
        Self { what: what.to_string(), expected: expected.to_string(), came: came.to_string() }
    }
}

/// Compares a call with its step; returns the names it taught.
pub fn judge_call(step: &CallStep, returned: &Returned) -> Result<Learned, Mismatch> {
    let learned = judge_value(step, &returned.value)?;
    if returned.value.is_ok() {
        filled::judge(step, returned)?;
    }
    Ok(learned)
}

fn judge_value(step: &CallStep, came: &Result<i64, Errno>) -> Result<Learned, Mismatch> {
    let mismatch = || Mismatch::new("the result", describe_expected(step), describe_came(came));
    let expected = match &step.expected.value {
        Arg::Ellipsis => None,
        value => Some(
            number(value)
                .map_err(|error| Mismatch::new("the result", error, describe_came(came)))?,
        ),
    };
    match (expected, came) {
        (None, Err(_)) => Ok(Learned::Nothing),
        (Some(-1), Err(errno)) => match step.expected.errno.as_deref() {
            Some(name) if Errno::by_name(name) != Some(*errno) => Err(mismatch()),
            _ => Ok(Learned::Nothing),
        },
        (Some(_), Err(_)) | (Some(..0), Ok(_)) => Err(mismatch()),
        (expected, Ok(value)) if opens(step) => learn_opened(expected, *value).ok_or_else(mismatch),
        (None, Ok(_)) => Ok(learn_closed(step)),
        (Some(expected), Ok(value)) if expected == *value => Ok(learn_closed(step)),
        // Numbers of flags differ between systems, their names do not.
        (Some(_), Ok(value)) if noted_flags(step) == Some(*value) => Ok(Learned::Nothing),
        (Some(_), Ok(_)) => Err(mismatch()),
    }
}

fn opens(step: &CallStep) -> bool {
    const OPENING: &[&str] = &["socket", "accept", "accept4", "epoll_create", "epoll_create1"];
    OPENING.contains(&step.name.as_str())
}

/// The script chooses a descriptor's number, unless it writes `...`.
fn learn_opened(expected: Option<i64>, came: i64) -> Option<Learned> {
    let host = i32::try_from(came).ok().filter(|fd| *fd >= 0)?;
    let script = expected.map_or(Ok(host), i32::try_from).ok()?;
    Some(Learned::Opened { script, host })
}

fn learn_closed(step: &CallStep) -> Learned {
    match step.args.first() {
        Some(Arg::Int(fd)) if step.name == "close" => {
            i32::try_from(*fd).map_or(Learned::Nothing, |script| Learned::Closed { script })
        }
        _ => Learned::Nothing,
    }
}

/// The flags of `fcntl(…, F_GETFL) = 0x2 (flags O_RDWR)`.
fn noted_flags(step: &CallStep) -> Option<i64> {
    if step.name != "fcntl" {
        return None;
    }
    let note = step.expected.note.as_deref()?.strip_prefix("flags")?;
    let flags = note.split('|').try_fold(FileFlags::NONE, |flags, name| {
        FileFlags::by_name(name.trim()).map(|flag| flags | flag)
    });
    flags.map(|flags| i64::from(flags.bits()))
}

fn describe_expected(step: &CallStep) -> String {
    let value = super::value::describe(&step.expected.value);
    match &step.expected.errno {
        Some(errno) => format!("{value} {errno}"),
        None => value,
    }
}

fn describe_came(came: &Result<i64, Errno>) -> String {
    match came {
        Ok(value) => value.to_string(),
        Err(errno) => format!("-1 {errno}"),
    }
}

#[cfg(test)]
mod tests;
