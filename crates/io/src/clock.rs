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
mod tests {
    use super::*;

    #[test]
    fn a_clock_starts_at_zero_and_does_not_go_back() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first < Instant::from_millis(1_000), "{first:?}");
        assert!(clock.now() >= first);
        assert_eq!(clock.until(Instant::ZERO), Duration::ZERO);
        assert!(clock.until(Instant::from_millis(100_000)) > Duration::from_secs(90));
    }
}
