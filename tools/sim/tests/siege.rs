//! Plays scripts that the fuzzer found: each reached something that no other did, or stands for a
//! fault that was mended.
//!
//! `siege=FILE cargo test -p whimbrel-sim --test siege` plays one file, for example one that a
//! fuzzer left.

use std::path::PathBuf;

use whimbrel_sim::siege;

#[test]
#[allow(clippy::disallowed_methods, reason = "the corpus is files")]
fn corpus_of_sieges_is_outlived() {
    let files = match std::env::var_os("siege") {
        Some(file) => vec![PathBuf::from(file)],
        None => corpus(),
    };
    assert!(!files.is_empty(), "no script to play");
    for file in &files {
        let script = std::fs::read(file).expect("a script");
        println!("{}", file.display());
        if let Err(fault) = siege::play(&script) {
            panic!("{}: {fault}", file.display());
        }
    }
}

/// Every file of the corpus, in a fixed order.
#[allow(clippy::disallowed_methods, reason = "the corpus is files")]
fn corpus() -> Vec<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"));
    let entries = std::fs::read_dir(folder).expect("the corpus");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort_unstable();
    files
}
