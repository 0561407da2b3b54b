//! Course of a flow: its window, cwnd and queue over time, in a bounded number of samples for any
//! duration.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_tcp::conn::Snapshot;

/// Samples of a flow at equal intervals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathCourse {
    step: Duration,
    samples: Vec<PathSample>,
}

/// A flow at one moment, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PathSample {
    /// Room at the receiver, as the sender knows it (SND.WND).
    pub window: u64,
    /// Congestion window (cwnd).
    pub cwnd: u64,
    /// Text sent and not acknowledged.
    pub in_flight: u64,
    /// Queue in front of the line, of all flows.
    pub queue: u64,
    /// Text acknowledged so far.
    pub acked: u64,
    /// Segments retransmitted so far.
    pub repeated: u64,
}

impl Default for PathCourse {
    fn default() -> Self {
        Self { step: FIRST_STEP, samples: Vec::new() }
    }
}

impl PathCourse {
    /// Interval of the samples, the first at the beginning.
    pub const fn step(&self) -> Duration {
        self.step
    }

    /// The samples, at most [`PathCourse::MOST`].
    pub fn samples(&self) -> &[PathSample] {
        &self.samples
    }

    /// True if a sample is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= Instant::ZERO + self.step * self.samples.len() as u32
    }

    /// Adds the samples that are due.
    pub(super) fn note(&mut self, now: Instant, flow: Option<&Snapshot>, queue: u64) {
        let of = |flow: &Snapshot| PathSample {
            window: u64::from(flow.snd.wnd.get()),
            cwnd: flow.cwnd.into(),
            in_flight: flow.unacked_text().into(),
            queue,
            acked: flow.tally.bytes_acked,
            repeated: flow.info_counts.total_retrans.into(),
        };
        let sample = flow.map(of).unwrap_or_default();
        while self.is_due(now) {
            self.samples.push(sample);
            if self.samples.len() > Self::MOST {
                self.thin();
            }
        }
    }

    /// Halves the samples, and doubles their interval.
    fn thin(&mut self) {
        self.samples = self.samples.iter().step_by(2).copied().collect();
        self.step *= 2;
    }

    /// Most samples.
    pub const MOST: usize = 240;
}

/// Interval of samples of a short flow: a fourteenth of the round trip of a continent.
const FIRST_STEP: Duration = Duration::from_millis(5);
