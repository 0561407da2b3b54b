//! Pacing: text leaves in quanta, spread over the round trip.

use core::num::NonZeroU64;

use whimbrel_base::{Instant, Micros};

use crate::cc::{SHORTEST_PACED_TRIP, Window};

/// The time at which a paced flow may send text next, and the size of what it sends at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pacer {
    next: Instant,
    /// The most bytes that leave at once; 0 before a rate is known.
    quantum: u32,
    /// The most bytes per second, if that was set.
    most: Option<NonZeroU64>,
}

/// Rates of a flow whose algorithm has none of its own, percent of a window in each round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacingRatios {
    /// In slow start, up to half of ssthresh: the window doubles meanwhile.
    pub slow_start: u16,
    /// After slow start.
    pub avoidance: u16,
}

impl PacingRatios {
    /// Bytes per second of a flow with this window; `None` where its round trip is less than a
    /// millisecond, which a quantum fills, or was not measured.
    pub fn rate(self, window: &Window, srtt: Micros) -> Option<u64> {
        if srtt < SHORTEST_PACED_TRIP {
            return None;
        }
        let ratio =
            if window.cwnd < window.ssthresh / 2 { self.slow_start } else { self.avoidance };
        // In hundredths of a microsecond: 2^30 bytes by 1,000 percent by 10^4 fit.
        Some(u64::from(window.cwnd) * u64::from(ratio) * 10_000 / u64::from(srtt.get()))
    }
}

impl Pacer {
    /// Most of what one segment, or one super-segment, may have while a flow is paced, bytes; `u32::MAX`
    /// before that.
    #[inline]
    pub const fn quantum(&self) -> u32 {
        if self.quantum == 0 { u32::MAX } else { self.quantum }
    }

    /// True if text was paced.
    #[inline]
    pub const fn has_begun(&self) -> bool {
        self.quantum != 0
    }

    /// The most bytes per second, if that was set.
    #[inline]
    pub const fn most(&self) -> Option<NonZeroU64> {
        self.most
    }

    /// From now on the flow has at most so many bytes per second.
    pub const fn set_most(&mut self, most: Option<NonZeroU64>) {
        (self.most, self.quantum) = (most, 0);
    }

    /// The rate of a flow that would have `rate` bytes per second; `None`: it is not paced.
    pub fn bounded(&self, rate: Option<u64>) -> Option<u64> {
        match self.most {
            Some(most) => Some(rate.map_or(most.get(), |rate| rate.min(most.get()))),
            None => rate,
        }
    }

    /// When text may leave next.
    #[inline]
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Notes that `bytes` of text left at `now`, of a flow that has `rate` bytes per second and full
    /// segments of `mss` bytes. Returns true if the next have to wait.
    pub fn on_sent(&mut self, bytes: u32, rate: u64, mss: u32, now: Instant) -> bool {
        let rate = rate.max(1);
        let quantum = (rate / QUANTA_PER_SECOND).min(u64::from(MOST_AT_ONCE)) as u32;
        self.quantum = quantum.max(2 * mss);
        let (now, credit) = (now.as_nanos(), nanos_of(self.quantum, rate).max(LEAST_CREDIT));
        // A wait that ended late is caught up with, up to the credit: without that a thread that sleeps
        // 50 us too long each time would lose them each time.
        let begun = self.next.as_nanos().max(now.saturating_sub(credit));
        let next =
            begun.saturating_add(nanos_of(bytes, rate)).min(now.saturating_add(LONGEST_WAIT));
        self.next = Instant::from_nanos(next);
        next > now.saturating_add(SHORTEST_WAIT)
    }
}

/// The nanoseconds that a flow of `rate` bytes per second takes for so many bytes.
// As numbers: a `Duration` is taken apart and put together again at each step.
const fn nanos_of(bytes: u32, rate: u64) -> u64 {
    bytes as u64 * 1_000_000_000 / rate
}

/// A quantum is a millisecond of the flow's text, within two full segments and this size.
const QUANTA_PER_SECOND: u64 = 1_000;
const MOST_AT_ONCE: u32 = 64_000;
/// A thread that sleeps is woken up late by as much, nanoseconds.
const LEAST_CREDIT: u64 = 100_000;
/// The longest wait, nanoseconds: a round trip that was measured over an outage makes a rate of nearly nothing. cwnd
/// bounds what leaves anyway.
const LONGEST_WAIT: u64 = 1_000_000_000;
/// A timer is no more exact than this: less is not waited for, and made up for by the next wait. Nanoseconds.
const SHORTEST_WAIT: u64 = 8_192;

#[cfg(test)]
mod tests;
