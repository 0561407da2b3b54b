//! What a shard holds, for `ss` and its like: copied out, nothing changed.

use core::fmt;

use whimbrel_tcp::conn::{Snapshot, State};
use whimbrel_tcp::table::{Kind, Listener, Record};
use whimbrel_wire::{Address, Endpoint, Flow};

use super::Shard;
use crate::ip::FlowKey;
use crate::{Handle, ListenerId};

/// The states of RFC 9293 3.3.2 that a socket of a shard can be in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SocketState {
    /// A listener.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// The peer's SYN was answered, and our own is not acknowledged.
    SynReceived,
    /// Data flows.
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

/// One line of `ss`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketEntry {
    /// Its state.
    pub state: SocketState,
    /// This side's end; a listener's address may be unspecified.
    pub local: Endpoint,
    /// The peer's end; a listener has none.
    pub remote: Option<Endpoint>,
}

/// Getters that walk, or copy much: for reports.
impl Shard {
    /// The variables of a connection at this moment.
    pub fn snapshot(&self, handle: Handle) -> Option<Snapshot> {
        self.slot(handle).map(|slot| slot.connection.snapshot(self.now, &self.tunables))
    }

    /// A listener: where it listens, and how many wait.
    pub fn listener(&self, id: ListenerId) -> Option<&Listener> {
        self.listeners.resolve(id)
    }

    /// Every listener, and every record in the flow table. It walks all of them.
    pub fn sockets(&self) -> impl Iterator<Item = SocketEntry> {
        let listeners = self.listeners.iter().map(|listener| SocketEntry {
            state: SocketState::Listen,
            local: listener.at(),
            remote: None,
        });
        listeners.chain(self.records.flows.records().filter_map(|record| self.entry(record)))
    }

    /// The state of what this shard holds between these two ends, a half-open entry or a TIME-WAIT
    /// record included; `None` if nothing. One probe of the flow table.
    pub fn state_between(&self, flow: &Flow) -> Option<SocketState> {
        let key = FlowKey {
            remote: flow.remote.addr,
            remote_port: flow.remote.port,
            local_port: flow.local.port,
            local_index: self.host.addresses.index_of(&flow.local.addr)?,
        };
        let record = self.records.find(self.records.hash(&key), &key)?;
        self.entry(record).map(|entry| entry.state)
    }

    fn entry(&self, record: Record) -> Option<SocketEntry> {
        let index = record.index();
        let (state, local_index, local_port, remote) = match record.kind() {
            Kind::Connection => {
                let connection = &self.records.connections.0.get(index)?.connection;
                let remote = Endpoint::new(*connection.remote(), connection.remote_port());
                let state = socket_state(connection.state())?;
                (state, connection.local_index(), connection.local_port(), remote)
            }
            Kind::SynEntry => {
                let entry = self.records.syns.get(index)?;
                let (at, port) = (entry.local_index(), entry.local_port());
                (SocketState::SynReceived, at, port, entry.remote())
            }
            Kind::TimeWait => {
                let ended = self.records.waits.get(index)?.ended();
                let remote = Endpoint::new(ended.remote, ended.remote_port);
                (SocketState::TimeWait, ended.local_index, ended.local_port, remote)
            }
        };
        let local: Address = *self.host.addresses.get(local_index)?;
        Some(SocketEntry { state, local: Endpoint::new(local, local_port), remote: Some(remote) })
    }
}

fn socket_state(state: State) -> Option<SocketState> {
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
