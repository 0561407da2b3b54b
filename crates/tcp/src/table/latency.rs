//! Times of passive opens: of the handshake, and of the wait to be accepted. A shard records them only on request
//! ([`Listeners::record_latencies`](super::Listeners::record_latencies)).

use core::ops::AddAssign;
use core::time::Duration;

/// A histogram of times.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LatencyHistogram {
    /// Times up to each bound, and above the last.
    counts: [u64; LatencyHistogram::BOUNDS.len() + 1],
    /// Sum of all times: 584 years of them have room.
    nanos: u64,
}

impl LatencyHistogram {
    /// Upper bounds of the buckets, which contain them.
    pub const BOUNDS: [Duration; 14] = [
        Duration::from_micros(10),
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
    ];

    /// For each number of bits of a time in nanoseconds: the first bound that may be above it, and its number. No two
    /// bounds have the same highest bit, so a time is compared with only one of them.
    const NEXT_BOUND: [(u64, usize); 65] = {
        let (mut next, mut bits) = ([(u64::MAX, Self::BOUNDS.len()); 65], 0);
        while bits < next.len() {
            let mut at = Self::BOUNDS.len();
            while at > 0 && bits_of(Self::BOUNDS[at - 1].as_nanos() as u64) >= bits {
                at -= 1;
                next[bits] = (Self::BOUNDS[at].as_nanos() as u64, at);
            }
            bits += 1;
        }
        next
    };

    /// Adds a time in nanoseconds.
    #[inline]
    pub fn note(&mut self, nanos: u64) {
        let (bound, number) = Self::NEXT_BOUND[bits_of(nanos)];
        if let Some(count) = self.counts.get_mut(number + usize::from(nanos > bound)) {
            *count += 1;
        }
        self.nanos = self.nanos.wrapping_add(nanos);
    }

    /// Returns the number of times in each bucket: up to each of [`LatencyHistogram::BOUNDS`], and above the last.
    pub const fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the sum of all times.
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

impl AddAssign<&Self> for LatencyHistogram {
    fn add_assign(&mut self, other: &Self) {
        for (own, count) in self.counts.iter_mut().zip(&other.counts) {
            *own += count;
        }
        self.nanos = self.nanos.wrapping_add(other.nanos);
    }
}

/// Number of bits up to the highest that is set.
const fn bits_of(nanos: u64) -> usize {
    (u64::BITS - nanos.leading_zeros()) as usize
}

/// Times of connections that peers opened to listeners.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PassiveLatencies {
    /// Times from the SYN to the acknowledgment that completes the handshake, to a millisecond. Those of SYN cookies
    /// and of Fast Open are not known.
    pub handshake: LatencyHistogram,
    /// Times that connections waited to be accepted, from burst to burst of packets.
    pub accept_wait: LatencyHistogram,
}

impl AddAssign<&Self> for PassiveLatencies {
    fn add_assign(&mut self, other: &Self) {
        self.handshake += &other.handshake;
        self.accept_wait += &other.accept_wait;
    }
}

#[cfg(test)]
mod tests;
