//! `--pcap-dir DIR`: the packets of each script, in a separate file.

use std::fs;
use std::path::{Component, Path, PathBuf};

use whimbrel_io::text;

use super::plan::ScriptPlan;
use crate::failure::Failure;

/// Writes the capture of the script at `path`, if captures are wanted. A script that failed before it
/// had a host has none.
pub(super) fn write(plan: &ScriptPlan, path: &Path, capture: &[u8]) -> Result<(), Failure> {
    let Some(folder) = plan.captures.as_ref().filter(|_| !capture.is_empty()) else {
        return Ok(());
    };
    let file = place(folder, path);
    let parent = file.parent().unwrap_or(folder);
    fs::create_dir_all(parent).and_then(|()| fs::write(&file, capture)).map_err(|error| {
        Failure::run(format!("--pcap-dir: cannot write {}: {error}", text::path(&file)))
    })
}

/// `DIR/rfc9293/listen.pcapng` for `rfc9293/listen.pkt`. What leads upwards is left out.
fn place(folder: &Path, script: &Path) -> PathBuf {
    let names = script.components().filter(|part| matches!(part, Component::Normal(_)));
    folder.join(names.collect::<PathBuf>()).with_extension("pcapng")
}

#[cfg(test)]
mod tests;
