//! The files below a folder, for tests that go through all of a kind.

use std::fs;
use std::path::{Path, PathBuf};

/// Those whose names end with this extension, in order.
pub(crate) fn below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|it| it == extension) => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    files
}
