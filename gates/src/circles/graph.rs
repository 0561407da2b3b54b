//! The circles in a graph of arrows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::arrows::Arrow;

/// For each arrow that leads back to where it comes from, the shortest circle through it; each circle
/// once.
pub(super) fn circles(arrows: &[Arrow]) -> Vec<Vec<&Arrow>> {
    let mut leaving: BTreeMap<&str, Vec<&Arrow>> = BTreeMap::new();
    for arrow in arrows {
        leaving.entry(&arrow.from).or_default().push(arrow);
    }
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for arrow in arrows {
        let Some(mut circle) = way(&leaving, &arrow.to, &arrow.from) else { continue };
        circle.insert(0, arrow);
        let modules: BTreeSet<_> = circle.iter().map(|arrow| arrow.from.as_str()).collect();
        if seen.insert(modules) {
            circles.push(circle);
        }
    }
    circles
}

/// The shortest way from one module to another.
fn way<'a>(
    leaving: &BTreeMap<&str, Vec<&'a Arrow>>,
    from: &'a str,
    to: &str,
) -> Option<Vec<&'a Arrow>> {
    let mut came_by: BTreeMap<&str, &Arrow> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(module) = next.pop_front() {
        if module == to {
            let mut way = Vec::new();
            let mut at = to;
            while at != from {
                let arrow = *came_by.get(at)?;
                way.insert(0, arrow);
                at = &arrow.from;
            }
            return Some(way);
        }
        for arrow in leaving.get(module).into_iter().flatten() {
            if arrow.to != from && !came_by.contains_key(arrow.to.as_str()) {
                came_by.insert(&arrow.to, arrow);
                next.push_back(&arrow.to);
            }
        }
    }
    None
}
