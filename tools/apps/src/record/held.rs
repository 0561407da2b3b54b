//! Delays of connections: time that they spent neither connecting at once nor exchanging.

use core::ops::AddAssign;
use core::time::Duration;

/// Time of connections that a shortage took, and requests that the generator itself began late.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Held {
    /// Time that exchanges waited for a free port, added up.
    pub ports: Duration,
    /// Time of connection attempts whose first SYN was not answered in time, added up. Zero if the
    /// transport does not report SYNs.
    pub syns: Duration,
    /// Requests that fell due more than [`LATE`] before the generator ran.
    pub late: u64,
    /// The longest such delay.
    pub latest: Duration,
}

impl Held {
    /// The generator ran at `late` after a request was due, with `rate` requests per second.
    pub(crate) fn count_late(&mut self, late: Duration, rate: f64) {
        if late > LATE {
            self.late += (late.as_secs_f64() * rate).ceil() as u64;
            self.latest = self.latest.max(late);
        }
    }
}

/// Adds what another part of the same load measured.
impl AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.ports += other.ports;
        self.syns += other.syns;
        self.late += other.late;
        self.latest = self.latest.max(other.latest);
    }
}

/// A delay of the generator that is not reported: timers of an idle machine are this precise.
pub const LATE: Duration = Duration::from_millis(1);
