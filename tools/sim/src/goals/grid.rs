//! The grid: one flow over a path without losses of its own, for each rate, round trip and algorithm.

use std::time::Duration;

use whimbrel_link::{LinkConfig, QueueLimit};

use super::{ALGORITHMS, Figure, Goal, Line, PathEvents, Unit, rules, used};
use crate::path::{Captured, GoOn, PathPlan};

/// One cell of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The rate of the path, bits per second.
    pub rate: u64,
    /// The round trip, without the queue.
    pub rtt: Duration,
    /// Name of the congestion control, as in `net.ipv4.tcp_congestion_control`.
    pub algorithm: &'static str,
}

/// All cells, the lowest rate first.
pub fn grid() -> Vec<Line> {
    Cell::all().map(Cell::line).collect()
}

impl Cell {
    /// Every cell whose double product of rate and round trip fits in the largest buffer.
    pub fn all() -> impl Iterator<Item = Self> {
        let cells = RATES.into_iter().flat_map(|rate| {
            RTTS_MS.into_iter().flat_map(move |rtt| {
                let rtt = Duration::from_millis(rtt);
                ALGORITHMS.into_iter().map(move |algorithm| Self { rate, rtt, algorithm })
            })
        });
        cells.filter(|cell| 2 * cell.product() <= LARGEST_BUFFER)
    }

    /// Product of rate and round trip, bytes.
    pub const fn product(&self) -> u64 {
        self.rate / 8 * self.rtt.as_millis() as u64 / 1_000
    }

    /// Name, for example `100M/70ms/cubic`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.path_name(), self.algorithm)
    }

    /// Name without the algorithm, for example `100M/70ms`.
    pub(super) fn path_name(&self) -> String {
        let rate = match self.rate / 1_000_000 {
            millions if millions >= 1_000 => format!("{}G", millions / 1_000),
            millions => format!("{millions}M"),
        };
        format!("{rate}/{}ms", self.rtt.as_millis())
    }

    /// Start of the measurement. Slow start takes a round trip for each doubling from the initial
    /// window to the product; it gets twice that, and two seconds to recover from its end.
    pub fn begins(&self) -> Duration {
        let doublings = (self.product() as f64 / INITIAL_WINDOW as f64).log2().max(0.0);
        self.rtt.mul_f64(2.0 * doublings) + Duration::from_secs(2)
    }

    /// Length of the measurement.
    pub fn lasts(&self) -> Duration {
        Duration::from_secs(20).max(20 * self.rtt)
    }

    fn goal(&self) -> Goal {
        // Recovery from one overshoot may need 85 MB of window there, more than the largest.
        let is_longest = self.rate == 1_000_000_000 && self.rtt == Duration::from_millis(200);
        Goal::AtLeast(match self.algorithm {
            "reno" if is_longest => 96.0,
            "reno" => 97.0,
            _ if is_longest => 96.0,
            _ => 98.0,
        })
    }

    fn line(self) -> Line {
        Line {
            name: self.name(),
            what: "one flow, nothing set, no loss, a queue of one BDP".into(),
            goal: self.goal(),
            unit: Unit::Percent,
            measure: Box::new(move |go_on| self.measure(go_on)),
        }
    }

    fn measure(&self, go_on: GoOn<'_>) -> Result<Figure, String> {
        let link = LinkConfig::default().with_rate(self.rate).with_delay(self.rtt / 2);
        let link = link.with_queue(QueueLimit::Bdp(1_000));
        let (from, apart) = (self.begins(), self.lasts());
        let plan = PathPlan {
            tunables: rules(self.algorithm)?,
            ..PathPlan::new(link, vec![from, from + apart])
        };
        let report = plan.run(Captured::Nothing, go_on)?;
        Ok(Figure { value: used(&plan, &report)?, events: PathEvents::of(&report) })
    }
}

const RATES: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];
pub(super) const RTTS_MS: [u64; 5] = [1, 10, 70, 200, 600];
/// Largest buffer under autotuning, bytes.
pub(super) const LARGEST_BUFFER: u64 = 64_000_000;
/// Ten segments of an Ethernet's MSS (RFC 6928 2), bytes.
const INITIAL_WINDOW: u64 = 14_600;
