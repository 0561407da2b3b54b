//! Joint decision of a load's parts, each in its own shard, whether to run again.

use alloc::vec::Vec;
use core::fmt::Debug;

use whimbrel_base::Instant;

use crate::Record;
use crate::record::per_second;

/// Exchanges the runs of each part with those of the other parts.
pub trait RunAgreement: Debug + Send + Sync {
    /// Reports the runs of part number `part` so far. Returns the joint rates of the runs that
    /// every part has reported.
    fn tell(&self, part: u32, runs: &[RunCount]) -> Vec<f64>;
}

/// Counts from which a rate is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunCount {
    /// Exchanges answered between the two times below.
    pub answered: u64,
    /// Start of the measurement.
    pub began: Instant,
    /// End of the measurement.
    pub until: Instant,
}

impl RunCount {
    /// The counts of a run.
    pub fn of(record: &Record) -> Self {
        Self { answered: record.answered(), began: record.began, until: record.until }
    }

    /// Adds the counts of another part for that time.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            began: self.began.min(other.began),
            until: self.until.max(other.until),
        }
    }

    /// Exchanges answered per second.
    pub fn rate(&self) -> f64 {
        per_second(self.answered, self.until.since(self.began))
    }
}
