//! The kernel's own measurement: 20 MB over a path that loses only certain segments, and those that
//! overflow its queue.

use std::time::Duration;

use super::{ALGORITHMS, Figure, Goal, Line, NO_END, PathEvents, Unit, link, lost, rules};
use crate::path::{Captured, GoOn, PathPlan};

/// Lost segments.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    name: &'static str,
    /// First and last of a row.
    row: [u64; 2],
    /// Further ones, in the syntax of `drop=`.
    also: &'static str,
    /// The kernel's seconds with each of [`ALGORITHMS`].
    kernel: [f64; 2],
}

/// All patterns, with each algorithm.
pub(super) fn lines() -> impl Iterator<Item = Line> {
    PATTERNS.into_iter().flat_map(|pattern| {
        ALGORITHMS.into_iter().zip(pattern.kernel).map(move |(algorithm, kernel)| Line {
            name: format!("20MB/100M/40ms/{}/{algorithm}", pattern.name),
            what: format!("{PATH},drop={}: the kernel takes {kernel} s", pattern.lost()),
            goal: Goal::AtMost((kernel * MOST * 1e3).round() / 1e3),
            unit: Unit::Seconds,
            measure: Box::new(move |go_on| pattern.measure(algorithm, go_on)),
        })
    })
}

impl Pattern {
    const fn new(name: &'static str, row: [u64; 2], also: &'static str, kernel: [f64; 2]) -> Self {
        Self { name, row, also, kernel }
    }

    fn lost(&self) -> String {
        let [first, last] = self.row;
        format!("{}{}", lost(first..=last), self.also)
    }

    fn measure(&self, algorithm: &str, go_on: GoOn<'_>) -> Result<Figure, String> {
        let link = link(&format!("{PATH},drop={}", self.lost()))?;
        let plan = PathPlan {
            tunables: rules(algorithm)?,
            bytes: Some(20_000_000),
            has_fin: true,
            ..PathPlan::new(link, vec![LONGEST])
        };
        let report = plan.run(Captured::Nothing, go_on)?;
        let took = report.flows.first().and_then(|flow| flow.took()).ok_or(NO_END)?;
        Ok(Figure { value: took.as_secs_f64(), events: PathEvents::of(&report) })
    }
}

const PATH: &str = "rate=100M,delay=20ms,queue=1bdp";
/// Our time may be at most this multiple of the kernel's.
const MOST: f64 = 1.1;
const LONGEST: Duration = Duration::from_secs(60);
const EVERY_SECOND: &str = "+2003+2005+2007+2009+2011+2013+2015+2017+2019";
/// 20 MB are 13,813 segments: number 14,000 is none of them. The kernel's times are those of
/// docs/measured/long-paths.md; scripts/long/paths-vs-kernel measures them.
const PATTERNS: [Pattern; 20] = [
    Pattern::new("one-10", [10, 10], "", [6.617, 8.608]),
    Pattern::new("one-100", [100, 100], "", [5.129, 5.277]),
    Pattern::new("one-1000", [1_000, 1_000], "", [1.882, 1.865]),
    Pattern::new("one-5000", [5_000, 5_000], "", [2.703, 1.867]),
    Pattern::new("one-14000", [14_000, 14_000], "", [1.949, 1.873]),
    Pattern::new("ten-from-41", [41, 50], "", [6.099, 7.312]),
    Pattern::new("ten-from-101", [101, 110], "", [5.116, 5.243]),
    Pattern::new("ten-from-1001", [1_001, 1_010], "", [1.867, 1.872]),
    Pattern::new("ten-from-5001", [5_001, 5_010], "", [2.702, 1.88]),
    Pattern::new("last-1", [13_813, 13_813], "", [2.34, 2.18]),
    Pattern::new("last-2", [13_812, 13_813], "", [2.133, 2.129]),
    Pattern::new("last-5", [13_809, 13_813], "", [2.186, 2.204]),
    Pattern::new("last-10", [13_804, 13_813], "", [2.42, 2.247]),
    Pattern::new("100-and-its-repair", [100, 100], "+100/2", [5.498, 5.509]),
    Pattern::new("1000-and-its-repair", [1_000, 1_000], "+1000/2", [1.874, 1.896]),
    Pattern::new("5000-and-its-repair", [5_000, 5_000], "+5000/2", [2.916, 1.912]),
    Pattern::new("1000-and-two-repairs", [1_000, 1_000], "+1000/2+1000/3", [2.164, 1.968]),
    Pattern::new("ten-from-1001-and-a-repair", [1_001, 1_010], "+1001/2", [1.91, 1.917]),
    Pattern::new("every-second-from-2001", [2_001, 2_001], EVERY_SECOND, [1.943, 1.884]),
    Pattern::new("3000-and-4000", [3_000, 3_000], "+4000", [2.953, 2.089]),
];
