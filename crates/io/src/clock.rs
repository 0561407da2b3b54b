//! The one place where time is read.

use std::time::Duration;

use whimbrel_tcp::Instant;

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

    /// What it shows.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// How long until it shows `deadline`; zero if it did.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.since(self.now())
    }
}

#[cfg(test)]
mod tests;
