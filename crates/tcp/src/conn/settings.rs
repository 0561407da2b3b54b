//! Settings that an application can change at any time.

use whimbrel_recovery::cc::Algorithm;

use crate::conn::{Connection, Nagle};

/// Probing of a silent connection (RFC 9293 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum KeepAlive {
    /// A peer that is silent for long is probed (`SO_KEEPALIVE`).
    On,
    /// A silent connection stays open until one side sends.
    #[default]
    Off,
}

impl Connection {
    /// Switches Nagle's algorithm off or on.
    pub fn set_nodelay(&mut self, nagle: Nagle) {
        self.transfer.tcb.sender.set_nagle(nagle);
    }

    /// Which algorithm sets the congestion window.
    pub const fn congestion_control(&self) -> Algorithm {
        self.transfer.tcb.sender.algorithm()
    }
}
