//! What the parts of a load, each in a shard of its own, decide together: whether to run again.

use alloc::vec::Vec;
use core::fmt::Debug;

use whimbrel_base::Instant;

use crate::Record;
use crate::record::per_second;

/// Where each part tells of its runs, and hears of those of all.
pub trait RunAgreement: Debug + Send + Sync {
    /// The part numbered `part` made these runs so far. Returns the rates, of all parts together, of
    /// the runs that every part has told of.
    fn tell(&self, part: u32, runs: &[RunCount]) -> Vec<f64>;
}

/// What a rate is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunCount {
    /// Exchanges that were answered between the two moments below.
    pub answered: u64,
    /// When the run began to be measured.
    pub began: Instant,
    /// When it ceased to be.
    pub until: Instant,
}

impl RunCount {
    /// That of a run.
    pub fn of(record: &Record) -> Self {
        Self { answered: record.answered(), began: record.began, until: record.until }
    }

    /// With what another part did meanwhile.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            began: self.began.min(other.began),
            until: self.until.max(other.until),
        }
    }

    /// Exchanges answered in a second.
    pub fn rate(&self) -> f64 {
        per_second(self.answered, self.until.since(self.began))
    }
}
