//! Round trips that were measured one after the other, a few at a time.

/// Round trips of a part of a round. The least of them is what the path adds: jitter and the sender's own bursts
/// make some of them longer, but not all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    /// The least of them, microseconds.
    least: u32,
    /// When the first one was measured, microseconds modulo 2^32.
    begun: u32,
    count: u8,
}

impl Default for Samples {
    fn default() -> Self {
        Self { least: u32::MAX, begun: 0, count: 0 }
    }
}

impl Samples {
    /// A round trip of `rtt` microseconds was measured at `now`, microseconds modulo 2^32. Returns the least, if
    /// there are enough; the next one begins anew.
    pub(super) fn on_sample(&mut self, now: u32, rtt: u32) -> Option<u32> {
        if self.count == 0 {
            self.begun = now;
        }
        self.least = self.least.min(rtt);
        self.count = self.count.saturating_add(1);
        if self.count < FEWEST || now.wrapping_sub(self.begun) < QUANTUM {
            return None;
        }
        Some(core::mem::take(self).least)
    }
}

/// As many as HyStart++ needs of a round (RFC 9406 4.3).
const FEWEST: u8 = 8;
/// The time in which what leaves at once is acknowledged, at the rate at which it does: the first of it waits least.
const QUANTUM: u32 = 1_000;

#[cfg(test)]
mod tests;
