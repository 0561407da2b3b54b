//! Figures of the path: the time in its queue, and the share of segments that were sent again.

use std::time::Duration;

use whimbrel_apps::bulk::Direction;
use whimbrel_apps::condition::Figure;
use whimbrel_link::Waits;

use super::{BulkPlan, FinishedRun, Outcome};
use crate::drive::StackState;
use crate::failure::Failure;
use crate::quantity;

/// Figures of the direction in which the text goes, or of both together.
pub(super) struct PathFigures {
    waits: Option<Waits>,
    /// Segments of all kinds that the senders of text sent, and those of them that they sent again.
    segments: Option<Segments>,
}

#[derive(Clone, Copy)]
struct Segments {
    all: u64,
    again: u64,
}

impl PathFigures {
    /// The figures of a run.
    pub(super) fn of(plan: &BulkPlan, ran: &FinishedRun<Outcome>) -> Self {
        let [there, back] = &ran.waits;
        let ways = [(there, &ran.client), (back, &ran.server)];
        let goes = match plan.bulk.direction {
            Direction::Send => &ways[..1],
            Direction::Receive => &ways[1..],
            Direction::Both => &ways[..],
        };
        let waits = goes.iter().filter_map(|(waits, _)| Option::clone(waits));
        let segments: Option<Vec<_>> = goes.iter().map(|(_, stack)| Segments::of(stack)).collect();
        Self {
            waits: waits.reduce(|mut sum, more| {
                sum += &more;
                sum
            }),
            segments: segments.map(|all| all.into_iter().fold(Segments::NONE, Segments::plus)),
        }
    }

    /// Returns a figure that conditions compare.
    pub(super) fn figure(&self, name: &str) -> Option<Figure> {
        let time = |time: Duration| Figure { value: time.as_secs_f64(), whole: 1.0 };
        match name {
            "wait.mean" => self.mean().map(time),
            "wait.p99" => self.p99().map(time),
            "again" => self.segments.map(|Segments { all, again }| Figure {
                value: again as f64,
                whole: all.max(1) as f64,
            }),
            _ => None,
        }
    }

    /// The mean time in the queue.
    pub(super) fn mean(&self) -> Option<Duration> {
        self.waits.as_ref()?.mean()
    }

    /// The time in the queue that 99 of 100 frames did not exceed.
    pub(super) fn p99(&self) -> Option<Duration> {
        self.waits.as_ref()?.percentile(99)
    }

    /// The percentage of segments that were sent again.
    pub(super) fn again(&self) -> Option<f64> {
        self.figure("again").map(|Figure { value, whole }| 100.0 * value / whole)
    }

    /// A line for people, empty without data.
    pub(super) fn text(&self) -> String {
        let waited = self.mean().zip(self.p99()).map(|(mean, p99)| {
            let [mean, p99] = [mean, p99].map(quantity::show);
            format!("Waited in the queue: mean {mean}, p99 {p99}. ")
        });
        let again = self.again().map(|again| format!("Sent again: {again:.2} % of segments."));
        let text = waited.unwrap_or_default() + &again.unwrap_or_default();
        if text.is_empty() { text } else { format!("{}\n", text.trim_end()) }
    }
}

impl Segments {
    const NONE: Self = Self { all: 0, again: 0 };

    fn of(stack: &Option<StackState>) -> Option<Self> {
        let counters = &stack.as_ref()?.counters;
        Some(Self { all: counters.out_segs, again: counters.retrans_segs })
    }

    const fn plus(self, other: Self) -> Self {
        Self { all: self.all + other.all, again: self.again + other.again }
    }
}

/// Fails if a figure of a condition is not measured in this run.
pub(super) fn check<'n>(
    plan: &BulkPlan,
    names: impl Iterator<Item = &'n str>,
) -> Result<(), Failure> {
    for name in names {
        if let Some(why) = lacking(plan, name) {
            return Err(Failure::usage("--fail-if", format!("{name} is not measured {why}")));
        }
    }
    Ok(())
}

/// Why a figure is not measured, and what to do about it.
fn lacking(plan: &BulkPlan, name: &str) -> Option<&'static str> {
    let link = plan.setup.wire.mem_link();
    match name {
        "wait.mean" | "wait.p99" => match link {
            None => Some("on this wire: use one with its own queue, for example -w mem:rate=100M"),
            Some(link) => {
                let has_queue = match plan.bulk.direction {
                    Direction::Send => link.has_queue(),
                    Direction::Receive => link.back().has_queue(),
                    Direction::Both => link.has_queue() || link.back().has_queue(),
                };
                (!has_queue).then_some("without a queue: add a rate, for example -w mem:rate=100M")
            }
        },
        "again" if plan.setup.wire.is_kernel() => {
            Some("over the kernel's sockets: use a wire of this stack, or compare retransmits")
        }
        "again" if link.is_none() && plan.bulk.direction != Direction::Send => {
            Some("when the other side sends: use send, or -w mem:")
        }
        _ => None,
    }
}
