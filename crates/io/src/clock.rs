//! The clock: the only code that reads time.

use std::time::{Duration, SystemTime};

use whimbrel_base::Instant;

/// A monotonic clock that starts at zero: the time of a shard. A worker, its device and its port have
/// copies of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// Starts a clock at zero.
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// Returns the wall-clock time of the start in nanoseconds since 1970, which dates captures. It is
    /// 0 if the system's clock is before 1970.
    pub fn zero_since_1970(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        since.saturating_sub(self.origin.elapsed()).as_nanos() as u64
    }

    /// Returns the time until `deadline`, or zero if it has passed.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.since(self.now())
    }
}

#[cfg(test)]
mod tests;
