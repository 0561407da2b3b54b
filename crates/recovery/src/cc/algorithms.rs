//! The algorithms there are, by name.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{CongestionAlgorithm, CongestionControl};

/// Which algorithm a connection has: a number for its name in [`Algorithms`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Algorithm(u8);

impl Algorithm {
    /// True if it is one of [`Algorithm::OURS`].
    #[inline]
    pub const fn is_ours(self) -> bool {
        (self.0 as usize) < Self::OURS.len()
    }

    /// True if its state has a place in each connection that sends; otherwise it is boxed.
    #[inline]
    pub const fn is_in_place(self) -> bool {
        (self.0 as usize) < Self::IN_PLACE
    }

    /// True if it hears each acknowledgment, and not only of what cwnd limited.
    #[inline]
    pub const fn hears_all(self) -> bool {
        !self.is_in_place()
    }

    /// The tunable's value for it, if it is one of [`Algorithm::OURS`].
    pub fn as_ours(self) -> Option<CongestionAlgorithm> {
        CongestionAlgorithm::ALL.get(usize::from(self.0)).copied()
    }

    /// Its number, from 0 on: ours first, then those that were added, one by one.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The one of this number; if none has it, connections have Reno in its place.
    pub const fn of_number(number: u8) -> Self {
        Self(number)
    }
}

impl From<CongestionAlgorithm> for Algorithm {
    #[inline]
    fn from(named: CongestionAlgorithm) -> Self {
        Self(named as u8)
    }
}

/// Makes the state of an algorithm, for each connection one.
pub type MakeAlgorithm = Arc<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>;

/// The algorithms that connections of a shard can have: ours, and those that its user added.
#[derive(Clone, Default)]
pub struct Algorithms {
    added: Vec<(Box<str>, MakeAlgorithm)>,
    /// The algorithm of connections that name none; `None`: the tunable's.
    usual: Option<Algorithm>,
}

/// Why an algorithm cannot be added.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[non_exhaustive]
pub enum AddError {
    /// There is no room for another.
    #[error("{most} congestion controls were added, and no more can be")]
    Full {
        /// The most that can be added.
        most: u8,
    },
    /// One of ours has the name.
    #[error("{0:?} is a congestion control of the stack's own: give yours another name")]
    Ours(Box<str>),
    /// Linux, whose names these are, has none like it.
    #[error(
        "{0:?} can be no congestion control's name: give 1 to 15 letters, digits, hyphens and \
         underscores"
    )]
    Name(Box<str>),
}

/// No algorithm has this name.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("no congestion control is named {name:?}: give one of {}", known.join(", "))]
#[non_exhaustive]
pub struct UnknownAlgorithm {
    /// The name that was given.
    pub name: Box<str>,
    /// Those that there are.
    pub known: Vec<Box<str>>,
}

impl UnknownAlgorithm {
    /// Creates the error for `name`, where `known` are all that there are.
    pub fn new(name: &str, known: Vec<Box<str>>) -> Self {
        Self { name: name.into(), known }
    }
}

impl Algorithms {
    /// The most that can be added.
    const MOST: u8 = u8::MAX - Algorithm::OURS.len() as u8 + 1;

    /// Adds an algorithm, or changes what those of this name are made by; connections that have one go
    /// on with it.
    pub fn add(&mut self, name: &str, make: MakeAlgorithm) -> Result<Algorithm, AddError> {
        if Algorithm::OURS.iter().any(|(_, ours)| *ours == name) {
            return Err(AddError::Ours(name.into()));
        }
        if !is_name(name) {
            return Err(AddError::Name(name.into()));
        }
        if let Some(place) = self.added.iter().position(|(known, _)| **known == *name) {
            self.added[place].1 = make;
            return Ok(Algorithm((Algorithm::OURS.len() + place) as u8));
        }
        let number = Algorithm::OURS.len() + self.added.len();
        let algorithm =
            u8::try_from(number).map(Algorithm).map_err(|_| AddError::Full { most: Self::MOST })?;
        self.added.push((name.into(), make));
        Ok(algorithm)
    }

    /// The algorithm of a connection that names none, if the tunable says `rule`.
    #[inline]
    pub fn usual(&self, rule: CongestionAlgorithm) -> Algorithm {
        self.usual.unwrap_or_else(|| rule.into())
    }

    /// Sets the algorithm of later connections that select none, in place of the tunable's.
    pub const fn set_usual(&mut self, algorithm: Algorithm) {
        self.usual = Some(algorithm);
    }

    /// The algorithm of this name, or which names there are.
    pub fn named(&self, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
        self.find(name).ok_or_else(|| UnknownAlgorithm {
            name: name.into(),
            known: self.names().map(Box::from).collect(),
        })
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

    /// The added algorithms: names and constructors, in the order of their numbers.
    pub fn added(&self) -> impl Iterator<Item = (&str, &MakeAlgorithm)> {
        self.added.iter().map(|(name, make)| (&**name, make))
    }

    /// The state of an algorithm for one connection, if it is boxed.
    pub(super) fn make(&self, algorithm: Algorithm) -> Option<Box<dyn CongestionControl>> {
        if algorithm.is_ours() {
            return algorithm.make();
        }
        let place = usize::from(algorithm.0).checked_sub(Algorithm::OURS.len())?;
        self.added.get(place).map(|(_, make)| make())
    }
}

/// As Linux has them: 16 bytes with the zero at their end.
fn is_name(name: &str) -> bool {
    let fits = (1..=15).contains(&name.len());
    fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

impl fmt::Debug for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
