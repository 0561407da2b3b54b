//! The rooms of the house, and that no crate uses one that it has no arrow to.
//!
//! Development dependencies are free: a test may look into any room.

use std::process::Command;

use serde_json::Value;

use crate::Failure;
use crate::finding::Finding;

/// One package as cargo sees it.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// The name in its manifest.
    pub(crate) name: String,
    /// Its folder, relative to the root of the repository.
    pub(crate) folder: String,
    /// The packages it depends on, for building as well as for running.
    pub(crate) dependencies: Vec<String>,
    /// The roots of its libraries and binaries, relative to the root of the repository.
    pub(crate) roots: Vec<String>,
}

impl Package {
    /// Its manifest, relative to the root of the repository.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// True if it has no clock, no system call, no entropy, no `unsafe`.
    pub(crate) fn is_pure(&self) -> bool {
        has_room(&self.name) && !IMPURE.contains(&self.name.as_str())
    }

    /// True if it may say `unsafe`.
    pub(crate) fn may_be_unsafe(&self) -> bool {
        self.name == UNSAFE
    }
}

/// Members that stand in no room, and dependencies on rooms that no arrow leads to.
pub(crate) fn judge(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(judge_package).collect()
}

/// The members of the workspace of `manifest`.
pub(crate) fn read_packages(manifest: &str) -> Result<Vec<Package>, Failure> {
    let options = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", manifest];
    let output = Command::new("cargo").args(options).output()?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` failed on {manifest}").into());
    }
    parse_metadata(&String::from_utf8(output.stdout)?)
}

fn judge_package(package: &Package) -> Vec<Finding> {
    if !has_room(&package.name) {
        let message = format!("`{}` stands in no room", package.name);
        return vec![Finding::of_file(&package.manifest(), message, ADD_ROOM)];
    }
    let ours = package.dependencies.iter().filter(|name| has_room(name));
    let strange = ours.filter(|name| !leads_to(&package.name, name));
    strange.map(|name| has_no_arrow(package, name)).collect()
}

fn has_no_arrow(package: &Package, dependency: &str) -> Finding {
    let message = format!("no arrow of the rooms leads from `{}` to `{dependency}`", package.name);
    Finding::of_file(&package.manifest(), message, "move what both need into a room that both use")
}

fn has_room(name: &str) -> bool {
    ROOMS.iter().any(|(room, _)| *room == name)
}

/// True if the room `from` may use the room `to`.
fn leads_to(from: &str, to: &str) -> bool {
    let (_, used) = ROOMS.iter().find(|(room, _)| *room == from).unwrap_or(&("", &[]));
    used.iter().any(|room| *room == to || leads_to(room, to))
}

fn parse_metadata(text: &str) -> Result<Vec<Package>, Failure> {
    let metadata: Value = serde_json::from_str(text)?;
    let root = string(&metadata["workspace_root"]);
    Ok(values(&metadata["packages"]).map(|package| parse_package(package, root)).collect())
}

fn parse_package(package: &Value, root: &str) -> Package {
    let is_normal = |dependency: &&Value| dependency["kind"] != "dev";
    let is_root =
        |target: &&Value| values(&target["kind"]).any(|kind| ROOT_KINDS.contains(&string(kind)));
    let relative = |path: &Value| {
        let path = string(path);
        path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned()
    };
    let manifest = relative(&package["manifest_path"]);
    let dependencies = values(&package["dependencies"]).filter(is_normal);
    let roots = values(&package["targets"]).filter(is_root);
    Package {
        name: string(&package["name"]).to_owned(),
        folder: manifest.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned(),
        dependencies: dependencies.map(|one| string(&one["name"]).to_owned()).collect(),
        roots: roots.map(|target| relative(&target["src_path"])).collect(),
    }
}

fn values(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Each room, and those that it uses: it may use what these use, too. A room stands behind those that it names.
const ROOMS: [(&str, &[&str]); 17] = [
    ("whimbrel-wire", &[]),
    ("whimbrel-base", &["whimbrel-wire"]),
    ("whimbrel-recovery", &["whimbrel-base"]),
    ("whimbrel-tcp", &["whimbrel-recovery"]),
    ("whimbrel-udp", &["whimbrel-base"]),
    ("whimbrel-stack", &["whimbrel-tcp", "whimbrel-udp"]),
    ("whimbrel-link", &["whimbrel-stack"]),
    ("whimbrel-io", &["whimbrel-link"]),
    ("whimbrel", &["whimbrel-io"]),
    // What runs and tests a program's part.
    ("whimbrel-posix", &["whimbrel-stack"]),
    ("whimbrel-apps", &["whimbrel-stack"]),
    ("whimbrel-sim", &["whimbrel-apps", "whimbrel-link"]),
    ("whimbrel-explain", &["whimbrel-link"]),
    ("whimbrel-script", &["whimbrel-posix", "whimbrel-link"]),
    ("whimbrel-lab", &["whimbrel-sim", "whimbrel-script"]),
    ("whimbrel-kernel", &["whimbrel-io", "whimbrel-script"]),
    ("whimbrel-cli", &["whimbrel", "whimbrel-explain", "whimbrel-lab", "whimbrel-kernel"]),
];
/// The crates that may use clock, threads, files and the network.
const IMPURE: [&str; 4] = ["whimbrel-io", "whimbrel", "whimbrel-kernel", "whimbrel-cli"];
/// The one crate of the workspace that may say `unsafe`.
const UNSAFE: &str = "whimbrel-io";
/// The targets whose root a crate-wide attribute must stand in.
const ROOT_KINDS: [&str; 6] = ["lib", "rlib", "cdylib", "staticlib", "proc-macro", "bin"];
const ADD_ROOM: &str = "give it one in ROOMS of gates/src/rooms.rs and in ARCHITECTURE.md";

#[cfg(test)]
mod tests;
