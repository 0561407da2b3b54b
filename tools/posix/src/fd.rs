//! Number of a descriptor.

/// A descriptor number; any value, open or not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fd(pub i32);

impl Fd {
    /// First number that is assigned: 0 to 2 are in use in every process.
    pub const FIRST: Self = Self(3);
    /// Below every other: where a walk begins.
    pub(crate) const LEAST: Self = Self(i32::MIN);
    /// Above every other: where a walk ends.
    pub(crate) const GREATEST: Self = Self(i32::MAX);
}
