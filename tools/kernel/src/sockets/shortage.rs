//! Listeners whose connections wait because the system has no resources for them.

use std::io;
use std::time::{Duration, Instant};

use super::KernelListener;

/// A lack of resources when a connection was to be accepted. The kernel reports each connection
/// once, and does not report those that wait again.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// Listeners with more to accept.
    pub(super) listeners: Vec<KernelListener>,
    /// Time of the next attempt; `None`: at once, because a socket was closed.
    pub(super) next: Option<Instant>,
    /// The error, if it was not reported yet.
    pub(super) unreported: Option<io::Error>,
    /// Time of the last report.
    reported_at: Option<Instant>,
}

impl Shortage {
    /// Records that this listener's next connection has to wait.
    pub(super) fn note(&mut self, listener: KernelListener, error: &io::Error) {
        let now = Instant::now();
        if !self.listeners.contains(&listener) {
            self.listeners.push(listener);
        }
        self.next = Some(now + RETRY);
        if self.reported_at.is_none_or(|reported_at| now.duration_since(reported_at) >= SILENCE) {
            self.reported_at = Some(now);
            self.unreported = error.raw_os_error().map(io::Error::from_raw_os_error);
        }
    }

    /// Returns the listeners to try again now.
    pub(super) fn due(&mut self) -> impl Iterator<Item = KernelListener> + use<> {
        let is_due = self.patience().is_some_and(|left| left.is_zero());
        let due = if is_due { std::mem::take(&mut self.listeners) } else { Vec::new() };
        due.into_iter()
    }

    /// Returns the time until the next attempt; `None` if there are no listeners.
    pub(super) fn patience(&self) -> Option<Duration> {
        if self.listeners.is_empty() {
            return None;
        }
        let now = Instant::now();
        Some(self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now)))
    }
}

/// Delay of the next attempt if this set has closed nothing meanwhile.
const RETRY: Duration = Duration::from_millis(100);
/// Time during which a continuing or repeated shortage is not reported again.
const SILENCE: Duration = Duration::from_secs(60);
