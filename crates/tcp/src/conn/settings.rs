//! What an application can set on a connection, at any time.

use whimbrel_recovery::cc::Algorithm;

use super::{Connection, Cork, Flags, Nagle, State};
use crate::Context;

/// Whether the connection is probed when it is silent (RFC 9293 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum KeepAlive {
    /// A peer that is silent for long is probed (`SO_KEEPALIVE`).
    On,
    /// A silent connection stays open until somebody sends.
    #[default]
    Off,
}

impl Connection {
    /// Switches Nagle's algorithm off or on.
    pub fn set_nodelay(&mut self, nagle: Nagle) {
        self.sender.set_nagle(nagle);
    }

    /// Holds back segments that are not full, or lets them go.
    pub fn set_cork(&mut self, cx: &Context, cork: Cork) {
        self.sender.set_cork(cork);
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.watch_for_stall(cx);
        }
    }

    /// Probes the connection when it is silent, or stops to.
    pub fn set_keep_alive(&mut self, cx: &Context, keep_alive: KeepAlive) {
        match keep_alive {
            KeepAlive::On => self.start_keep_alive(cx),
            KeepAlive::Off => {
                self.flags.clear(Flags::KEEP_ALIVE);
                self.sender.set_keep_alive(false);
                self.keep_alive_probes = 0;
                if self.may_be_probed() {
                    self.timers.stop_life();
                }
            }
        }
    }

    /// Which algorithm sets the congestion window.
    pub const fn congestion_control(&self) -> Algorithm {
        self.sender.algorithm()
    }

    /// From now on this algorithm sets the congestion window, beginning with what it is.
    pub fn set_congestion_control(&mut self, algorithm: Algorithm) {
        let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        self.sender.set_algorithm(algorithm, queue);
    }
}
