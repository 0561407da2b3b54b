//! Number of a load's connections, if it changed during the run.

/// Number of concurrent connections wanted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Connections {
    /// The fewest at any time of the run.
    pub least: u32,
    /// The most at any time of the run.
    pub most: u32,
    /// The number at its end.
    pub last: u32,
}

impl Connections {
    /// A constant number.
    pub const fn of(count: u32) -> Self {
        Self { least: count, most: count, last: count }
    }

    /// True if the number changed.
    pub const fn have_changed(self) -> bool {
        self.least != self.most
    }

    /// Changes the number from now on.
    pub(crate) fn change(&mut self, count: u32) {
        let Self { least, most, .. } = *self;
        *self = Self { least: least.min(count), most: most.max(count), last: count };
    }
}

whimbrel_base::sums! {
    /// Adds those of another part, which has its share of the connections.
    Connections { least, most, last }
}
