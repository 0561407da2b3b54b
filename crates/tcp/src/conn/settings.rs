//! What an application can set on a connection, at any time.

use super::{Connection, Cork, Flags, Nagle, State};
use crate::Context;
use crate::recv::recv_scale;

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
    pub fn set_cork(&mut self, cx: &Context<'_>, cork: Cork) {
        self.sender.set_cork(cork);
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.watch_for_stall(cx);
        }
    }

    /// Probes the connection when it is silent, or stops to.
    pub fn set_keep_alive(&mut self, cx: &Context<'_>, keep_alive: KeepAlive) {
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

    /// Octets that may wait to be acknowledged. What is there beyond a lesser size stays.
    pub fn set_send_size(&mut self, octets: u32) {
        self.sender.set_size(octets);
        self.tell_room();
    }

    /// Octets that may wait to be read, 1 GiB at most (RFC 7323 2.3: more cannot be announced). A window
    /// that was announced is not taken back; before the SYN was sent, the window scale follows. What was
    /// rounded up to full segments when their size became known stays so; another size is taken as it is.
    pub fn set_recv_size(&mut self, cx: &Context<'_>, octets: u32) {
        let octets = octets.min(1 << 30);
        let is_known = self.state != State::SynSent;
        if is_known && self.in_full_segments(octets, cx.tunables) == self.receiver.size() {
            return;
        }
        self.receiver.set_size(octets);
        if self.is_before_syn() {
            self.receiver.set_scale(recv_scale(cx.tunables, self.recv_limit()));
        }
    }
}
