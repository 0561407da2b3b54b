//! How a flow goes: its window, cwnd and queue over time, in a bounded number of samples however long that
//! is.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_tcp::conn::Snapshot;

/// Samples of a flow at equal distances of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathCourse {
    step: Duration,
    samples: Vec<PathSample>,
}

/// A flow at one moment, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PathSample {
    /// What the receiver has room for, as the sender knows (SND.WND).
    pub window: u64,
    /// cwnd: what may be in flight for the network's sake.
    pub cwnd: u64,
    /// Text that was sent and not acknowledged.
    pub in_flight: u64,
    /// What waits in front of the line, of all flows.
    pub queue: u64,
    /// Text that was acknowledged so far.
    pub acked: u64,
    /// Segments that were sent again so far.
    pub repeated: u64,
}

impl Default for PathCourse {
    fn default() -> Self {
        Self { step: FIRST_STEP, samples: Vec::new() }
    }
}

impl PathCourse {
    /// How far samples are apart: the first is of the beginning.
    pub const fn step(&self) -> Duration {
        self.step
    }

    /// The samples, at most [`PathCourse::MOST`].
    pub fn samples(&self) -> &[PathSample] {
        &self.samples
    }

    /// True if the time of a sample has come.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= Instant::ZERO + self.step * self.samples.len() as u32
    }

    /// A look at the flow, for each sample whose time has come since the last.
    pub(super) fn note(&mut self, now: Instant, flow: Option<&Snapshot>, queue: u64) {
        let of = |flow: &Snapshot| PathSample {
            window: u64::from(flow.snd.wnd.get()),
            cwnd: flow.cwnd.into(),
            in_flight: flow.unacked_text().into(),
            queue,
            acked: flow.tally.bytes_acked,
            repeated: flow.mishaps.total_retrans.into(),
        };
        let sample = flow.map(of).unwrap_or_default();
        while self.is_due(now) {
            self.samples.push(sample);
            if self.samples.len() > Self::MOST {
                self.thin();
            }
        }
    }

    /// Half as many, twice as far apart.
    fn thin(&mut self) {
        self.samples = self.samples.iter().step_by(2).copied().collect();
        self.step *= 2;
    }

    /// The most samples.
    pub const MOST: usize = 240;
}

/// How far apart samples of a short flow are: a fourteenth of the round trip of a continent.
const FIRST_STEP: Duration = Duration::from_millis(5);
