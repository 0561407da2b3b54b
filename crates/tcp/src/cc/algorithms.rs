//! The algorithms there are, by name.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::CongestionControl;
use crate::tunables::CongestionAlgorithm;

/// Which algorithm a connection has: a number for its name in [`Algorithms`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Algorithm(u8);

impl Algorithm {
    /// Reno: RFC 5681.
    pub const RENO: Self = Self(0);
    /// CUBIC: RFC 9438.
    pub const CUBIC: Self = Self(1);

    /// Those of this crate, and their names, which are Linux's.
    pub const OURS: [(Self, &'static str); 2] = [(Self::RENO, "reno"), (Self::CUBIC, "cubic")];

    /// Whether it is one of [`Algorithm::OURS`].
    #[inline]
    pub const fn is_ours(self) -> bool {
        (self.0 as usize) < Self::OURS.len()
    }
}

impl From<CongestionAlgorithm> for Algorithm {
    #[inline]
    fn from(named: CongestionAlgorithm) -> Self {
        match named {
            CongestionAlgorithm::Cubic => Self::CUBIC,
            CongestionAlgorithm::Reno => Self::RENO,
        }
    }
}

/// Makes the state of an algorithm, for each connection one.
pub type MakeAlgorithm = Arc<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>;

/// The algorithms that connections of a shard can have: ours, and those that its user added.
#[derive(Clone, Default)]
pub struct Algorithms {
    added: Vec<(Box<str>, MakeAlgorithm)>,
}

/// An algorithm cannot be added: there are 254 already.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("254 congestion controls were added, and no more can be")]
pub struct Full;

impl Algorithms {
    /// Adds an algorithm, or changes what those of this name are made by; connections that have one go
    /// on with it. A name of ours means ours all the same.
    pub fn add(&mut self, name: &str, make: MakeAlgorithm) -> Result<Algorithm, Full> {
        if let Some(place) = self.added.iter().position(|(known, _)| **known == *name) {
            self.added[place].1 = make;
            return Ok(Algorithm((Algorithm::OURS.len() + place) as u8));
        }
        let number = Algorithm::OURS.len() + self.added.len();
        let algorithm = u8::try_from(number).map(Algorithm).map_err(|_| Full)?;
        self.added.push((name.into(), make));
        Ok(algorithm)
    }

    /// The algorithm of this name.
    pub fn find(&self, name: &str) -> Option<Algorithm> {
        let place = self.names().position(|known| known == name)?;
        u8::try_from(place).ok().map(Algorithm)
    }

    /// The name of an algorithm.
    pub fn name(&self, algorithm: Algorithm) -> &str {
        self.names().nth(usize::from(algorithm.0)).unwrap_or_default()
    }

    /// The names of all, ours first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ours = Algorithm::OURS.iter().map(|(_, name)| *name);
        ours.chain(self.added.iter().map(|(name, _)| &**name))
    }

    /// The state of an added algorithm for one connection.
    pub(super) fn make(&self, algorithm: Algorithm) -> Option<Box<dyn CongestionControl>> {
        let place = usize::from(algorithm.0).checked_sub(Algorithm::OURS.len())?;
        self.added.get(place).map(|(_, make)| make())
    }
}

impl fmt::Debug for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
