//! The size of the receive buffer that the path needs: dynamic right-sizing.
//!
//! What the application reads in a round trip is what the path brings in one. The sender doubles that
//! each round trip in slow start, and hears of our window half a round trip after it is announced: twice
//! what was read is what may be under way, and by as much as it grew it may grow again. A buffer of six
//! times what was read in a round trip that brought twice what the one before it did is never what
//! limits the sender; of twice that, once it brings the same in each.
//!
//! Looked at is nothing before an eighth of the buffer arrived, so that what most connections receive
//! costs a comparison.

/// The bytes that were read in the round trip under way, and in the one before.
#[derive(Clone, Copy, Default, Debug)]
pub struct RightSizing {
    /// The bytes that had been read in all when it began, modulo 2^32.
    from: u32,
    /// When it began: our TSval, or microseconds modulo 2^32.
    since: u32,
    /// Bytes that were read in the one before; 0: none was looked at.
    last: u32,
}

/// The evidence that a round trip has ended.
#[derive(Clone, Copy, Debug)]
pub enum RoundTripEnd {
    /// A segment echoes one of our timestamps.
    Echo {
        /// Our TSval when the segment arrives, milliseconds modulo 2^32.
        now: u32,
        /// The TSecr of the segment: what our TSval was when it was sent.
        echo: u32,
    },
    /// Without timestamps the clock tells, by the round trip as it was measured.
    Clock {
        /// When the segment arrives, microseconds modulo 2^32.
        now: u32,
        /// The round trip as it was measured, microseconds; without, a whole buffer that was read is
        /// taken for what one brings.
        rtt: Option<u32>,
    },
}

impl RightSizing {
    /// True if text that brings what arrived to `received` bytes, modulo 2^32, is to be looked at, if the buffer has
    /// `size`; `begun`: what was measured before, if anything was.
    #[inline]
    pub fn is_due(begun: Option<&Self>, received: u32, size: u32) -> bool {
        received.wrapping_sub(begun.map_or(0, |it| it.from)) >= size / 8
    }

    /// The application has read `read` bytes in all, modulo 2^32, of a buffer of `size`. Returns how
    /// large that should be, if a round trip is over.
    pub fn on_text(&mut self, read: u32, size: u32, mss: u32, trip: RoundTripEnd) -> Option<u32> {
        let copied = read.wrapping_sub(self.from);
        let now = match trip {
            RoundTripEnd::Echo { now, .. } | RoundTripEnd::Clock { now, .. } => now,
        };
        if self.last == 0 {
            *self = Self { from: read, since: now, last: (size / 8).max(1) };
            return None;
        }
        let is_over = match trip {
            RoundTripEnd::Echo { echo, .. } => echo.wrapping_sub(self.since).cast_signed() > 0,
            RoundTripEnd::Clock { now, rtt: Some(rtt) } => now.wrapping_sub(self.since) >= rtt,
            RoundTripEnd::Clock { rtt: None, .. } => copied >= size,
        };
        if !is_over {
            return None;
        }
        // Of an application that reads less than that the buffer holds more than any sender has under way.
        let needed = if copied < size / 8 { 0 } else { needed(copied, self.last, mss) };
        *self = Self { from: read, since: now, last: copied.max(1) };
        Some(needed)
    }
}

/// The buffer for a path that brought `copied` bytes in a round trip and `last` in the one before: twice
/// that, 16 segments for what is late, and twice as much more as the share by which it grew, up to the
/// doubling of slow start.
fn needed(copied: u32, last: u32, mss: u32) -> u32 {
    let twice = 2 * u64::from(copied) + 16 * u64::from(mss);
    let more = copied.saturating_sub(last).min(last);
    // A peer that echoes old timestamps makes one of gigabytes.
    let growth = twice.saturating_mul(2 * u64::from(more)) / u64::from(last);
    u32::try_from(twice + growth).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
