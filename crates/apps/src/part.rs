//! Work in several parts, each for a shard of its own.

/// One part of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Which (`0 .. of`).
    pub number: u32,
    /// How many there are (>= 1).
    pub of: u32,
}

impl Part {
    /// The one part of what is not divided.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Its share of `count`: all together have as many, and none has two more than another.
    pub const fn share(self, count: u64) -> u64 {
        let of = self.of as u64;
        count / of + ((self.number as u64) < count % of) as u64
    }
}

#[cfg(test)]
mod tests;
