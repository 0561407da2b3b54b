//! The time that a stack follows: the machine's, or tokio's, which tests can pause.

use std::hint;

use whimbrel_io::Clock;

/// Source of a stack's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeSource {
    /// The machine's monotonic clock.
    Machine,
    /// The clock of the current tokio runtime, which `tokio::time::pause` stops.
    Runtime,
}

impl TimeSource {
    /// Starts a clock at zero.
    pub(crate) fn start(self) -> Clock {
        match self {
            Self::Machine => Clock::start(),
            Self::Runtime => Clock::start_with(|| tokio::time::Instant::now().into_std()),
        }
    }
}

/// True if the clock of the current tokio runtime is paused. Tokio has no call that tells, so this
/// waits until the machine's clock has moved, and compares.
pub(crate) fn is_paused() -> bool {
    let first = tokio::time::Instant::now();
    let before = std::time::Instant::now();
    while std::time::Instant::now() == before {
        hint::spin_loop();
    }
    // Tokio's unpaused clock is the machine's, which has moved in between.
    tokio::time::Instant::now() == first
}

#[cfg(test)]
mod tests;
