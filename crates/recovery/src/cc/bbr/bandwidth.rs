//! Rates in four bytes.

use whimbrel_base::Micros;

/// A rate in units of 8 bytes per second: at most 34 GB, or 274 Gbit, per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Bandwidth(u32);

impl Bandwidth {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const INFINITY: Self = Self(u32::MAX);
    const UNIT: u64 = 8;

    /// The rate at which `bytes` pass in `interval`.
    pub(super) fn of(bytes: u64, interval: Micros) -> Self {
        let per_second = bytes.saturating_mul(1_000_000) / u64::from(interval.get().max(1));
        // A rate that was measured is never infinite.
        Self((per_second / Self::UNIT).min(u64::from(u32::MAX - 1)) as u32)
    }

    pub(super) const fn bytes_per_second(self) -> u64 {
        self.0 as u64 * Self::UNIT
    }

    /// So many percent of it.
    pub(super) fn percent(self, percent: u32) -> Self {
        let part = u64::from(self.0) * u64::from(percent) / 100;
        Self(part.min(u64::from(u32::MAX - 1)) as u32)
    }

    /// The bytes that pass in `interval`.
    pub(super) fn bytes_in(self, interval: Micros) -> u32 {
        let bytes = u128::from(self.bytes_per_second()) * u128::from(interval.get()) / 1_000_000;
        bytes.min(u128::from(u32::MAX)) as u32
    }
}
