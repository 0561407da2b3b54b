//! Where the connections of a load are at one moment.

use core::ops::AddAssign;

use super::Load;
use crate::transport::Transport;

/// How many connections are doing what. Those that are not told of here are not open, and nothing
/// falls due for them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct States {
    /// Their SYN is out.
    pub opening: u64,
    /// They are open, and a request or its answer is on its way.
    pub asking: u64,
    /// They are open, and kept for a later exchange.
    pub idle: u64,
    /// They were answered, and their end is awaited.
    pub closing: u64,
    /// They wait for a port.
    pub starved: u64,
    /// They failed, and rest for a moment.
    pub resting: u64,
}

impl<T: Transport> Load<T> {
    /// Where its connections are.
    pub fn states(&self) -> States {
        States {
            opening: self.opening.len().into(),
            asking: self.waiting.len().into(),
            idle: self.kept.into(),
            closing: self.closing.len().into(),
            starved: self.starved.len() as u64,
            resting: self.resting.len().into(),
        }
    }
}

/// Adds what another part of the same load counted.
impl AddAssign for States {
    fn add_assign(&mut self, other: Self) {
        let Self { opening, asking, idle, closing, starved, resting } = other;
        self.opening += opening;
        self.asking += asking;
        self.idle += idle;
        self.closing += closing;
        self.starved += starved;
        self.resting += resting;
    }
}
