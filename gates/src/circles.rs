//! Files of one crate stand in an order, too: no two lead to each other, straight or through others.
//!
//! A file stands for what lies in its folder. It leads to another of the same folder where a path in
//! it names something that is defined there: in an import or on the spot, through whatever
//! re-exports. What a module and those within it have of each other is no arrow. Tests are not looked
//! at.

pub(crate) mod arrows;
mod graph;
pub(crate) mod modules;

use crate::finding::Finding;
use crate::rooms::Package;
use crate::tree::Tree;

use arrows::Arrow;
use modules::Modules;

/// The circles between files of each package.
pub(crate) fn judge(packages: &[Package], tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in packages.iter().flat_map(|package| &package.roots) {
        let arrows = arrows::of(&Modules::read(root, tree));
        findings.extend(graph::circles(&arrows).iter().map(|circle| describe(circle)));
    }
    findings
}

fn describe(circle: &[&Arrow]) -> Finding {
    let step = |arrow: &&Arrow| {
        let shown = arrow.places.iter().take(MOST_PLACES);
        let places: Vec<_> = shown.map(|(file, line)| format!("{file}:{line}")).collect();
        let more = arrow.places.len() - places.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("`{}` names `{}` ({}{more})", arrow.from, arrow.to, places.join(", "))
    };
    let steps: Vec<_> = circle.iter().map(step).collect();
    let message = format!("files of one crate do not lead in a circle, and {}", steps.join(", "));
    let place = circle.first().and_then(|arrow| arrow.places.first());
    let (file, line) = place.map_or((".", 1), |(file, line)| (file, *line));
    Finding::at(file, line, message, REMEDY)
}

const REMEDY: &str = "move what both need into a file below them, or what needs both above them";
/// Limit of the places of an arrow in a finding.
const MOST_PLACES: usize = 3;

#[cfg(test)]
mod tests;
