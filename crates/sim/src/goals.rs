//! What a path must carry: measurements in virtual time, each with its goal. Nothing is tuned for them:
//! both hosts have the rules that they begin with.
//!
//! The *payload limit* of a path is what its rate leaves to text, in bits per second:
//!
//! ```text
//! rate x MSS / MTU          MSS = MTU - 20 (IPv4) - 20 (TCP) - 12 (timestamps, if negotiated)
//! ```
//!
//! since a link counts whole packets. At an MTU of 1,500 with timestamps that is 96.53 % of the rate.

use std::time::Duration;

use whimbrel_link::LinkConfig;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::Limit;

use crate::path::{Captured, GoOn, PathPlan, PathReport};

pub use grid::{Cell, grid};
pub use paths::paths;

mod grid;
mod paths;
mod patterns;
mod reorder;
mod repairs;

/// One measurement, and what it is to reach.
pub struct Line {
    /// Its name, parts with `/` between them, as in `100M/70ms/cubic`.
    pub name: String,
    /// What is measured, in a few words.
    pub what: String,
    /// What it is to reach.
    pub goal: Goal,
    /// The unit of its figure.
    pub unit: Unit,
    measure: Measure,
}

/// How a line is measured.
type Measure = Box<dyn Fn(GoOn<'_>) -> Result<Figure, String> + Send + Sync>;

/// The least or the most that a figure may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// The figure is this or more.
    AtLeast(f64),
    /// The figure is this or less.
    AtMost(f64),
    /// This, or a tenth of it more or less.
    Near(f64),
}

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Percent of what its line says; of the payload limit if it says nothing.
    Percent,
    /// Millions of bits of text per second.
    Megabits,
    /// Jain's index of fairness, 0 to 1.
    Jain,
    /// Seconds.
    Seconds,
    /// Round trips of the path.
    RoundTrips,
    /// Time-outs of the retransmission timer.
    Timeouts,
}

/// What was measured on a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The value, in the unit of its line.
    pub value: f64,
    /// What happened meanwhile, the beginning included.
    pub events: PathEvents,
}

/// What happened on a path.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PathEvents {
    /// How many segments were sent again.
    pub sent_again: u64,
    /// Time-outs of the retransmission timer.
    pub timeouts: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// What the flow waited for longest, and which percentage of the time; of the first flow.
    pub limit: Option<(Limit, f64)>,
    /// For which percentage of the time it was a buffer or the peer's window; of the first flow.
    pub buffers: f64,
}

impl Line {
    /// Measures it, as long as `go_on` says so. An error says why that cannot be done.
    pub fn measure(&self, go_on: GoOn<'_>) -> Result<Figure, String> {
        (self.measure)(go_on)
    }

    /// True if every `/`-separated part of `pattern` is a part of its name.
    pub fn is_named_by(&self, pattern: &str) -> bool {
        pattern.split('/').all(|part| self.parts().any(|own| own == part))
    }

    /// The parts of its name.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.name.split('/')
    }
}

impl Goal {
    /// True if this figure reaches it.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Near(goal) => (value - goal).abs() <= goal * 0.1,
        }
    }

    /// True if `value` is worse than `before` by more than [`Goal::TOLERANCE`] of it.
    pub fn is_worse(self, value: f64, before: f64) -> bool {
        let margin = before.abs() * Self::TOLERANCE;
        match self {
            Self::AtLeast(_) => value < before - margin,
            Self::AtMost(_) => value > before + margin,
            Self::Near(goal) => (value - goal).abs() > (before - goal).abs() + margin,
        }
    }

    /// The share of a figure by which it may change for the worse, without being worse: every change
    /// of the stack moves losses a little.
    pub const TOLERANCE: f64 = 0.01;
}

impl Unit {
    /// A figure with it, to as many places as tell something.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Percent | Self::Megabits => format!("{value:.2} {}", self.name()),
            Self::Seconds | Self::RoundTrips => format!("{value:.3} {}", self.name()),
            Self::Timeouts => format!("{value:.0} {}", self.name()),
            Self::Jain => format!("{value:.4} {}", self.name()),
        }
    }

    /// Its name behind a figure.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percent => "%",
            Self::Megabits => "Mb/s",
            Self::Jain => "Jain",
            Self::Seconds => "s",
            Self::RoundTrips => "RTT",
            Self::Timeouts => "RTOs",
        }
    }
}

impl PathEvents {
    fn of(report: &PathReport) -> Self {
        let flow = report.flows.first().and_then(|flow| flow.snapshot.as_ref());
        let percent = |limit| {
            let limited = flow.map_or(Duration::ZERO, |flow| flow.limited(limit));
            100.0 * limited.as_secs_f64() / report.lasted.as_secs_f64()
        };
        let limits = [Limit::Network, Limit::Window, Limit::Buffer].map(|it| (it, percent(it)));
        let longest = limits.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        Self {
            sent_again: report.sender.retrans_segs,
            timeouts: report.sender.timeouts,
            queue_drops: report.link.lost_queue,
            limit: longest.filter(|_| flow.is_some()),
            buffers: percent(Limit::Window) + percent(Limit::Buffer),
        }
    }

    /// With that of another run.
    fn and(self, other: Self) -> Self {
        Self {
            sent_again: self.sent_again + other.sent_again,
            timeouts: self.timeouts + other.timeouts,
            queue_drops: self.queue_drops + other.queue_drops,
            limit: self.limit.or(other.limit),
            buffers: self.buffers,
        }
    }
}

/// The rules under which congestion is controlled by the algorithm of this name.
fn rules(algorithm: &str) -> Result<Tunables, String> {
    let mut tunables = Tunables::default();
    let set = tunables.set_by_name("net.ipv4.tcp_congestion_control", algorithm);
    set.map(|()| tunables).map_err(|error| error.to_string())
}

fn link(text: &str) -> Result<LinkConfig, String> {
    text.parse().map_err(|error: whimbrel_link::ConfigError| error.to_string())
}

/// A flow over this path, measured between these times, in seconds, with the algorithm of this name or
/// whatever is the default.
fn plan(link: LinkConfig, algorithm: Option<&str>, marks: [u64; 2]) -> Result<PathPlan, String> {
    let marks = marks.map(Duration::from_secs).to_vec();
    Ok(PathPlan {
        tunables: algorithm.map_or_else(|| Ok(<_>::default()), rules)?,
        ..PathPlan::new(link, marks)
    })
}

/// What one flow reached between its two marks.
fn whole(plan: &PathPlan, unit: Unit, go_on: GoOn<'_>) -> Result<Figure, String> {
    let report = plan.run(Captured::Nothing, go_on)?;
    let flow = report.flows.first().ok_or("there was no flow")?;
    let apart = plan.marks.last().copied().unwrap_or_default().saturating_sub(plan.marks[0]);
    let bits = flow.rate(0, 1, apart);
    let value = match (unit, plan.link.rate) {
        (Unit::Percent, Some(rate)) => {
            let mss = flow.snapshot.as_ref().map_or(0, |snapshot| snapshot.mss);
            100.0 * bits / (rate as f64 * f64::from(mss) / f64::from(plan.link.mtu))
        }
        _ => bits / 1e6,
    };
    Ok(Figure { value, events: PathEvents::of(&report) })
}

/// Segments that are lost, in the words of `drop=`.
fn lost(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join("+")
}

/// Why a flow of so many bytes has no figure.
const NO_END: &str = "not everything was acknowledged";
/// Every algorithm that has a goal.
const ALGORITHMS: [&str; 2] = ["reno", "cubic"];

#[cfg(test)]
mod tests;
