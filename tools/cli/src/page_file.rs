//! The file that `--html` names: opened before a run begins, written when its document is there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use serde_json::Value;
use whimbrel_io::text;

use crate::failure::Failure;
use crate::{html, typed};

/// The option, as it was typed.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct PageOption {
    /// Write the result with charts to this file as well: one HTML page that needs no network and no
    /// other file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// A page to write. A file created for it and never written is removed.
#[derive(Debug)]
pub(crate) struct PageFile {
    file: File,
    path: PathBuf,
    is_unwritten: bool,
}

impl PageOption {
    /// Opens the file, if requested: a run does not begin if its page cannot be written. The file keeps
    /// its contents until the page is written.
    pub(crate) fn open(&self) -> Result<Option<PageFile>, Failure> {
        let Some(path) = &self.html else { return Ok(None) };
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| refused(path, &error))?;
        Ok(Some(PageFile { file, path: path.clone(), is_unwritten: is_new }))
    }
}

impl PageFile {
    /// Writes the page of this document.
    pub(crate) fn write(mut self, document: &Value) -> Result<(), Failure> {
        let mut document = document.clone();
        if let Some(map) = document.as_object_mut() {
            map.entry("command").or_insert_with(|| typed::command().into());
        }
        let page = html::page(&document);
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(page.as_bytes()));
        self.is_unwritten &= written.is_err();
        written.map_err(|error| refused(&self.path, &error))
    }

    /// A path as this page links to it.
    pub(crate) fn link_to(&self, path: &str) -> String {
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (own, other) = (whole(&self.path), whole(Path::new(path)));
        relative(own.parent().unwrap_or(Path::new("/")), &other).display().to_string()
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        if self.is_unwritten {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// The way from a folder to a path, both absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from.iter().skip(common).map(|_| Component::ParentDir);
    up.chain(to.into_iter().skip(common)).collect()
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("--html {}: {error}; use a file that can be written", text::path(path)))
}

#[cfg(test)]
mod tests;
