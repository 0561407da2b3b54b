//! Whether a worker with nothing to do looks once more, or sleeps.
//!
//! Long frames come mostly from this machine, and who sends them wakes the worker himself: of the kernel's
//! sender in bulk that was 27 % of the time (docs/measured/tun.md). So behind long frames the worker goes on
//! looking for a while. Where nothing more came in that while, it does so more and more seldom.

use std::time::Duration;

use whimbrel_base::Instant;

use crate::DeviceCounters;

/// What a worker knows of it.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// Frames that the device had delivered when it was asked last, and their bytes.
    frames: u64,
    octets: u64,
    /// Until when it goes on looking, if it does.
    until: Option<Instant>,
    /// How often nothing came, one after the other.
    failures: u8,
    /// So many times it is not to be tried.
    skipped: u32,
}

impl Spin {
    /// There is nothing to do at `now`, and the device has delivered so much. Whether to look once more.
    pub(super) fn goes_on(&mut self, now: Instant, delivered: &DeviceCounters) -> bool {
        let frames = delivered.rx_frames - self.frames;
        let octets = delivered.rx_octets - self.octets;
        (self.frames, self.octets) = (delivered.rx_frames, delivered.rx_octets);
        if frames > 0 && octets >= frames * LONG {
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

/// Mean length from which frames count as long, bytes.
const LONG: u64 = 16 << 10;
/// How long it looks: at 10 Gb/s frames of 64 KiB come 52 us apart.
const WHILE: Duration = Duration::from_micros(50);
/// From then on it is tried once in 64 times.
const MOST_FAILURES: u8 = 6;

#[cfg(test)]
mod tests;
