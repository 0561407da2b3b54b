//! A load's own time: that of its transport, less all pauses.

use core::time::Duration;

use whimbrel_base::Instant;

/// Time that can be stopped. While it never was, it is the transport's.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stopwatch {
    /// How long it stood still, but for the pause that lasts.
    paused: Duration,
    /// Since when that lasts, in the transport's time.
    since: Option<Instant>,
}

impl Stopwatch {
    /// What it shows at this moment of the transport's time.
    pub(super) fn at(&self, now: Instant) -> Instant {
        Instant::ZERO + self.since.unwrap_or(now).since(Instant::ZERO + self.paused)
    }

    /// At which moment of the transport's time it shows this, unless it stands still before.
    pub(super) fn when(&self, shown: Instant) -> Instant {
        shown + self.paused
    }

    /// How long it has stood still.
    pub(super) fn paused(&self, now: Instant) -> Duration {
        self.paused + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// True if it stands still.
    pub(super) const fn is_stopped(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn stop(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub(super) fn go_on(&mut self, now: Instant) {
        self.paused = self.paused(now);
        self.since = None;
    }
}

#[cfg(test)]
mod tests;
