//! Measurements of a run: latencies, phases, rates, statuses and errors.

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

/// All measurements of a run. Latencies are in nanoseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Record {
    /// From the start of an exchange to its last byte.
    pub service: Histogram<u64>,
    /// Latency from the time at which the exchange was due at the requested rate: a user's waiting
    /// time (the correction of coordinated omission). Exchanges due but not answered by the end
    /// count with their wait until then, if some response took no longer. Without a rate equal to
    /// `service`.
    pub corrected: Histogram<u64>,
    phases: [Histogram<u64>; Phase::ALL.len()],
    /// Exchanges answered, by status (0 if there is none).
    pub statuses: BTreeMap<u16, u64>,
    /// Failed exchanges, by reason.
    pub conn_errors: BTreeMap<ConnError, u64>,
    /// Exchanges answered, and body bytes received, by interval.
    pub intervals: Intervals,
    /// Bytes of the bodies of answers.
    pub body: u64,
    /// Connections established.
    pub opened: u64,
    /// Number of SYNs for those of measured exchanges, if the transport counts them.
    pub syns: Option<SynCounts>,
    /// Connections that failed after their response.
    pub unclean: u64,
    /// Connections that the server was to close after its response, and did not in time.
    pub unclosed: u64,
    /// Exchanges repeated on a new connection: the server had closed the kept one, or sent data
    /// there without a request.
    pub repeated: u64,
    /// Most bytes of a head until it was too long.
    pub longest_head: u64,
    /// Addresses of the target's name where no server answered, with the errors.
    pub unreached: Vec<(Endpoint, ConnError)>,
    /// Exchanges that waited for a port.
    pub starved: u64,
    /// Delays of connections, by their cause.
    pub held: Held,
    /// Why no port was free at the last failed search.
    pub shortage: Option<PortShortage>,
    /// Number of connections wanted.
    pub connections: Connections,
    /// Time in pauses, which is not part of the run. The times below, and intervals, leave it out.
    /// Events during a pause count at its start.
    pub paused: Duration,
    /// Start of the measurement, after the warm-up.
    pub began: Instant,
    /// End, or time of the last event.
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
    /// From there to the end of the connection, if it ends.
    Close,
}

impl Phase {
    /// All phases, in order.
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
    /// An empty record with intervals of this length (>= 1 ms).
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

    /// Exchanges answered.
    pub fn answered(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Exchanges answered with a status below 400.
    pub fn succeeded(&self) -> u64 {
        self.statuses.range(..400).map(|(_, count)| count).sum()
    }

    /// Exchanges that failed for any reason.
    pub fn failed(&self) -> u64 {
        self.conn_errors.values().sum()
    }

    /// Duration without pauses.
    pub fn elapsed(&self) -> Duration {
        self.until.since(self.began)
    }

    /// `time` as a share of the time of all connections, 0 to 1.
    pub fn share(&self, time: Duration) -> f64 {
        let whole = self.elapsed().as_secs_f64() * f64::from(self.connections.most);
        if whole > 0.0 { (time.as_secs_f64() / whole).min(1.0) } else { 0.0 }
    }

    /// Exchanges answered per second.
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

    /// Counts `count` exchanges that were due this long before the end and not answered.
    pub(crate) fn leave_unanswered(&mut self, waited: Duration, count: u64) {
        self.corrected.saturating_record_n(nanos(waited), count);
    }

    pub(crate) fn fail(&mut self, at: Instant, conn_error: ConnError) {
        *self.conn_errors.entry(conn_error).or_default() += 1;
        self.intervals.count_failed(at.since(self.began));
    }
}

/// Adds the measurements of another thread during the same time.
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
            (Some(one), Some(another)) => Some(one.merge(another)),
            (one, another) => one.or(another),
        };
        self.connections += other.connections;
        self.paused = self.paused.max(other.paused);
        self.began = self.began.min(other.began);
        self.until = self.until.max(other.until);
    }
}

/// An exchange with its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) service: Duration,
    pub(crate) corrected: Duration,
    pub(crate) status: u16,
    pub(crate) body: u64,
}

/// Rate of `count` in `time`.
pub fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Values up to an hour; longer ones count as an hour.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000_000, 3).expect("the bounds are constants, and good ones")
}
