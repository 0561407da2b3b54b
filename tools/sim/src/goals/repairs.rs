//! Segments lost at the end of a flow are repaired soon, and a lost repair costs no time-out.

use std::time::Duration;

use whimbrel_tcp::conn::AckTiming;

use super::{Figure, Goal, Line, NO_END, PathEvents, Unit, link, lost};
use crate::path::{Captured, GoOn, PathPlan, PathReport};

/// A flow of a few segments, whose end is lost.
#[derive(Clone, Copy, Debug)]
struct Tail {
    name: &'static str,
    /// The round trip, milliseconds.
    rtt_ms: u64,
    /// Number of segments, and of the last ones that are lost.
    segments: u64,
    lost: u64,
    /// Round trips from the first transmission until the last repair leaves.
    within: f64,
}

/// Lines of all losses at the end of a flight, and of a lost repair.
pub(super) fn lines() -> impl Iterator<Item = Line> {
    TAILS.into_iter().map(Tail::line).chain([lost_repairs()])
}

impl Tail {
    fn line(self) -> Line {
        let Self { name, rtt_ms, segments, lost, within } = self;
        Line {
            name: format!("tail/{rtt_ms}ms/{name}"),
            what: format!("the last {lost} of {segments} segments: until the last repair leaves"),
            goal: Goal::AtMost(within),
            unit: Unit::RoundTrips,
            measure: Box::new(move |go_on| self.measure(go_on)),
        }
    }

    fn measure(self, go_on: GoOn<'_>) -> Result<Figure, String> {
        let Self { rtt_ms, segments, .. } = self;
        let last = lost(segments - self.lost + 1..=segments);
        let path = format!("delay={}ms,drop={last}", rtt_ms / 2);
        let report = send(&path, segments * SEGMENT, go_on)?;
        let took = report.flows.first().and_then(|flow| flow.took()).ok_or(NO_END)?;
        // The last repair is acknowledged a round trip after it left.
        let value = took.as_secs_f64() / Duration::from_millis(rtt_ms).as_secs_f64() - 1.0;
        Ok(Figure { value, events: PathEvents::of(&report) })
    }
}

/// Segments whose repairs are lost, while others are delivered.
fn lost_repairs() -> Line {
    Line {
        name: "lost-repairs/100M/40ms".into(),
        what: "20 MB of which a segment, its repair and its second repair are lost, and others"
            .into(),
        goal: Goal::AtMost(0.0),
        unit: Unit::Timeouts,
        measure: Box::new(move |go_on| {
            let path = format!("rate=100M,delay=20ms,queue=1bdp,drop={LOST_REPAIRS}");
            let report = send(&path, 20_000_000, go_on)?;
            report.flows.first().and_then(|flow| flow.took()).ok_or(NO_END)?;
            let events = PathEvents::of(&report);
            Ok(Figure { value: events.timeouts as f64, events })
        }),
    }
}

/// A flow of `bytes`, with default settings.
fn send(path: &str, bytes: u64, go_on: GoOn<'_>) -> Result<PathReport, String> {
    let mut plan = PathPlan { bytes: Some(bytes), ..PathPlan::new(link(path)?, vec![LONGEST]) };
    // The arrival of the last repair must be known at once.
    plan.options[1].overrides.acks = AckTiming::AtOnce;
    plan.run(Captured::Nothing, go_on)
}

/// A sole segment may be acknowledged late, 200 ms, and so may the last; the retransmission timer may run
/// out before that. Of several the last leaves again two round trips after all before it is acknowledged,
/// or was sent, and the others from a round trip later on: 1, 2, 4 … in each.
const TAILS: [Tail; 8] = [
    Tail { name: "sole", rtt_ms: 400, segments: 1, lost: 1, within: 2.51 },
    Tail { name: "sole", rtt_ms: 40, segments: 1, lost: 1, within: 6.03 },
    Tail { name: "last-1-of-10", rtt_ms: 400, segments: 10, lost: 1, within: 3.51 },
    Tail { name: "last-2-of-10", rtt_ms: 400, segments: 10, lost: 2, within: 4.01 },
    Tail { name: "last-5-of-10", rtt_ms: 400, segments: 10, lost: 5, within: 6.01 },
    Tail { name: "last-9-of-10", rtt_ms: 400, segments: 10, lost: 9, within: 7.01 },
    Tail { name: "all-2", rtt_ms: 400, segments: 2, lost: 2, within: 3.01 },
    Tail { name: "all-10", rtt_ms: 400, segments: 10, lost: 10, within: 6.01 },
];
const LOST_REPAIRS: &str = "1000+1000/2+1000/3+5000+5000/2+9000+9001+9001/2+9000/2";
/// Bytes in a full segment.
const SEGMENT: u64 = 1_448;
const LONGEST: Duration = Duration::from_secs(60);
