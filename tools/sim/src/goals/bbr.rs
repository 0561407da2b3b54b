//! Goals of bbr: its rate on steady and on lossy paths, its queue, its return after a path has changed,
//! and its share of a path with another flow.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use whimbrel_link::Waits;

use super::{
    Figure, Goal, Line, PathEvents, Seeds, Unit, first, jain, link, payload_limit, plan, rules,
    whole,
};
use crate::path::{Captured, GoOn, PathPlan, PathReport};

/// A path that does not change, measured from 20 s to 60 s.
#[derive(Clone, Copy, Debug)]
struct Steady {
    name: &'static str,
    path: &'static str,
    /// Megabits per second; `None`: the figure is only published.
    least: Option<f64>,
}

/// A path whose rate or delay changes after 20 s.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    path: &'static str,
    /// Rate after it, bits per second.
    rate: f64,
    /// Share of the payload limit that is to be reached again.
    share: f64,
    /// Seconds until then.
    within: f64,
}

/// Lines of bbr.
pub(super) fn lines() -> Vec<Line> {
    let mut lines: Vec<_> = STEADY.into_iter().map(Steady::line).collect();
    lines.extend(STEPS.into_iter().map(Step::line));
    lines.push(slower_path());
    lines.extend([20, 100].map(long_queue));
    let [mean, least] = fairness();
    lines.push(mean);
    lines.extend(["0.25bdp", "1bdp", "4bdp"].map(with_cubic));
    // Of the same runs as the mean: measured at the same time, one would wait for the other.
    lines.push(least);
    lines
}

impl Steady {
    const fn new(name: &'static str, path: &'static str, least: Option<f64>) -> Self {
        Self { name, path, least }
    }

    fn line(self) -> Line {
        let Self { name, path, least } = self;
        Line {
            name: format!("{name}/bbr"),
            what: format!("{path}: 20 s to 60 s, the least of five seeds"),
            goal: least.map_or(Goal::Published, Goal::AtLeast),
            unit: Unit::Megabits,
            measure: Box::new(move |go_on| {
                let figures = Seeds::run(5, |seed| {
                    let plan = PathPlan { seed, ..plan(link(path)?, Some("bbr"), [20, 60])? };
                    whole(&plan, Unit::Megabits, go_on)
                });
                Ok(figures?.least())
            }),
        }
    }
}

impl Step {
    fn line(self) -> Line {
        let Self { name, path, share, within, .. } = self;
        let share = 100.0 * share;
        Line {
            name: format!("step/{name}/bbr"),
            what: format!("{path}: until {share:.0} % of the new rate, the longest of five seeds"),
            goal: Goal::AtMost(within),
            unit: Unit::Seconds,
            measure: Box::new(move |go_on| {
                Ok(Seeds::run(5, |seed| self.measure(seed, go_on))?.most())
            }),
        }
    }

    /// Seconds from the change until a second had the share, and so has the mean of all that follows.
    fn measure(self, seed: u64, go_on: GoOn<'_>) -> Result<Figure, String> {
        let marks = (200..=600).map(|tenths| Duration::from_millis(100 * tenths)).collect();
        let plan = PathPlan { seed, marks, ..plan(link(self.path)?, Some("bbr"), [20, 60])? };
        let report = plan.run(Captured::Nothing, go_on)?;
        let flow = first(&report)?;
        let least = self.share * payload_limit(&plan, flow, self.rate);
        let rate = |from: usize, until: usize| {
            flow.rate(from, until, Duration::from_millis(100 * (until - from) as u64))
        };
        let last = plan.marks.len() - 1;
        let is_back = |at: &usize| rate(at - SECOND, *at) >= least && rate(*at, last) >= least;
        let back = (SECOND..last).find(is_back).ok_or("it was not reached within 40 s")?;
        Ok(Figure { value: back as f64 / SECOND as f64, events: PathEvents::of(&report) })
    }
}

/// A path that carries a tenth from 20 s on: the queue that was built is to become short.
fn slower_path() -> Line {
    const PATH: &str = "rate=10M,delay=20ms,queue=256k,at=20s:rate=1M";
    Line {
        name: "step/10M-to-1M/wait/bbr".into(),
        what: format!("{PATH}: the p99 of waits, 32 s to 60 s, the longest of five seeds"),
        goal: Goal::AtMost(0.15),
        unit: Unit::Seconds,
        measure: Box::new(|go_on| {
            let figures = Seeds::run(5, |seed| {
                let plan = PathPlan { seed, ..plan(link(PATH)?, Some("bbr"), [32, 60])? };
                let report = plan.run(Captured::Nothing, go_on)?;
                let wait =
                    report.waits.as_ref().and_then(|waits| waits.percentile(99)).ok_or(NO_WAITS)?;
                Ok(Figure { value: wait.as_secs_f64(), events: PathEvents::of(&report) })
            });
            Ok(figures?.most())
        }),
    }
}

/// Mean wait in a queue of four BDP.
fn long_queue(delay_ms: u64) -> Line {
    let path = format!("rate=100M,delay={delay_ms}ms,queue=4bdp");
    Line {
        name: format!("wait/100M/{}ms/4bdp/bbr", 2 * delay_ms),
        what: format!("{path}: of cubic's mean wait, 20 s to 60 s, the most of five seeds"),
        goal: Goal::AtMost(10.0),
        unit: Unit::Percent,
        measure: Box::new(move |go_on| {
            let run = |seed, algorithm| {
                let plan = PathPlan { seed, ..plan(link(&path)?, Some(algorithm), [20, 60])? };
                let report = plan.run(Captured::Nothing, go_on)?;
                let wait = report.waits.as_ref().and_then(Waits::mean).ok_or(NO_WAITS)?;
                Ok::<_, String>((wait.as_secs_f64(), PathEvents::of(&report)))
            };
            let figures = Seeds::run(5, |seed| {
                let ((own, events), (cubic, _)) = (run(seed, "bbr")?, run(seed, "cubic")?);
                Ok(Figure { value: 100.0 * own / cubic, events })
            });
            Ok(figures?.most())
        }),
    }
}

/// Two flows of bbr: the mean of the seeds' indices, and the least.
fn fairness() -> [Line; 2] {
    let seeds = Arc::new(OnceLock::new());
    let line = |name: &str, which: &str, least, figure: fn(&Seeds) -> Figure| {
        let seeds = Arc::clone(&seeds);
        Line {
            name: format!("fair/100M/40ms/bbr{name}"),
            what: format!("two flows, {TWO_FLOWS}, {which} of ten seeds"),
            goal: Goal::AtLeast(least),
            unit: Unit::Jain,
            measure: Box::new(move |go_on| {
                let run = || {
                    Seeds::run(10, |seed| {
                        let report = two_flows("1bdp", "bbr", seed, go_on)?;
                        Ok(Figure { value: jain(&report), events: PathEvents::of(&report) })
                    })
                };
                seeds.get_or_init(run).as_ref().map(figure).map_err(String::clone)
            }),
        }
    };
    [line("", "the mean", 0.95, Seeds::mean), line("/least", "the least", 0.9, Seeds::least)]
}

/// The share that bbr has of a path, with a flow of cubic that begins later.
fn with_cubic(queue: &'static str) -> Line {
    Line {
        name: format!("with-cubic/100M/40ms/{queue}/bbr"),
        what: format!("of both, queue {queue}, cubic {TWO_FLOWS}, the mean of three seeds"),
        goal: Goal::Published,
        unit: Unit::Percent,
        measure: Box::new(move |go_on| {
            let figures = Seeds::run(3, |seed| {
                let report = two_flows(queue, "cubic", seed, go_on)?;
                let sum: f64 = report.flows.iter().map(|it| it.rate(0, 1, MEASURED)).sum();
                let value = 100.0 * first(&report)?.rate(0, 1, MEASURED) / sum;
                Ok(Figure { value, events: PathEvents::of(&report) })
            });
            Ok(figures?.mean())
        }),
    }
}

/// A flow of bbr, and two seconds later one of another algorithm.
fn two_flows(queue: &str, other: &str, seed: u64, go_on: GoOn<'_>) -> Result<PathReport, String> {
    let link = link(&format!("rate=100M,delay=20ms,jitter=0.5ms,queue={queue}"))?;
    let algorithms = ["bbr", other].map(|name| Ok(rules(name)?.congestion_control));
    let plan = PathPlan {
        seed,
        starts: vec![Duration::ZERO, Duration::from_secs(2)],
        algorithms: algorithms.into_iter().collect::<Result<_, String>>()?,
        ..plan(link, None, [20, 120])?
    };
    plan.run(Captured::Nothing, go_on)
}

const TWO_FLOWS: &str = "the second 2 s later, jitter 0.5 ms, 20 s to 120 s";
const MEASURED: Duration = Duration::from_secs(100);
/// Marks per second.
const SECOND: usize = 10;
const NO_WAITS: &str = "no packet was in the queue";
const STEADY: [Steady; 8] = [
    Steady::new("rate/100M/10ms", "rate=100M,delay=5ms,queue=1bdp", Some(91.7)),
    Steady::new("rate/100M/70ms", "rate=100M,delay=35ms,queue=1bdp", Some(90.7)),
    Steady::new("rate/100M/200ms", "rate=100M,delay=100ms,queue=1bdp", Some(89.8)),
    Steady::new("rate/100M/600ms", "rate=100M,delay=300ms,queue=1bdp", Some(84.0)),
    Steady::new("loss-0.1%/100M/40ms", "rate=100M,delay=20ms,queue=1bdp,loss=0.1%", Some(80.0)),
    Steady::new("loss-1%/100M/40ms", "rate=100M,delay=20ms,queue=1bdp,loss=1%", Some(70.0)),
    Steady::new("loss-1.5%/100M/40ms", "rate=100M,delay=20ms,queue=1bdp,loss=1.5%", None),
    Steady::new("loss-2%/100M/40ms", "rate=100M,delay=20ms,queue=1bdp,loss=2%", None),
];
const STEPS: [Step; 2] = [
    Step {
        name: "20ms-to-200ms",
        path: "rate=20M,delay=10ms,at=20s:delay=100ms",
        rate: 20e6,
        share: 0.8,
        within: 12.0,
    },
    Step {
        name: "10M-to-50M",
        path: "rate=10M,delay=20ms,at=20s:rate=50M",
        rate: 50e6,
        share: 0.9,
        within: 4.0,
    },
];
