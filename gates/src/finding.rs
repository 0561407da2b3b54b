//! One thing that a gate objects to.

use std::fmt;

/// A fault: its place, its description, and its remedy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the root of the repository.
    pub(crate) file: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The limit and the value.
    pub(crate) message: String,
    /// The remedy.
    pub(crate) remedy: &'static str,
}

impl Finding {
    /// A finding at the head of `file`.
    pub(crate) fn of_file(file: &str, message: String, remedy: &'static str) -> Self {
        Self::at(file, 1, message, remedy)
    }

    /// A finding at one line of `file`.
    pub(crate) fn at(file: &str, line: usize, message: String, remedy: &'static str) -> Self {
        Self { file: file.to_owned(), line, message, remedy }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.file, self.line, self.message, self.remedy)
    }
}
