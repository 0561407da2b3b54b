//! The rooms of the house, and that no arrow between crates points back.
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

    /// Whether it has no clock, no system call, no entropy, no `unsafe`.
    pub(crate) fn is_pure(&self) -> bool {
        room_of(&self.name).is_some() && !IMPURE.contains(&self.name.as_str())
    }

    /// Whether it may say `unsafe`.
    pub(crate) fn may_be_unsafe(&self) -> bool {
        self.name == UNSAFE
    }
}

/// Members that stand in no room, and dependencies on the same room or a later one.
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
    let Some(room) = room_of(&package.name) else {
        let message = format!("`{}` stands in no room", package.name);
        return vec![Finding::of_file(&package.manifest(), message, ADD_ROOM)];
    };
    let ours = package.dependencies.iter().filter_map(|name| Some((name, room_of(name)?)));
    let backward = ours.filter(|(_, theirs)| *theirs >= room);
    backward.map(|(name, _)| points_back(package, name)).collect()
}

fn points_back(package: &Package, dependency: &str) -> Finding {
    let message = format!(
        "`{}` may depend on rooms before its own only, and `{dependency}` is not in one",
        package.name
    );
    Finding::of_file(&package.manifest(), message, "move what both need into an earlier room")
}

fn room_of(name: &str) -> Option<usize> {
    ROOMS.iter().position(|room| room.contains(&name))
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

/// Each room may use those before it. Crates in one room do not know each other.
const ROOMS: [&[&str]; 10] = [
    &["whimbrel-wire"],
    &["whimbrel-base"],
    &["whimbrel-tcp", "whimbrel-udp"],
    &["whimbrel-stack"],
    &["whimbrel-posix", "whimbrel-link"],
    &["whimbrel-apps"],
    &["whimbrel-sim"],
    &["whimbrel-io"],
    &["whimbrel"],
    &["whimbrel-cli"],
];
/// The crates that may use clock, threads, files and the network.
const IMPURE: [&str; 3] = ["whimbrel-io", "whimbrel", "whimbrel-cli"];
/// The one crate of the workspace that may say `unsafe`.
const UNSAFE: &str = "whimbrel-io";
/// The targets whose root a crate-wide attribute must stand in.
const ROOT_KINDS: [&str; 6] = ["lib", "rlib", "cdylib", "staticlib", "proc-macro", "bin"];
const ADD_ROOM: &str = "give it one in ROOMS of gates/src/rooms.rs and in ARCHITECTURE.md";

#[cfg(test)]
mod tests;
