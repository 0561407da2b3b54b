//! Decides whether an idle worker polls its device once more, or sleeps.
//!
//! Long frames come mostly from this machine, and their sender wakes the worker itself: this cost
//! the kernel's bulk sender 27 % of its time (docs/measured/tun.md). So after long frames the
//! worker polls for a while. If no frame arrives meanwhile, it polls less and less often.

use std::time::Duration;

use whimbrel_base::Instant;

use crate::DeviceCounters;

/// State of the decision.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// Frames that the device had delivered at the last call, and their bytes.
    frames: u64,
    bytes: u64,
    /// End of the current polling, if there is one.
    until: Option<Instant>,
    /// Number of pollings without a frame, in a row.
    failures: u8,
    /// Number of idle turns until polling is tried again.
    skipped: u32,
}

impl Spin {
    /// Returns whether to poll once more: the worker is idle at `now`, and the device has these
    /// counters.
    pub(super) fn polls_again(&mut self, now: Instant, delivered: &DeviceCounters) -> bool {
        let frames = delivered.rx_frames - self.frames;
        let bytes = delivered.rx_bytes - self.bytes;
        (self.frames, self.bytes) = (delivered.rx_frames, delivered.rx_bytes);
        if frames > 0 && bytes >= frames * LONG {
            if self.until.is_some() {
                self.failures = 0;
            }
            let tries = self.skipped == 0;
            self.skipped = self.skipped.saturating_sub(1);
            self.until = tries.then_some(now + WHILE);
            return tries;
        }
        let Some(until) = self.until else { return false };
        if now < until {
            return true;
        }
        self.until = None;
        self.failures = (self.failures + 1).min(MOST_FAILURES);
        self.skipped = 1 << self.failures;
        false
    }
}

/// Mean length from which frames count as long, in bytes.
const LONG: u64 = 16 << 10;
/// Duration of polling: at 10 Gb/s frames of 64 KiB arrive 52 us apart.
const WHILE: Duration = Duration::from_micros(50);
/// Number of failures from which polling is tried once in 64 times.
const MOST_FAILURES: u8 = 6;

#[cfg(test)]
mod tests;
