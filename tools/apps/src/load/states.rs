//! Numbers of a load's connections by state.

use super::Load;
use crate::transport::Transport;

/// Numbers of connections by state. Connections in none of these are not open, and nothing falls
/// due for them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct States {
    /// Opening: the SYN is sent.
    pub opening: u64,
    /// Open, with a request or its response under way.
    pub asking: u64,
    /// Open, and kept for a later exchange.
    pub idle: u64,
    /// Answered, and closing.
    pub closing: u64,
    /// Waiting for a port.
    pub starved: u64,
    /// Resting after a failure.
    pub resting: u64,
}

impl<T: Transport> Load<T> {
    /// Counts the connections by state.
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

whimbrel_base::sums! {
    /// Adds the counts of another part of the load.
    States { opening, asking, idle, closing, starved, resting }
}
