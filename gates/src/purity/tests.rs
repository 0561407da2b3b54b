use super::{judge_clippy_settings, judge_crates, judge_probe};
use crate::rooms::Package;
use crate::tree::Tree;

fn package(name: &str) -> Package {
    Package {
        name: name.to_owned(),
        folder: "crates/x".to_owned(),
        dependencies: Vec::new(),
        roots: vec!["crates/x/src/lib.rs".to_owned()],
    }
}

fn lax_roots(name: &str, text: &str) -> usize {
    judge_crates(&[package(name)], &Tree::of(&[("crates/x/src/lib.rs", text)])).len()
}

#[test]
fn a_root_without_forbid_is_found_except_in_io() {
    assert_eq!(lax_roots("whimbrel-tcp", "//! Doc.\n"), 1);
    assert_eq!(lax_roots("whimbrel-cli", "//! Doc.\n#![deny(unsafe_code)]\n"), 1);
    assert_eq!(lax_roots("whimbrel-io", "//! Doc.\n"), 0);
}

#[test]
fn a_forbid_in_a_comment_does_not_count() {
    assert_eq!(lax_roots("whimbrel-tcp", "//! Doc.\n// #![forbid(unsafe_code)]\n"), 1);
    assert_eq!(lax_roots("whimbrel-tcp", "//! Doc.\n#![forbid(unsafe_code)]\n"), 0);
}

#[test]
fn a_pure_crate_must_stand_in_the_probe_twice() {
    let tree = |manifest: &str, code: &str| {
        Tree::of(&[
            ("gates/wasm-probe/Cargo.toml", manifest),
            ("gates/wasm-probe/src/lib.rs", code),
        ])
    };
    let tcp = [package("whimbrel-tcp")];
    assert_eq!(judge_probe(&tcp, &tree("whimbrel-tcp = {}", "use whimbrel_tcp::A;")).len(), 0);
    assert_eq!(judge_probe(&tcp, &tree("whimbrel-tcp = {}", "use whimbrel_tcpx::A;")).len(), 1);
    assert_eq!(judge_probe(&tcp, &tree("", "")).len(), 2);
    assert_eq!(judge_probe(&[package("whimbrel-io")], &tree("", "")).len(), 0);
}

#[test]
fn a_pure_crate_has_no_clippy_settings_of_its_own() {
    let tree = Tree::of(&[("clippy.toml", "a = 1\n"), ("crates/x/clippy.toml", "a = 1\n")]);
    assert_eq!(judge_clippy_settings(&[package("whimbrel-tcp")], &tree).len(), 1);
    assert_eq!(judge_clippy_settings(&[package("whimbrel-io")], &tree).len(), 0);
}

#[test]
fn an_impure_crate_repeats_every_setting_but_the_lists() {
    let root = "a = 1\nb = 2\n# c\ndisallowed-methods = [\n    { path = \"d\" },\n]\n";
    let tree = Tree::of(&[("clippy.toml", root), ("crates/x/clippy.toml", "a = 1\n")]);
    let findings = judge_clippy_settings(&[package("whimbrel-io")], &tree);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.starts_with("`b = 2`"));
}
