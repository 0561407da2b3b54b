//! Why a command failed, and the exit code that says so.

use std::fmt::Display;
use std::process::ExitCode;

use whimbrel_io::{TunError, UnixError};

/// Why a command failed. The text names what was wrong, the limit or value, and the remedy.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not run, or ended before it was asked to: 1.
    Run(String),
    /// The command line means nothing: 2.
    Usage(String),
    /// It ran, and the answer, which is printed, is no: 3.
    Answer,
    /// A privilege or a device is missing: 4.
    Missing(String),
}

impl Failure {
    /// It could not run.
    pub(crate) fn run(error: impl Display) -> Self {
        Self::Run(error.to_string())
    }

    /// An option's value means nothing.
    pub(crate) fn usage(option: &str, error: impl Display) -> Self {
        Self::Usage(format!("{option}: {error}"))
    }

    /// Tells the user, and says with which code to exit.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Self::Run(text) => (text, 1),
            Self::Usage(text) => (format!("{text}\n\nFor more information, try '--help'."), 2),
            Self::Answer => return ExitCode::from(3),
            Self::Missing(text) => (text, 4),
        };
        eprintln!("error: {text}");
        ExitCode::from(code)
    }
}

impl From<TunError> for Failure {
    fn from(error: TunError) -> Self {
        if error.is_privilege_or_device() {
            Self::Missing(error.to_string())
        } else {
            Self::Run(error.to_string())
        }
    }
}

impl From<UnixError> for Failure {
    fn from(error: UnixError) -> Self {
        if error.is_privilege() {
            Self::Missing(error.to_string())
        } else {
            Self::Run(error.to_string())
        }
    }
}
