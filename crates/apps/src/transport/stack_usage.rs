//! What a transport holds, for whoever watches it.

use core::ops::AddAssign;

/// What a transport holds at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackUsage {
    /// Connections of this stack that are in TIME-WAIT.
    pub time_wait: u64,
    /// Ports in use, those of TIME-WAIT included; `None` if they are not counted.
    pub ports_in_use: Option<u64>,
    /// How many ports there are to draw from, at each address of this side.
    pub ports: u64,
}

/// That of another shard: all draw from one range.
impl AddAssign for StackUsage {
    fn add_assign(&mut self, other: Self) {
        self.time_wait += other.time_wait;
        self.ports_in_use = self.ports_in_use.zip(other.ports_in_use).map(|(one, more)| one + more);
        self.ports = self.ports.max(other.ports);
    }
}
