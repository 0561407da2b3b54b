//! A load's clock: its transport's time without pauses.

use core::time::Duration;

use whimbrel_base::Instant;

/// Clock that can be stopped. Without pauses it shows the transport's time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stopwatch {
    /// Time in past pauses.
    paused: Duration,
    /// Start of the present pause, in the transport's time.
    since: Option<Instant>,
}

impl Stopwatch {
    /// Reading at `now`, a time of the transport.
    pub(super) fn at(&self, now: Instant) -> Instant {
        Instant::ZERO + self.since.unwrap_or(now).since(Instant::ZERO + self.paused)
    }

    /// The transport's time for this reading, unless a pause comes before.
    pub(super) fn when(&self, shown: Instant) -> Instant {
        shown + self.paused
    }

    /// Time in pauses until `now`.
    pub(super) fn paused(&self, now: Instant) -> Duration {
        self.paused + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// True in a pause.
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
