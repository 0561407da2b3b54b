//! What a run measured: latencies, phases, rates, statuses and errors.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::AddAssign;
use core::time::Duration;

use hdrhistogram::Histogram;

use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use crate::ConnError;
use crate::transport::PortShortage;

pub use connections::Connections;
pub use held::{Held, LATE};
pub use intervals::{Count, Intervals, Spread};
pub use openings::{Ages, SynCounts};

mod connections;
mod held;
mod intervals;
mod openings;

/// Everything that a run measured. Latencies are in nanoseconds, kept to three digits.
#[derive(Clone, Debug)]
pub struct Record {
    /// From the moment an exchange began to its last byte.
    pub service: Histogram<u64>,
    /// The same from the moment it was due at the rate asked for: what a user would have waited
    /// (the correction of coordinated omission). Exchanges that were due and not answered by the end
    /// count with what was waited until then, if some answer took no longer. Without a rate equal to
    /// `service`.
    pub corrected: Histogram<u64>,
    phases: [Histogram<u64>; Phase::ALL.len()],
    /// Exchanges that were answered, by the status of the answer (0 where there is none).
    pub statuses: BTreeMap<u16, u64>,
    /// Exchanges that failed, by the reason.
    pub conn_errors: BTreeMap<ConnError, u64>,
    /// Exchanges answered, and body bytes received, by interval.
    pub intervals: Intervals,
    /// Bytes of the bodies of answers.
    pub body: u64,
    /// Connections that came to be established.
    pub opened: u64,
    /// Those of measured exchanges by how many SYNs that took, if the transport tells.
    pub syns: Option<SynCounts>,
    /// Connections that failed after their exchange had been answered.
    pub unclean: u64,
    /// Connections that the server was to close after its answer, and did not in time.
    pub unclosed: u64,
    /// Exchanges that were begun again on a new connection: the server had closed the one that was kept, or
    /// sent data there that no request had asked for.
    pub repeated: u64,
    /// The most bytes that came of a head until it was too long.
    pub longest_head: u64,
    /// Addresses of the target's name where no server answered, and why, before one did or none was left.
    pub unreached: Vec<(Endpoint, ConnError)>,
    /// Exchanges that found no port free, and waited for one.
    pub starved: u64,
    /// What held connections up, and for how long.
    pub held: Held,
    /// What kept the ports, when one was last sought in vain.
    pub shortage: Option<PortShortage>,
    /// How many connections there were to be.
    pub connections: Connections,
    /// How long the load stood still, which is no time here: the moments below are its own, and
    /// intervals too. What went on meanwhile counts with the moment that it stood still at.
    pub paused: Duration,
    /// When measuring began: behind the warm-up.
    pub began: Instant,
    /// When it ended, or the last thing happened.
    pub until: Instant,
}

/// A part of an exchange's time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// From SYN to open.
    Connect,
    /// From the request's first byte to the answer's.
    FirstByte,
    /// From the answer's first byte to its last.
    Body,
    /// From there to the end of the connection, where it ends.
    Close,
}

impl Phase {
    /// Every phase, in its order.
    pub const ALL: [Self; 4] = [Self::Connect, Self::FirstByte, Self::Body, Self::Close];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::FirstByte => "ttfb",
            Self::Body => "body",
            Self::Close => "close",
        }
    }
}

impl Record {
    /// Nothing measured; intervals of this length (>= 1 ms).
    pub fn new(interval: Duration) -> Self {
        Self {
            service: histogram(),
            corrected: histogram(),
            phases: core::array::from_fn(|_| histogram()),
            statuses: BTreeMap::new(),
            conn_errors: BTreeMap::new(),
            intervals: Intervals::new(interval),
            body: 0,
            opened: 0,
            syns: None,
            unclean: 0,
            unclosed: 0,
            repeated: 0,
            longest_head: 0,
            unreached: Vec::new(),
            starved: 0,
            held: Held::default(),
            shortage: None,
            connections: Connections::default(),
            paused: Duration::ZERO,
            began: Instant::ZERO,
            until: Instant::ZERO,
        }
    }

    /// The times of one phase.
    pub fn phase(&self, phase: Phase) -> &Histogram<u64> {
        &self.phases[phase as usize]
    }

    /// Exchanges that were answered.
    pub fn answered(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Answered ones whose status is no error (below 400).
    pub fn succeeded(&self) -> u64 {
        self.statuses.range(..400).map(|(_, count)| count).sum()
    }

    /// Exchanges that were not answered, whatever the reason.
    pub fn failed(&self) -> u64 {
        self.conn_errors.values().sum()
    }

    /// How long it took, without pauses.
    pub fn elapsed(&self) -> Duration {
        self.until.since(self.began)
    }

    /// `time` as a share of the time of all connections, 0 to 1.
    pub fn share(&self, time: Duration) -> f64 {
        let whole = self.elapsed().as_secs_f64() * f64::from(self.connections.most);
        if whole > 0.0 { (time.as_secs_f64() / whole).min(1.0) } else { 0.0 }
    }

    /// Exchanges answered in a second.
    pub fn rate(&self) -> f64 {
        per_second(self.answered(), self.elapsed())
    }

    pub(crate) fn begin(&mut self, now: Instant) {
        self.began = now;
        self.until = now;
    }

    pub(crate) fn phase_took(&mut self, phase: Phase, time: Duration) {
        self.phases[phase as usize].saturating_record(nanos(time));
    }

    pub(crate) fn answer(&mut self, at: Instant, answer: Answered) {
        self.service.saturating_record(nanos(answer.service));
        self.corrected.saturating_record(nanos(answer.corrected));
        *self.statuses.entry(answer.status).or_default() += 1;
        self.body += answer.body;
        self.intervals.count(at.since(self.began), answer.body);
    }

    /// `count` exchanges that were due so long before the end were not answered.
    pub(crate) fn leave_unanswered(&mut self, waited: Duration, count: u64) {
        self.corrected.saturating_record_n(nanos(waited), count);
    }

    pub(crate) fn fail(&mut self, at: Instant, conn_error: ConnError) {
        *self.conn_errors.entry(conn_error).or_default() += 1;
        self.intervals.count_failed(at.since(self.began));
    }
}

/// What was measured beside it at the same time, by another thread, together with it.
impl AddAssign<&Self> for Record {
    fn add_assign(&mut self, other: &Self) {
        self.service += &other.service;
        self.corrected += &other.corrected;
        for (phase, times) in self.phases.iter_mut().zip(&other.phases) {
            *phase += times;
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (conn_error, count) in &other.conn_errors {
            *self.conn_errors.entry(*conn_error).or_default() += count;
        }
        self.intervals += &other.intervals;
        self.body += other.body;
        self.opened += other.opened;
        if let Some(others) = other.syns {
            *self.syns.get_or_insert_default() += others;
        }
        self.unclean += other.unclean;
        self.unclosed += other.unclosed;
        self.repeated += other.repeated;
        self.longest_head = self.longest_head.max(other.longest_head);
        for failed in &other.unreached {
            if !self.unreached.contains(failed) {
                self.unreached.push(*failed);
            }
        }
        self.starved += other.starved;
        self.held += other.held;
        self.shortage = match (self.shortage, other.shortage) {
            (Some(one), Some(another)) => Some(one.beside(another)),
            (one, another) => one.or(another),
        };
        self.connections += other.connections;
        self.paused = self.paused.max(other.paused);
        self.began = self.began.min(other.began);
        self.until = self.until.max(other.until);
    }
}

/// An exchange that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) service: Duration,
    pub(crate) corrected: Duration,
    pub(crate) status: u16,
    pub(crate) body: u64,
}

/// `count` in a second, if it took `time`.
pub fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Up to an hour; what takes longer counts as an hour.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000_000, 3).expect("the bounds are constants, and good ones")
}
