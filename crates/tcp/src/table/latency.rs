//! Times of passive opens: of the handshake, and of the wait to be accepted. A shard records them only on request
//! ([`Listeners::record_latencies`](super::Listeners::record_latencies)).

use core::ops::AddAssign;
use core::time::Duration;

/// A histogram of times.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LatencyHistogram {
    /// Times up to each bound, and above the last.
    counts: [u64; LatencyHistogram::BOUNDS.len() + 1],
    sum: Duration,
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

    /// Adds a time.
    pub fn note(&mut self, time: Duration) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < time);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(time);
    }

    /// Returns the number of times in each bucket: up to each of [`LatencyHistogram::BOUNDS`], and above the last.
    pub const fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the sum of all times.
    pub const fn sum(&self) -> Duration {
        self.sum
    }
}

impl AddAssign<&Self> for LatencyHistogram {
    fn add_assign(&mut self, other: &Self) {
        for (own, count) in self.counts.iter_mut().zip(&other.counts) {
            *own += count;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }
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
