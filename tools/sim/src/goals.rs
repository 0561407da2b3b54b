//! Required rates of paths: measurements in virtual time, each with its goal. Both hosts have their
//! default settings.
//!
//! The *payload limit* of a path is what its rate leaves to text, in bits per second:
//!
//! ```text
//! rate x MSS / MTU          MSS = MTU - 20 (IPv4) - 20 (TCP) - 12 (timestamps, if negotiated)
//! ```
//!
//! since a link counts whole packets. At an MTU of 1,500 with timestamps that is 96.53 % of the
//! rate.

use std::time::Duration;

use whimbrel_link::LinkConfig;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::Limit;

use crate::path::{Captured, FlowReport, GoOn, PathPlan, PathReport};
use seeds::Seeds;

pub use full::{FullCell, FullFigure};
pub use grid::{Cell, grid};
pub use paths::paths;

mod bbr;
mod full;
mod grid;
mod no_sack;
mod paths;
mod patterns;
mod reorder;
mod repairs;
mod seeds;

/// One measurement, with its goal.
pub struct Line {
    /// Name, with parts separated by `/`, for example `100M/70ms/cubic`.
    pub name: String,
    /// Short name of the measurement.
    pub what: String,
    /// Goal of the figure.
    pub goal: Goal,
    /// Unit of its figure.
    pub unit: Unit,
    measure: Measure,
}

/// Measures a line.
type Measure = Box<dyn Fn(GoOn<'_>) -> Result<Figure, String> + Send + Sync>;

/// Lower or upper bound of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Within a tenth of this.
    Near(f64),
    /// No bound: the figure is only published.
    Published,
}

/// Unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Percent of the whole that its line names; by default of the payload limit.
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

/// Figure of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Value, in the unit of its line.
    pub value: f64,
    /// Events during the measurement and before it.
    pub events: PathEvents,
}

/// Events on a path.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PathEvents {
    /// Number of retransmitted segments.
    pub sent_again: u64,
    /// Time-outs of the retransmission timer.
    pub timeouts: u64,
    /// Packets dropped by the full queue.
    pub queue_drops: u64,
    /// The limit that the first flow waited for longest, and its percentage of the time.
    pub limit: Option<(Limit, f64)>,
    /// Percentage of the time in which the first flow waited for a buffer or the peer's window.
    pub buffers: f64,
}

impl Line {
    /// Runs the measurement while `go_on` is true. An error gives the reason of a failure.
    pub fn measure(&self, go_on: GoOn<'_>) -> Result<Figure, String> {
        (self.measure)(go_on)
    }
}

/// True if each `/`-separated part of `pattern` is a part of `name`.
pub fn is_named(name: &str, pattern: &str) -> bool {
    pattern.split('/').all(|part| name.split('/').any(|own| own == part))
}

impl Goal {
    /// True if `value` reaches it.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Near(goal) => (value - goal).abs() <= goal * 0.1,
            Self::Published => true,
        }
    }

    /// True if `value` is worse than `before` by more than [`Goal::TOLERANCE`] of it.
    pub fn is_worse(self, value: f64, before: f64) -> bool {
        let margin = before.abs() * Self::TOLERANCE;
        match self {
            Self::AtLeast(_) => value < before - margin,
            Self::AtMost(_) => value > before + margin,
            Self::Near(goal) => (value - goal).abs() > (before - goal).abs() + margin,
            Self::Published => false,
        }
    }

    /// Share by which a figure may become worse: every change of the stack moves losses a little.
    pub const TOLERANCE: f64 = 0.01;
}

impl Unit {
    /// A figure with its unit, to significant places.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Percent | Self::Megabits => format!("{value:.2} {}", self.name()),
            Self::Seconds | Self::RoundTrips => format!("{value:.3} {}", self.name()),
            Self::Timeouts => format!("{value:.0} {}", self.name()),
            Self::Jain => format!("{value:.4} {}", self.name()),
        }
    }

    /// Unit after a figure.
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

    /// Adds the events of another run.
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

/// Rules with the congestion control of this name.
fn rules(algorithm: &str) -> Result<Tunables, String> {
    let mut tunables = Tunables::default();
    let set = tunables.set_by_name("net.ipv4.tcp_congestion_control", algorithm);
    set.map(|()| tunables).map_err(|error| error.to_string())
}

fn link(text: &str) -> Result<LinkConfig, String> {
    text.parse().map_err(|error: whimbrel_link::ConfigError| error.to_string())
}

/// A flow over this path, measured between these times in seconds, with the congestion control of
/// this name or the default.
fn plan(link: LinkConfig, algorithm: Option<&str>, marks: [u64; 2]) -> Result<PathPlan, String> {
    let marks = marks.map(Duration::from_secs).to_vec();
    Ok(PathPlan {
        tunables: algorithm.map_or_else(|| Ok(<_>::default()), rules)?,
        ..PathPlan::new(link, marks)
    })
}

/// Figure of one flow between its two marks.
fn whole(plan: &PathPlan, unit: Unit, go_on: GoOn<'_>) -> Result<Figure, String> {
    let report = plan.run(Captured::Nothing, go_on)?;
    let value = match unit {
        Unit::Percent => used(plan, &report)?,
        _ => rate(plan, first(&report)?) / 1e6,
    };
    Ok(Figure { value, events: PathEvents::of(&report) })
}

/// Rate of the first flow between the two marks, percent of the payload limit.
fn used(plan: &PathPlan, report: &PathReport) -> Result<f64, String> {
    let flow = first(report)?;
    let limit = payload_limit(plan, flow, plan.link.rate.unwrap_or_default() as f64);
    Ok(100.0 * rate(plan, flow) / limit)
}

/// The part of `rate` that is left to the text of a flow.
fn payload_limit(plan: &PathPlan, flow: &FlowReport, rate: f64) -> f64 {
    let mss = flow.snapshot.as_ref().map_or(0, |snapshot| snapshot.mss);
    rate * f64::from(mss) / f64::from(plan.link.mtu)
}

/// Bits per second of a flow between the two marks.
fn rate(plan: &PathPlan, flow: &FlowReport) -> f64 {
    let apart = plan.marks.last().copied().unwrap_or_default().saturating_sub(plan.marks[0]);
    flow.rate(0, 1, apart)
}

fn first(report: &PathReport) -> Result<&FlowReport, String> {
    report.flows.first().ok_or_else(|| "there was no flow".into())
}

/// Jain's index of the flows' bytes between the marks: 1 if all had the same.
fn jain(report: &PathReport) -> f64 {
    let each = report.flows.iter().map(|flow| flow.rate(0, 1, Duration::from_secs(1)));
    let (count, sum, squares) = each.fold((0.0, 0.0, 0.0), |(count, sum, squares), rate| {
        (count + 1.0, sum + rate, squares + rate * rate)
    });
    if squares == 0.0 { 0.0 } else { sum * sum / (count * squares) }
}

/// Lost segments, in the syntax of `drop=`.
fn lost(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join("+")
}

/// Reason for which a flow of fixed size has no figure.
const NO_END: &str = "not everything was acknowledged";
/// Congestion controls with goals on all paths; those of bbr differ.
const ALGORITHMS: [&str; 2] = ["reno", "cubic"];

#[cfg(test)]
mod tests;
