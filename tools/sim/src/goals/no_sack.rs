//! Rates to a peer that names no ranges: losses are found by duplicates and repaired one in a round trip
//! (RFC 6582), and what arrived meanwhile is an estimate (RFC 6937 2).

use super::{Goal, Line, Seeds, Unit, link, plan, whole};
use crate::path::PathPlan;

/// Lines of reno, cubic and bbr.
pub(super) fn lines() -> impl Iterator<Item = Line> {
    PATHS.into_iter().flat_map(|(name, path, least)| {
        ["reno", "cubic", "bbr"].into_iter().zip(least).map(move |(algorithm, least)| Line {
            name: format!("no-sack/{name}/{algorithm}"),
            what: format!("{path}: 5 s to 35 s, the least of three seeds"),
            goal: least.map_or(Goal::Published, Goal::AtLeast),
            unit: Unit::Megabits,
            measure: Box::new(move |go_on| {
                let figures = Seeds::run(3, |seed| {
                    let mut plan = plan(link(path)?, Some(algorithm), [5, 35])?;
                    plan.tunables.sack = false;
                    whole(&PathPlan { seed, ..plan }, Unit::Megabits, go_on)
                });
                Ok(figures?.least())
            }),
        })
    })
}

/// Names, paths, and goals of reno, cubic and bbr in megabits per second.
const PATHS: [(&str, &str, [Option<f64>; 3]); 3] = [
    (
        "100M/40ms",
        "rate=100M,delay=20ms,jitter=0.1ms,queue=1bdp",
        [Some(94.0), Some(94.0), Some(85.0)],
    ),
    (
        "100M/40ms/0.25bdp",
        "rate=100M,delay=20ms,jitter=0.1ms,queue=0.25bdp",
        [Some(60.0), Some(70.0), None],
    ),
    (
        "100M/40ms/loss-0.1%",
        "rate=100M,delay=20ms,queue=1bdp,loss=0.1%",
        [Some(8.0), Some(8.0), Some(20.0)],
    ),
];
