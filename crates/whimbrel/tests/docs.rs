//! Required sections of the documentation, read from the source.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The source files below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

/// Lines with a public asynchronous function whose documentation has no section on cancellation.
fn without_cancel_safety(source: &str) -> Vec<&str> {
    let (mut missing, mut has_section) = (Vec::new(), false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("///") {
            has_section |= line == "/// # Cancel safety";
        } else if !line.starts_with("#[") {
            if line.starts_with("pub async fn ") && !has_section {
                missing.push(line);
            }
            has_section = false;
        }
    }
    missing
}

#[test]
fn each_async_function_documents_its_cancel_safety() {
    let mut functions = 0;
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let source = fs::read_to_string(&path).unwrap();
        functions += source.matches("pub async fn ").count();
        let missing = without_cancel_safety(&source);
        assert!(missing.is_empty(), "{}: {missing:#?}", path.display());
    }
    assert!(functions > 50, "{functions} functions were found");
    let spoilt =
        "/// Waits.\npub async fn one() {}\n/// # Cancel safety\n#[inline]\npub async fn two() {}";
    assert_eq!(without_cancel_safety(spoilt), ["pub async fn one() {}"]);
}
