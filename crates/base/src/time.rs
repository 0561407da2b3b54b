//! Time as an argument: instants and ticks that the caller reads from a clock.
//!
//! An [`Instant`] (8 bytes, nanoseconds) is for deadlines, a [`Tick`] (4 bytes, milliseconds on a
//! circle) for small records.

use core::ops::Add;
use core::time::Duration;

/// Nanoseconds since the shard's start. Never compared between shards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Instant(u64);

impl Instant {
    /// The moment at which the shard's clock began.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens (584 years): as a deadline, "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the instant `nanos` nanoseconds after the shard's start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates the instant `millis` milliseconds after the shard's start.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the shard's start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the shard's start.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the earliest of the given instants: the time of the first of several events.
    ///
    /// It uses no iterator that flattens and takes the minimum. Called before each step, that was a
    /// twentieth of the instructions of the lab's first case (1,150 million of 55,000 requests, now
    /// 1,094).
    ///
    /// ```
    /// # use whimbrel_base::Instant;
    /// let [soon, late] = [1, 2].map(Instant::from_millis);
    /// assert_eq!(Instant::earliest([None, Some(late), Some(soon)]), Some(soon));
    /// assert_eq!(Instant::earliest([None, None]), None);
    /// ```
    #[inline]
    pub fn earliest<const N: usize>(due: [Option<Self>; N]) -> Option<Self> {
        let mut earliest: Option<Self> = None;
        for at in due {
            earliest = match (earliest, at) {
                (Some(one), Some(other)) => Some(if other < one { other } else { one }),
                (one, other) => one.or(other),
            };
        }
        earliest
    }

    /// Returns this instant plus `micros` microseconds.
    #[inline]
    #[must_use]
    pub const fn after_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros.saturating_mul(1_000)))
    }

    /// Returns the time since `earlier`: zero if that is later, and at most the range of
    /// [`Micros`].
    #[inline]
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> Micros {
        let micros = self.0.saturating_sub(earlier.0) / 1_000;
        Micros(if micros > u32::MAX as u64 { u32::MAX } else { micros as u32 })
    }

    /// Returns the nanoseconds since `earlier`: zero if that is later.
    #[inline]
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time from `earlier` to `self`, zero if `earlier` is the later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the millisecond of this instant.
    #[inline]
    pub const fn tick(self) -> Tick {
        Tick((self.0 / 1_000_000) as u32)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, duration: Duration) -> Self {
        // In 64 bits: `Duration::as_nanos` has 128, which would slow each timer.
        let seconds = duration.as_secs().saturating_mul(1_000_000_000);
        let nanos = seconds.saturating_add(u64::from(duration.subsec_nanos()));
        Self(self.0.saturating_add(nanos))
    }
}

/// Returns a duration in whole milliseconds, at most what 32 bits hold (49.7 days).
///
/// It uses 64 bits: [`Duration::as_millis`] has 128, which would slow each expiring record three
/// times.
///
/// ```
/// # use std::time::Duration;
/// # use whimbrel_base::time::millis;
/// assert_eq!(millis(Duration::from_micros(2_500_999)), 2_500);
/// assert_eq!(millis(Duration::MAX), u32::MAX);
/// ```
#[inline]
pub const fn millis(duration: Duration) -> u32 {
    let millis =
        duration.as_secs().saturating_mul(1_000).saturating_add(duration.subsec_millis() as u64);
    if millis > u32::MAX as u64 { u32::MAX } else { millis as u32 }
}

/// A time in microseconds, at most 71 minutes. Measurements of each round trip stay in this unit: a
/// [`Duration`] consists of seconds and a remainder, and each conversion costs two divisions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Micros(u32);

impl Micros {
    /// A duration of so many microseconds.
    #[inline]
    pub const fn new(micros: u32) -> Self {
        Self(micros)
    }

    /// So many milliseconds, at most 4,294,967.
    #[inline]
    pub const fn from_millis(millis: u32) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// The number of microseconds.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl From<Duration> for Micros {
    #[inline]
    fn from(duration: Duration) -> Self {
        // In 64 bits: `Duration::as_micros` has 128.
        let seconds = duration.as_secs().saturating_mul(1_000_000);
        let micros = seconds.saturating_add(u64::from(duration.subsec_micros()));
        Self(u32::try_from(micros).unwrap_or(u32::MAX))
    }
}

impl From<Micros> for Duration {
    #[inline]
    fn from(micros: Micros) -> Self {
        Self::from_micros(u64::from(micros.0))
    }
}

/// A millisecond on a circle of 2^32 (49.7 days), small enough for every record.
///
/// Two ticks are comparable while they are less than 24.8 days apart. Code that keeps a tick longer
/// must define what happens then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Tick(u32);

impl Tick {
    /// The tick numbered `millis` modulo 2^32.
    #[inline]
    pub const fn new(millis: u32) -> Self {
        Self(millis)
    }

    /// The number of milliseconds, modulo 2^32.
    #[inline]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Takes one from a token bucket of `burst` that gets one back each `interval`; `self` is the
    /// time when it is full again. Returns whether there was one.
    ///
    /// A bucket unused for a whole circle seems in use once, for `burst` intervals.
    #[inline]
    pub fn take_one(&mut self, now: Self, interval: Duration, burst: u8) -> bool {
        let interval = millis(interval);
        let all = interval.saturating_mul(u32::from(burst));
        // A time beyond all of them is in the past.
        let taken = Some(self.millis_since(now)).filter(|ahead| *ahead <= all).unwrap_or(0);
        let left = taken <= all.saturating_sub(interval);
        if left {
            *self = Self(now.0.wrapping_add(taken).wrapping_add(interval));
        }
        left
    }

    /// Milliseconds from `earlier` to `self`, counted upward on the circle.
    #[inline]
    pub const fn millis_since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}
