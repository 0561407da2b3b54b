//! That what promises to be pure keeps the means to prove it: the `forbid`, the probe, the lists.

use crate::finding::Finding;
use crate::rooms::Package;
use crate::tree::Tree;

/// Crate roots that do not forbid `unsafe`.
pub(crate) fn judge_crates(packages: &[Package], tree: &Tree) -> Vec<Finding> {
    let safe = packages.iter().filter(|package| !package.may_be_unsafe());
    let roots = safe.flat_map(|package| &package.roots);
    roots
        .filter(|root| !tree.text(root).is_some_and(forbids_unsafe))
        .map(|root| lax(root))
        .collect()
}

/// Pure crates that the WebAssembly probe does not link.
pub(crate) fn judge_probe(packages: &[Package], tree: &Tree) -> Vec<Finding> {
    let pure = packages.iter().filter(|package| package.is_pure());
    pure.flat_map(|package| judge_probed(&package.name, tree)).collect()
}

/// A `clippy.toml` where none may be, or one that lost a setting of the root's.
///
/// Clippy reads the nearest file and no other, so a crate's own file replaces the root's: the
/// lists of disallowed methods with it, which is why an impure crate has one.
pub(crate) fn judge_clippy_settings(packages: &[Package], tree: &Tree) -> Vec<Finding> {
    let root = tree.text("clippy.toml").unwrap_or_default();
    packages.iter().flat_map(|package| judge_settings(package, root, tree)).collect()
}

fn forbids_unsafe(text: &str) -> bool {
    let is_forbid = |attribute: &syn::Attribute| {
        attribute.path().is_ident("forbid")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("unsafe_code"))
    };
    syn::parse_file(text).is_ok_and(|file| file.attrs.iter().any(is_forbid))
}

fn lax(root: &str) -> Finding {
    let message = "every crate but `io` forbids `unsafe`, this root does not".to_owned();
    Finding::of_file(root, message, "write `#![forbid(unsafe_code)]` below the `//!` lines")
}

fn judge_probed(package: &str, tree: &Tree) -> Vec<Finding> {
    let in_code = package.replace('-', "_");
    let mut findings = Vec::new();
    for (file, name) in [(PROBE_MANIFEST, package), (PROBE, &in_code)] {
        if !tree.text(file).is_some_and(|text| names(text, name)) {
            let message = format!("the probe links every pure crate, `{package}` is missing");
            findings.push(Finding::of_file(file, message, EXTEND_PROBE));
        }
    }
    findings
}

/// True if a word of `text` is `name`.
fn names(text: &str, name: &str) -> bool {
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
    text.split(is_separator).any(|word| word == name)
}

fn judge_settings(package: &Package, root: &str, tree: &Tree) -> Vec<Finding> {
    let file = format!("{}/clippy.toml", package.folder);
    let Some(own) = tree.text(&file) else { return Vec::new() };
    if package.is_pure() {
        let message = "a pure crate obeys the root's clippy.toml, this file hides it".to_owned();
        return vec![Finding::of_file(&file, message, "remove it")];
    }
    let lost = scalar_settings(root).filter(|setting| !own.lines().any(|line| line == *setting));
    lost.map(|setting| lost_setting(&file, setting)).collect()
}

fn lost_setting(file: &str, setting: &str) -> Finding {
    let message = format!("`{setting}` of the root's clippy.toml is missing, and not inherited");
    Finding::of_file(file, message, "repeat the line here")
}

/// The settings of one line each: all but the lists of what is disallowed.
fn scalar_settings(text: &str) -> impl Iterator<Item = &str> {
    let is_setting = |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase());
    text.lines().filter(is_setting).filter(|line| !line.ends_with('['))
}

const PROBE: &str = "gates/wasm-probe/src/lib.rs";
const PROBE_MANIFEST: &str = "gates/wasm-probe/Cargo.toml";
const EXTEND_PROBE: &str = "add the dependency, and an exported function that calls into it";

#[cfg(test)]
mod tests;
