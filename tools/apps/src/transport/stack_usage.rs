//! Resources that a transport holds, for monitoring.

use core::ops::AddAssign;

/// Resources that a transport holds at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackUsage {
    /// Connections of this stack in TIME-WAIT.
    pub time_wait: u64,
    /// Ports in use, with those in TIME-WAIT; `None` if they are not counted.
    pub ports_in_use: Option<u64>,
    /// Number of ports to choose from, at each address of this side.
    pub ports: u64,
}

/// Adds that of another shard: all use one range.
impl AddAssign for StackUsage {
    fn add_assign(&mut self, other: Self) {
        self.time_wait += other.time_wait;
        self.ports_in_use = self.ports_in_use.zip(other.ports_in_use).map(|(one, more)| one + more);
        self.ports = self.ports.max(other.ports);
    }
}
