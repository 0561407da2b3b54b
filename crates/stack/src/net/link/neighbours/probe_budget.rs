//! The limit on questions for neighbours: a bucket that fills with time.

use whimbrel_base::Instant;

/// Number of questions that may be asked now.
#[derive(Debug)]
pub(super) struct ProbeBudget {
    left: u32,
    counted: Instant,
}

impl ProbeBudget {
    /// A full bucket, at the shard's start.
    pub(super) const fn full() -> Self {
        Self { left: ASKS_AT_ONCE, counted: Instant::ZERO }
    }

    /// True if one more may be asked now, and is.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let may = self.has_any(now);
        self.left = self.left.saturating_sub(1);
        may
    }

    /// True if one more may be asked now.
    pub(super) fn has_any(&mut self, now: Instant) -> bool {
        let earned = now.since(self.counted).as_millis() * u128::from(ASKS_PER_SECOND) / 1_000;
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(earned).min(ASKS_AT_ONCE);
            self.counted = now;
        }
        self.left > 0
    }
}

/// Questions a second, about all neighbours sought together, and to all known. Fewer: many new neighbours are found late. More:
/// a scan through us becomes a storm of broadcasts.
pub const ASKS_PER_SECOND: u32 = 1_000;
/// Questions at once after a while without any.
pub const ASKS_AT_ONCE: u32 = 256;
