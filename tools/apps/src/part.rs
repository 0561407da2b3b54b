//! Work in several parts, one for each shard.

/// One part of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Number of the part (`0 .. of`).
    pub number: u32,
    /// Number of parts (>= 1).
    pub of: u32,
}

impl Part {
    /// The only part of undivided work.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Its share of `count`: the shares add up to `count` and differ by at most one.
    pub const fn share(self, count: u64) -> u64 {
        let of = self.of as u64;
        count / of + ((self.number as u64) < count % of) as u64
    }
}

#[cfg(test)]
mod tests;
