//! The file of `--results`: a cell's document a line, appended when it is measured.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use whimbrel_base::Foreign;
use whimbrel_io::text;

use super::foreign;
use crate::failure::Failure;

/// Cells of earlier runs, and the file to which others are appended.
pub(super) struct Results {
    known: BTreeMap<Foreign<String>, Value>,
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Results {
    /// Reads the file, if there is one, and opens it to append.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { known: BTreeMap::new(), file: None }) };
        let refused = |error: &dyn Display| {
            let text = format!("{}: {error}; use a file that `--results` wrote", text::path(path));
            Failure::usage("--results", text)
        };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| refused(&error))?,
        };
        // A run that was killed may have left the beginning of a line.
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        let mut known = BTreeMap::new();
        for (number, line) in (1..).zip(text[..whole].lines()) {
            let cell: Option<Value> = serde_json::from_str(line).ok();
            let name = cell.as_ref().and_then(|cell| foreign(&cell["name"]));
            let (name, cell) = name.zip(cell).ok_or_else(|| {
                refused(&format!("line {number} is no cell of `sim grid --full`"))
            })?;
            known.insert(name, cell);
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.and_then(|file| file.set_len(whole as u64).map(|()| file));
        let file = file.map_err(|error| refused(&error))?;
        Ok(Self { known, file: Some((path.to_owned(), Mutex::new(file))) })
    }

    /// The cell of this name, if an earlier run measured it.
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        self.known.get(&Foreign::new(name.to_owned()))
    }

    /// Appends a measured cell.
    pub(super) fn append(&self, cell: &Value) -> Result<(), Failure> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(format!("{cell}\n").as_bytes());
        written.map_err(|error| Failure::run(format!("{}: {error}", text::path(path))))
    }

    /// Path of the file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests;
