//! A file that a test writes and has read, where the test's process can hold it until it is dropped.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A file of the test's own, removed at the end.
pub(crate) struct TestFile(PathBuf);

impl TestFile {
    pub(crate) fn new(name: &str, contents: impl AsRef<[u8]>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("whim-{}-{number}-{name}", process::id()));
        fs::write(&path, contents).expect("a temporary file can be written");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Its path as typed.
    pub(crate) fn name(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
