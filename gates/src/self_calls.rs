//! The files that give one type its methods stand in an order, too: no two call each other's, straight
//! or through others.
//!
//! An `impl` block needs no import, so that the gate of circles cannot see these arrows.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::tree::Tree;
use crate::types::{self, Method, TypeName};

/// Types whose files call each other in a circle.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    types::methods(tree).iter().filter_map(|(name, methods)| judge_type(name, methods)).collect()
}

fn judge_type(name: &TypeName, methods: &[Method]) -> Option<Finding> {
    let circle = files_on_circles(methods);
    let first = circle.first()?;
    let message = format!(
        "`{}` has {} files that call each other in a circle: {}",
        name.1,
        circle.len(),
        circle.iter().copied().collect::<Vec<_>>().join(", ")
    );
    Some(Finding::of_file(first, message, SPLIT))
}

/// The files from which calls on `self` lead through others back to them.
fn files_on_circles(methods: &[Method]) -> BTreeSet<&str> {
    let defining: BTreeMap<&str, &str> =
        methods.iter().map(|method| (method.name.as_str(), method.file.as_str())).collect();
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for method in methods {
        let called = method.self_calls.iter().filter_map(|name| defining.get(name.as_str()));
        let others = called.copied().filter(|file| *file != method.file);
        arrows.entry(&method.file).or_default().extend(others);
    }
    arrows.keys().copied().filter(|file| leads_back(&arrows, file)).collect()
}

fn leads_back(arrows: &BTreeMap<&str, BTreeSet<&str>>, start: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![start];
    while let Some(file) = next.pop() {
        let fresh: Vec<_> =
            arrows[file].iter().copied().filter(|file| seen.insert(*file)).collect();
        next.extend(fresh);
    }
    seen.contains(start)
}

const SPLIT: &str =
    "move what both files need into a file below them, or a part into a type of its own";

#[cfg(test)]
mod tests;
