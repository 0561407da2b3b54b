//! The one place where time is read.

use std::time::{Duration, SystemTime};

use whimbrel_base::Instant;

/// A monotonic clock that starts at zero: a shard's own time. A worker, its device and its port
/// share one by copying it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The time since the clock was started.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// The time of day at which it showed zero, nanoseconds since 1970: what captures are dated by.
    /// 0 if the machine's calendar is before that.
    pub fn zero_since_1970(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        since.saturating_sub(self.origin.elapsed()).as_nanos() as u64
    }

    /// How long until it shows `deadline`; zero if it did.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.since(self.now())
    }
}

#[cfg(test)]
mod tests;
