//! Which files are scripts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use whimbrel_io::text;

use crate::failure::Failure;

/// A script's path, as it was reached, and its text.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The files that were named, and those below the folders that were, each folder's in order.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let info = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if !info.is_dir() {
            files.push(read(path.clone())?);
            continue;
        }
        let before = files.len();
        walk(path, &mut files)?;
        if files.len() == before {
            return Err(Failure::Run(format!(
                "{}: the folder has no .pkt file; use another folder, or the files themselves",
                text::path(path)
            )));
        }
    }
    Ok(files)
}

/// Folders behind symbolic links are left out: they could lead back.
fn walk(folder: &Path, files: &mut Vec<File>) -> Result<(), Failure> {
    let refused = |error: io::Error| unreadable(folder, &error);
    let entries = fs::read_dir(folder).map_err(refused)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(refused)?.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(read(path)?);
        }
    }
    Ok(())
}

fn read(path: PathBuf) -> Result<File, Failure> {
    match fs::read(&path) {
        // Invalid UTF-8 is in a comment, or the parser reports its place.
        Ok(bytes) => Ok(File { text: String::from_utf8_lossy(&bytes).into_owned(), path }),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let path = text::path(path);
    Failure::Run(format!("cannot read {path}: {error}; use a script (.pkt), or a folder of them"))
}

#[cfg(test)]
mod tests;
