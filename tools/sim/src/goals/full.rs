//! The full grid: one flow for each rate, round trip, loss, queue and algorithm. Its cells have no goals;
//! their figures are compared with those of an earlier run.

use std::time::Duration;

use whimbrel_link::{LinkConfig, Probability, QueueLimit, Waits};
use whimbrel_tcp::conn::Limit;

use super::grid::{LARGEST_BUFFER, RTTS_MS};
use super::{Cell, PathEvents, rules, used};
use crate::path::{Captured, GoOn, PathPlan};

/// One cell of the full grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FullCell {
    /// Rate, round trip and algorithm.
    pub cell: Cell,
    /// Probability, in each direction, that the path loses a packet.
    pub loss: Probability,
    /// Length of the queue, thousandths of the bandwidth-delay product (BDP).
    pub queue: u32,
}

/// Figures of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FullFigure {
    /// Rate of acknowledged data, percent of the payload limit.
    pub used: f64,
    /// Mean time of packets in the queue.
    pub wait_mean: Duration,
    /// Time in the queue that 99 of 100 packets did not exceed.
    pub wait_p99: Duration,
    /// Percentage of segments that were sent again, with those of slow start.
    pub sent_again: f64,
    /// Time-outs of the retransmission timer.
    pub timeouts: u64,
    /// The limit that the sender waited for longest, and its percentage of the time.
    pub limit: Option<(Limit, f64)>,
}

impl FullCell {
    /// Every cell, the lowest rate first.
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for (rate, rtt) in RATES.into_iter().flat_map(|rate| RTTS_MS.map(|rtt| (rate, rtt))) {
            let rtt = Duration::from_millis(rtt);
            for (loss, queue) in LOSSES.into_iter().flat_map(|it| QUEUES.map(|queue| (it, queue))) {
                let loss = Probability::from_millionths(loss);
                let cell = |algorithm| Cell { rate, rtt, algorithm };
                let of = |algorithm| Self { cell: cell(algorithm), loss, queue };
                cells.extend(ALGORITHMS.map(of));
            }
        }
        cells
    }

    /// Name, for example `100M/70ms/0.1%/1bdp/cubic`.
    pub fn name(&self) -> String {
        let loss = f64::from(self.loss.millionths()) / 1e4;
        let queue = f64::from(self.queue) / 1e3;
        format!("{}/{loss}%/{queue}bdp/{}", self.cell.path_name(), self.cell.algorithm)
    }

    /// Length of the measurement: that of the grid, and half of it at 10 Gb/s.
    pub fn lasts(&self) -> Duration {
        self.cell.lasts() / if self.cell.rate >= FASTEST { 2 } else { 1 }
    }

    /// Estimate of the packets of a measurement, which its duration follows.
    pub fn packets(&self) -> f64 {
        let rtt = self.cell.rtt.as_secs_f64();
        let line = self.cell.rate as f64 / (8.0 * PACKET);
        let window = LARGEST_BUFFER as f64 / (rtt * PACKET);
        let loss = f64::from(self.loss.millionths()) / 1e6;
        // Reno sends 1.22 / sqrt(p) packets in a round trip (RFC 3155 2.1), and CUBIC up to twice as many.
        let losses = match self.cell.algorithm {
            "bbr" => f64::INFINITY,
            _ => 2.44 / (loss.sqrt() * rtt),
        };
        let seconds = (self.cell.begins() + self.lasts()).as_secs_f64();
        line.min(window).min(losses) * seconds + LEAST_PACKETS
    }

    /// Measures the cell while `go_on` is true. An error gives the reason of a failure.
    pub fn measure(&self, go_on: GoOn<'_>) -> Result<FullFigure, String> {
        let Cell { rate, rtt, algorithm } = self.cell;
        let link = LinkConfig::default().with_rate(rate).with_delay(rtt / 2).with_loss(self.loss);
        let link = link.with_queue(QueueLimit::Bdp(self.queue));
        let from = self.cell.begins();
        let plan = PathPlan {
            tunables: rules(algorithm)?,
            ..PathPlan::new(link, vec![from, from + self.lasts()])
        };
        let report = plan.run(Captured::Nothing, go_on)?;
        let events = PathEvents::of(&report);
        let waits = report.waits.as_ref();
        let [mean, p99] = [waits.and_then(Waits::mean), waits.and_then(|it| it.percentile(99))];
        Ok(FullFigure {
            used: used(&plan, &report)?,
            wait_mean: mean.unwrap_or_default(),
            wait_p99: p99.unwrap_or_default(),
            sent_again: 100.0 * events.sent_again as f64 / report.sender.out_segs.max(1) as f64,
            timeouts: events.timeouts,
            limit: events.limit,
        })
    }
}

const RATES: [u64; 4] = [10_000_000, 100_000_000, 1_000_000_000, FASTEST];
const FASTEST: u64 = 10_000_000_000;
/// Millionths.
const LOSSES: [u32; 4] = [0, 10, 1_000, 10_000];
/// Thousandths of the BDP.
const QUEUES: [u32; 3] = [250, 1_000, 4_000];
const ALGORITHMS: [&str; 3] = ["reno", "cubic", "bbr"];
/// Bytes of a full packet.
const PACKET: f64 = 1_500.0;
/// Packets whose simulation takes about as long as a cell's beginning.
const LEAST_PACKETS: f64 = 10_000.0;
