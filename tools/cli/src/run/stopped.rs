//! Failures of the processes inside, which they report to `run`.

use std::io;

/// Reason why the set-up stopped: the text for the user, and the exit code.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) text: String,
    pub(super) code: u8,
}

impl Stopped {
    /// Something that a program cannot do without, `doing` this.
    pub(super) fn at(doing: &str) -> impl Fn(io::Error) -> Self {
        let doing = doing.to_owned();
        move |error| Self { text: format!("cannot {doing}: {error}"), code: 1 }
    }
}

/// Exit code where a privilege is missing.
pub(super) const PRIVILEGE: u8 = 4;
