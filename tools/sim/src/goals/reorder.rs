//! Paths without losses that deliver some packets late: the share of the rate that a flow keeps,
//! and the share of segments it retransmits.

use std::sync::{Arc, OnceLock};

use super::{ALGORITHMS, Figure, Goal, Line, PathEvents, Unit, link};
use super::{plan, whole};
use crate::path::{Captured, GoOn, PathPlan};

/// A path that delivers a share of its packets late, and its sender.
#[derive(Clone, Copy, Debug)]
struct Reordering {
    algorithm: &'static str,
    /// Megabits per second.
    rate: u32,
    /// Percent of the packets, in both directions.
    chance: u32,
    /// Their delay, milliseconds; the round trip takes 40.
    late: u32,
    /// Most packets in the queue.
    queue: u32,
}

/// Results of the seeds.
#[derive(Clone, Debug)]
struct Seeds {
    /// Percent of the rate without reordering, for the seed with the least.
    kept: f64,
    /// Percent of segments retransmitted, for the seed with the most.
    again: f64,
    events: PathEvents,
}

/// Lines of all algorithms, rates, shares and delays.
pub(super) fn lines() -> Vec<Line> {
    // Lines of the same runs are not adjacent: measured at the same time, one would wait for the
    // other.
    let (mut again, mut kept, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (algorithm, rate) in ALGORITHMS.into_iter().flat_map(|it| RATES.map(|rate| (it, rate))) {
        let calm = Arc::new(OnceLock::new());
        for (chance, late) in CHANCES.into_iter().flat_map(|it| LATE.map(|late| (it, late))) {
            let path = Reordering { algorithm, rate, chance, late, queue: LONG_QUEUE };
            let [of_again, of_kept] = path.lines(&calm);
            again.push(of_again);
            kept.push(of_kept);
            short.push(Reordering { queue: SHORT_QUEUE, ..path }.again_behind_a_short_queue());
        }
    }
    again.into_iter().chain(kept).chain(short).collect()
}

impl Reordering {
    /// Retransmissions, and the share of the rate that is kept, from the same runs.
    fn lines(self, calm: &Arc<OnceLock<Result<f64, String>>>) -> [Line; 2] {
        let seeds = Arc::new(OnceLock::new());
        let line = |name: &str, goal, value: fn(&Seeds) -> f64| {
            let (calm, seeds) = (Arc::clone(calm), Arc::clone(&seeds));
            Line {
                name: format!("{}{name}", self.name()),
                what: format!("{}, of the rate without: {WHAT}", self.path()),
                goal,
                unit: Unit::Percent,
                measure: Box::new(move |go_on| {
                    let calm = calm.get_or_init(|| self.calm(go_on)).clone()?;
                    let seeds = seeds.get_or_init(|| self.seeds(calm, go_on)).clone()?;
                    Ok(Figure { value: value(&seeds), events: seeds.events })
                }),
            }
        };
        [
            line("/again", Goal::AtMost(0.5), |seeds| seeds.again),
            line("", Goal::AtLeast(98.0), |seeds| seeds.kept),
        ]
    }

    /// This path with a queue that overflows, too.
    fn again_behind_a_short_queue(self) -> Line {
        Line {
            name: format!("{}/short/again", self.name()),
            what: format!("{}, queue {SHORT_QUEUE}p: {WHAT}", self.path()),
            goal: Goal::AtMost(3.0),
            unit: Unit::Percent,
            measure: Box::new(move |go_on| {
                let seeds = self.seeds(1.0, go_on)?;
                Ok(Figure { value: seeds.again, events: seeds.events })
            }),
        }
    }

    fn name(self) -> String {
        let Self { algorithm, rate, chance, late, .. } = self;
        format!("reorder/{rate}M/{chance}%/{late}ms/{algorithm}")
    }

    fn path(self) -> String {
        format!(
            "{} Mb/s x 40 ms, {} % of the packets {} ms late",
            self.rate, self.chance, self.late
        )
    }

    /// Megabits per second without reordering.
    fn calm(self, go_on: GoOn<'_>) -> Result<f64, String> {
        Ok(whole(&self.plan(1, "")?, Unit::Megabits, go_on)?.value)
    }

    fn seeds(self, calm: f64, go_on: GoOn<'_>) -> Result<Seeds, String> {
        let mut all = Seeds { kept: f64::INFINITY, again: 0.0, events: PathEvents::default() };
        let late = format!(",reorder={}%:{}ms", self.chance, self.late);
        for seed in 1..=SEEDS {
            let plan = self.plan(seed, &late)?;
            let report = plan.run(Captured::Nothing, go_on)?;
            let flow = report.flows.first().ok_or("there was no flow")?;
            let kept = 100.0 * flow.rate(0, 1, plan.marks[1]) / 1e6 / calm;
            all.kept = all.kept.min(kept);
            let sent = report.sender.out_segs + report.sender.retrans_segs;
            all.again = all.again.max(100.0 * report.sender.retrans_segs as f64 / sent as f64);
            all.events = all.events.and(PathEvents::of(&report));
        }
        Ok(all)
    }

    fn plan(self, seed: u64, late: &str) -> Result<PathPlan, String> {
        let Self { algorithm, rate, queue, .. } = self;
        let link = link(&format!("rate={rate}M,delay=20ms,queue={queue}p{late}"))?;
        Ok(PathPlan { seed, ..plan(link, Some(algorithm), [0, 10])? })
    }
}

const RATES: [u32; 2] = [20, 100];
const CHANCES: [u32; 3] = [1, 5, 50];
const LATE: [u32; 5] = [1, 2, 5, 15, 18];
const SEEDS: u64 = 10;
/// Long enough that the queue drops nothing in ten seconds.
const LONG_QUEUE: u32 = 20_000;
const SHORT_QUEUE: u32 = 1_000;
const WHAT: &str = "10 s from the SYN on, ten seeds";
