//! The clock: the only code that reads time.

use std::time::{Duration, SystemTime};

use whimbrel_base::Instant;

/// A monotonic clock that starts at zero: the time of a shard. A worker, its device and its port have
/// copies of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    read: fn() -> std::time::Instant,
}

impl Clock {
    /// Starts a clock at zero, which runs as the machine's monotonic clock.
    pub fn start() -> Self {
        Self::start_with(std::time::Instant::now)
    }

    /// Starts a clock at zero, which runs as the times that `read` returns. These must not run
    /// backwards. A runtime whose time can stand still passes its own clock here.
    pub fn start_with(read: fn() -> std::time::Instant) -> Self {
        Self { origin: read(), read }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.elapsed()
    }

    /// Returns the wall-clock time of the start in nanoseconds since 1970, which dates captures. It is
    /// 0 if the system's clock is before 1970.
    pub fn zero_since_1970(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        since.saturating_sub(self.elapsed()).as_nanos() as u64
    }

    /// Returns the time until `deadline`, or zero if it has passed.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.since(self.now())
    }

    fn elapsed(&self) -> Duration {
        (self.read)().saturating_duration_since(self.origin)
    }
}

#[cfg(test)]
mod tests;
