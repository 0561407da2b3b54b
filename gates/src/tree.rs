//! The text files of the repository, as the gates see them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// Every file that is tracked, or would be after `git add`: a gate must say the same on both sides
/// of it. Files that are not UTF-8 have nothing the gates could read.
#[derive(Default)]
pub(crate) struct Tree {
    names: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// The tree around the current directory, which must be the root of the repository.
    pub(crate) fn read() -> Result<Self, Failure> {
        let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listing = Command::new("git").args(arguments).output()?;
        if !listing.status.success() {
            return Err("`git ls-files` failed: run this inside the repository".into());
        }
        let listed = String::from_utf8(listing.stdout)?;
        let names: BTreeSet<_> = listed.split_terminator('\0').map(str::to_owned).collect();
        let texts = names.iter().filter_map(|name| Some((name.clone(), read_text(name)?)));
        Ok(Self { texts: texts.collect(), names })
    }

    /// The files whose name ends in `suffix`, with their texts, by name.
    pub(crate) fn files_ending(&self, suffix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(move |(name, _)| name.ends_with(suffix))
    }

    /// All files with their texts, by name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// True if `path` is a file of the repository, text or not, or a folder with files in it.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.names.contains(path) || self.names.iter().any(|name| name.starts_with(&folder))
    }

    #[cfg(test)]
    pub(crate) fn of(texts: &[(&str, &str)]) -> Self {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let names = texts.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { names, texts: texts.iter().map(owned).collect() }
    }
}

fn read_text(name: &str) -> Option<String> {
    let path = Path::new(name);
    // A link's target is tracked under its own name, or lies outside.
    if path.is_symlink() || !path.is_file() {
        return None;
    }
    std::fs::read_to_string(path).ok()
}
