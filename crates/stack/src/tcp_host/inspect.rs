//! Records of a shard, for `ss` and its like: copied out, nothing changed.

use core::fmt;
use core::ops::AddAssign;

use whimbrel_tcp::Context;
use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_tcp::table::{Kind, Record};
use whimbrel_wire::{Address, Endpoint, Flow};

use super::TcpHost;
use crate::Handle;
use crate::ip::{Addresses, FlowKey};
use crate::net::Net;
use crate::tcp_host::records::Records;

/// The states of RFC 9293 3.3.2 that a socket of a shard can be in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SocketState {
    /// LISTEN: a listener that awaits SYNs.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// The peer's SYN was answered, and our own is not acknowledged.
    SynReceived,
    /// ESTABLISHED: data flows both ways.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed; the peer has not.
    FinWait2,
    /// The peer closed; we have not.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed, then we did; our FIN is not acknowledged.
    LastAck,
    /// Both closed, and the peer may still repeat its FIN.
    TimeWait,
}

impl SocketState {
    /// Every state, in the order of RFC 9293.
    pub const ALL: [Self; 10] = [
        Self::Listen,
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
    ];
}

/// As RFC 9293 writes it: `SYN-SENT`.
impl fmt::Display for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        })
    }
}

/// Number of sockets in each state.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StateCounts([usize; SocketState::ALL.len()]);

impl StateCounts {
    /// Returns the number in this state.
    pub const fn of(&self, state: SocketState) -> usize {
        self.0[state as usize]
    }

    /// Each state, and how many are in it.
    pub fn iter(&self) -> impl Iterator<Item = (SocketState, usize)> + use<> {
        SocketState::ALL.into_iter().zip(self.0)
    }

    pub(crate) const fn add(&mut self, state: SocketState, count: usize) {
        self.0[state as usize] += count;
    }
}

/// Those of two shards.
impl AddAssign for StateCounts {
    fn add_assign(&mut self, other: Self) {
        for (own, others) in self.0.iter_mut().zip(other.0) {
            *own += others;
        }
    }
}

/// One line of `ss`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketEntry {
    /// The state that it is in (RFC 9293 3.3.2).
    pub state: SocketState,
    /// This side's end; a listener's address may be unspecified.
    pub local: Endpoint,
    /// The peer's end; a listener has none.
    pub remote: Option<Endpoint>,
}

impl TcpHost {
    pub(crate) fn sockets(&self, net: &Net) -> impl Iterator<Item = SocketEntry> {
        let listeners = self.passive.listeners.iter().map(|listener| SocketEntry {
            state: SocketState::Listen,
            local: listener.at(),
            remote: None,
        });
        let (records, addresses) = (&self.records, &net.ip.addresses);
        let flows = records.flows.records();
        listeners.chain(flows.filter_map(|record| records.socket_entry(record, addresses)))
    }

    pub(crate) fn states(&self) -> StateCounts {
        let mut counts = StateCounts::default();
        let records = &self.records;
        counts.add(SocketState::Listen, self.passive.listeners.len());
        counts.add(SocketState::SynReceived, records.syns.len());
        counts.add(SocketState::TimeWait, records.waits.len());
        for (_, slot) in records.connections() {
            let state = socket_state(slot.connection.state());
            // What is in TIME-WAIT is counted, though an application may hold the connection still.
            if let Some(state) = state.filter(|state| *state != SocketState::TimeWait) {
                counts.add(state, 1);
            }
        }
        counts
    }

    pub(crate) fn state_between(&self, net: &Net, flow: &Flow) -> Option<SocketState> {
        let (records, addresses) = (&self.records, &net.ip.addresses);
        let record = records.find_between(flow, addresses)?;
        records.socket_entry(record, addresses).map(|entry| entry.state)
    }

    pub(crate) fn snapshot_between(
        &self,
        cx: &Context,
        net: &Net,
        flow: &Flow,
    ) -> Option<Snapshot> {
        let record = self.records.find_between(flow, &net.ip.addresses)?;
        let is_connection = record.kind() == Kind::Connection;
        let slot = self.records.connections.0.get(record.index()).filter(|_| is_connection)?;
        Some(slot.connection.snapshot(cx.now, &cx.tunables))
    }
}

impl Records {
    pub(crate) fn snapshot(&self, cx: &Context, handle: Handle) -> Option<Snapshot> {
        self.held(handle).map(|slot| slot.connection.snapshot(cx.now, &cx.tunables))
    }

    pub(crate) fn syns_sent(&self, handle: Handle) -> Option<u32> {
        self.held(handle).map(|slot| slot.connection.syns_sent())
    }
}

impl Records {
    /// The record of what is between these two ends.
    pub(crate) fn find_between(&self, flow: &Flow, addresses: &Addresses) -> Option<Record> {
        let key = FlowKey {
            remote: flow.remote.addr,
            remote_port: flow.remote.port,
            local_port: flow.local.port,
            local_index: addresses.index_of_any(&flow.local.addr)?,
        };
        self.find(self.hash(&key), &key)
    }

    fn socket_entry(&self, record: Record, addresses: &Addresses) -> Option<SocketEntry> {
        let index = record.index();
        let (state, local_index, local_port, remote) = match record.kind() {
            Kind::Connection => {
                let connection = &self.connections.0.get(index)?.connection;
                let remote = Endpoint::new(*connection.remote(), connection.remote_port());
                let state = socket_state(connection.state())?;
                (state, connection.local_index(), connection.local_port(), remote)
            }
            Kind::SynEntry => {
                let entry = self.syns.get(index)?;
                let (at, port) = (entry.local_index(), entry.local_port());
                (SocketState::SynReceived, at, port, entry.remote())
            }
            Kind::TimeWait => {
                let ended = self.waits.get(index)?.ended();
                let remote = Endpoint::new(ended.remote, ended.remote_port);
                (SocketState::TimeWait, ended.local_index, ended.local_port, remote)
            }
        };
        let local: Address = *addresses.get(local_index)?;
        Some(SocketEntry { state, local: Endpoint::new(local, local_port), remote: Some(remote) })
    }
}

pub(crate) fn socket_state(state: State) -> Option<SocketState> {
    Some(match state {
        State::SynSent => SocketState::SynSent,
        State::SynReceived => SocketState::SynReceived,
        State::Established => SocketState::Established,
        State::FinWait1 => SocketState::FinWait1,
        State::FinWait2 => SocketState::FinWait2,
        State::CloseWait => SocketState::CloseWait,
        State::Closing => SocketState::Closing,
        State::LastAck => SocketState::LastAck,
        State::TimeWait => SocketState::TimeWait,
        State::Closed => return None,
    })
}
