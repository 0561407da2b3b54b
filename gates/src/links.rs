//! Links between the documents lead somewhere.
//!
//! Only links into the repository are looked at. The part after `#` is not.

use std::path::{Component, Path, PathBuf};

use crate::finding::Finding;
use crate::tree::Tree;

/// Relative links in Markdown that no file or folder answers.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    tree.files_ending(".md").flat_map(|(name, text)| judge_document(name, text, tree)).collect()
}

fn judge_document(name: &str, text: &str, tree: &Tree) -> Vec<Finding> {
    let relative = links_in(text).into_iter().filter(|(_, target)| is_relative(target));
    relative
        .filter(|(_, target)| !leads_somewhere(name, target, tree))
        .map(|(line, target)| {
            let message = format!("`{target}` leads to no file of the repository");
            Finding::at(name, line, message, "mend the link, relative to this document")
        })
        .collect()
}

/// The targets of `[text](target)` and `[label]: target` with their lines, outside of code.
fn links_in(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            links.extend(links_of_line(line).into_iter().map(|target| (number, target)));
        }
    }
    links
}

fn links_of_line(line: &str) -> Vec<String> {
    // Every second piece between back-ticks is code.
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let reference = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let targets = inline.chain(reference.map(|(_, target)| target));
    targets.filter_map(|target| Some(target.split_whitespace().next()?.to_owned())).collect()
}

fn is_relative(target: &str) -> bool {
    !(target.contains("://") || target.starts_with("mailto:") || target.starts_with('#'))
}

fn leads_somewhere(document: &str, target: &str, tree: &Tree) -> bool {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    normalize(&folder.join(path)).is_some_and(|file| tree.has(&file))
}

/// `path` without `.` and `..`; nothing if it leaves the repository.
fn normalize(path: &Path) -> Option<String> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => clean.pop().then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    clean.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
