//! Files of one crate stand in an order, too: no two lead to each other, straight or through others.
//!
//! A file stands for what lies in its folder. It leads to another of the same folder where a path in
//! it names something that is defined there: in an import or on the spot, through whatever
//! re-exports. What a module and those within it have of each other is no arrow. Tests are not looked
//! at.

mod arrows;
mod graph;
mod modules;

use crate::finding::Finding;
use crate::rooms::Package;
use crate::tree::Tree;

use arrows::Arrow;
use modules::Modules;

/// The circles between files of each package, and exceptions that are none any more.
pub(crate) fn judge(packages: &[Package], tree: &Tree) -> Vec<Finding> {
    judge_with(packages, tree, EXCEPTIONS)
}

fn judge_with(packages: &[Package], tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let exceptions = exceptions.iter().filter(|(name, ..)| *name == package.name);
        let exceptions: Vec<_> = exceptions.map(|(_, one, other)| (*one, *other)).collect();
        for root in &package.roots {
            let arrows = arrows::of(&Modules::read(root, tree));
            let is_excepted = |arrow: &&Arrow| exceptions.contains(&arrow.ends());
            let rest: Vec<_> = arrows.iter().filter(|arrow| !is_excepted(arrow)).collect();
            findings.extend(graph::circles(&rest).iter().map(|circle| describe(circle)));
            let all: Vec<_> = arrows.iter().collect();
            let circles = graph::circles(&all);
            let is_needless = |ends| !circles.iter().flatten().any(|arrow| arrow.ends() == ends);
            let needless = exceptions.iter().filter(|ends| is_needless(**ends));
            findings.extend(needless.map(|(one, other)| outlived(root, one, other)));
        }
    }
    findings
}

fn outlived(root: &str, one: &str, other: &str) -> Finding {
    let message = format!("`{one}` is in no circle with `{other}` any more and still excepted");
    Finding::of_file(root, message, "take it out of EXCEPTIONS of gates/src/circles.rs")
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

/// A package, and two of its modules of which the first leads to the second nevertheless.
type Exception = (&'static str, &'static str, &'static str);

const REMEDY: &str = "move what both need into a file below them, or what needs both above them";
/// How many places of an arrow a finding names.
const MOST_PLACES: usize = 3;

/// Arrows that are still in a circle. The list only ever gets shorter.
const EXCEPTIONS: &[Exception] = &[("whimbrel-tcp", "context", "conn")];

#[cfg(test)]
mod tests;
