//! Getters that walk, or copy much: for reports.

use whimbrel_tcp::conn::Snapshot;
use whimbrel_tcp::table::{Listener, PassiveLatencies};
use whimbrel_wire::Flow;

use super::Shard;
use crate::tcp_host::inspect::{SocketEntry, SocketState, StateCounts};
use crate::{Handle, ListenerId};

impl Shard {
    /// The variables of a connection at this moment.
    pub fn snapshot(&self, handle: Handle) -> Option<Snapshot> {
        self.tcp.records.snapshot(&self.cx, handle)
    }

    /// Returns the number of SYNs it took to open a connection that has just opened; of what is sent again later, it
    /// counts each segment, too.
    pub fn syns_sent(&self, handle: Handle) -> Option<u32> {
        self.tcp.records.syns_sent(handle)
    }

    /// A listener: where it listens, and how many wait.
    pub fn listener(&self, id: ListenerId) -> Option<&Listener> {
        self.tcp.passive.listeners.resolve(id)
    }

    /// Every listener, and every record in the flow table. It walks all of them.
    pub fn sockets(&self) -> impl Iterator<Item = SocketEntry> {
        self.tcp.sockets(&self.net)
    }

    /// Returns the number of sockets in each state. It walks every connection; half-open entries and TIME-WAIT
    /// records are counted already.
    pub fn states(&self) -> StateCounts {
        self.tcp.states()
    }

    /// Records from now on how long handshakes of listeners take, and how long their connections wait to be accepted.
    /// Without this call, nothing is timed.
    pub fn record_latencies(&mut self) {
        self.tcp.passive.listeners.record_latencies(self.cx.now);
    }

    /// Returns the times recorded since [`Shard::record_latencies`]; `None` before that call.
    pub fn latencies(&self) -> Option<&PassiveLatencies> {
        self.tcp.passive.listeners.latencies()
    }

    /// The state of what this shard holds between these two ends, a half-open entry or a TIME-WAIT
    /// record included; `None` if nothing. One probe of the flow table.
    pub fn state_between(&self, flow: &Flow) -> Option<SocketState> {
        self.tcp.state_between(&self.net, flow)
    }

    /// The variables of the connection between these two ends at this moment; `None` if there is none, or
    /// its application released it and it is in TIME-WAIT. One probe of the flow table.
    pub fn snapshot_between(&self, flow: &Flow) -> Option<Snapshot> {
        self.tcp.snapshot_between(&self.cx, &self.net, flow)
    }
}
