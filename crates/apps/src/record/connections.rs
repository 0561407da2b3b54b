//! How many connections a load had, where that was changed while it ran.

use core::ops::AddAssign;

/// How many connections there were to be at a time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Connections {
    /// The fewest at any time of the run.
    pub least: u32,
    /// The most at any time of the run.
    pub most: u32,
    /// How many there were at its end.
    pub last: u32,
}

impl Connections {
    /// That many, all the time.
    pub const fn of(count: u32) -> Self {
        Self { least: count, most: count, last: count }
    }

    /// True if there were not as many all the time.
    pub const fn have_changed(self) -> bool {
        self.least != self.most
    }

    /// That many, from now on.
    pub(crate) fn change(&mut self, count: u32) {
        let Self { least, most, .. } = *self;
        *self = Self { least: least.min(count), most: most.max(count), last: count };
    }
}

/// Those of another part of the load: each has its share of all there are at a time.
impl AddAssign for Connections {
    fn add_assign(&mut self, other: Self) {
        self.least += other.least;
        self.most += other.most;
        self.last += other.last;
    }
}
