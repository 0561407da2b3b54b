//! Listeners whose connections wait because the system has nothing left for them.

use std::io;
use std::time::{Duration, Instant};

use super::KernelListener;

/// What the system lacked when a connection was to be accepted. The kernel tells of each connection once:
/// of those that wait it would tell no more.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// Those that have more to accept.
    pub(super) listeners: Vec<KernelListener>,
    /// When they are tried again; `None`: at once, since something was closed.
    pub(super) next: Option<Instant>,
    /// Why, if it was not told yet.
    pub(super) untold: Option<io::Error>,
    /// When it was told last.
    told: Option<Instant>,
}

impl Shortage {
    /// This listener's next connection has to wait.
    pub(super) fn note(&mut self, listener: KernelListener, error: &io::Error) {
        let now = Instant::now();
        if !self.listeners.contains(&listener) {
            self.listeners.push(listener);
        }
        self.next = Some(now + RETRY);
        if self.told.is_none_or(|told| now.duration_since(told) >= SILENCE) {
            self.told = Some(now);
            self.untold = error.raw_os_error().map(io::Error::from_raw_os_error);
        }
    }

    /// The listeners to try again now.
    pub(super) fn due(&mut self) -> impl Iterator<Item = KernelListener> + use<> {
        let is_due = self.patience().is_some_and(|left| left.is_zero());
        let due = if is_due { std::mem::take(&mut self.listeners) } else { Vec::new() };
        due.into_iter()
    }

    /// How long until they are; `None` if there are none.
    pub(super) fn patience(&self) -> Option<Duration> {
        if self.listeners.is_empty() {
            return None;
        }
        let now = Instant::now();
        Some(self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now)))
    }
}

/// How long to wait before connections that found no descriptor are tried again, if this set has closed
/// nothing meanwhile.
const RETRY: Duration = Duration::from_millis(100);
/// How long a shortage that goes on, or comes back, is not told of again.
const SILENCE: Duration = Duration::from_secs(60);
