//! The shard: one host on one core, driven by calls in four groups.

use bytes::Bytes;
use whimbrel_tcp::{Counters, Instant};
use whimbrel_wire::{Endpoint, Flow};

use crate::{Event, Handle, ListenerId, Recv, RxFrame, ShardConfig, TxBatch};

/// One host on one core. `!Sync` by use: one thread owns it and nothing in it is shared.
///
/// Methods stand in four groups: getters; what happened ([`Shard::rx`], [`Shard::advance`]);
/// commands, which act at the time last told; what to do next ([`Shard::tx`],
/// [`Shard::poll_event`], [`Shard::next_deadline`]).
#[derive(Debug)]
pub struct Shard {}

/// Getters.
impl Shard {
    /// A host by this configuration.
    pub fn new(config: ShardConfig) -> Result<Self, ConfigError> {
        let _ = config;
        todo!()
    }

    /// What happened to segments and connections.
    pub fn counters(&self) -> &Counters {
        todo!()
    }

    /// The ends of a connection.
    pub fn flow(&self, handle: Handle) -> Option<Flow> {
        let _ = handle;
        todo!()
    }

    /// How many of each record live now: all zero when nothing is open and nothing waits.
    pub fn census(&self) -> Census {
        todo!()
    }
}

/// What happened.
impl Shard {
    /// Frames arrived.
    pub fn rx(&mut self, now: Instant, burst: &[RxFrame<'_>]) {
        let _ = (now, burst);
        todo!()
    }

    /// Time passed: does up to `budget` of what is due. Returns whether more is due.
    pub fn advance(&mut self, now: Instant, budget: usize) -> bool {
        let _ = (now, budget);
        todo!()
    }
}

/// Commands.
impl Shard {
    /// Listens at `at`; its address may be unspecified (`0.0.0.0` or `::`) for any of the
    /// family. At most `backlog` (>= 1) complete connections wait to be accepted.
    pub fn listen(&mut self, at: Endpoint, backlog: u32) -> Result<ListenerId, ListenError> {
        let _ = (at, backlog);
        todo!()
    }

    /// Stops listening: connections nobody accepted are reset.
    pub fn close_listener(&mut self, listener: ListenerId) {
        let _ = listener;
        todo!()
    }

    /// The next complete connection of a listener, if one waits.
    pub fn accept(&mut self, listener: ListenerId) -> Option<Handle> {
        let _ = listener;
        todo!()
    }

    /// Opens a connection to `remote`; [`Event::Connected`] or [`Event::Closed`] follows. `local`
    /// fixes this side's end; port 0 or `None` draws an ephemeral port.
    pub fn connect(&mut self, remote: Endpoint, local: Option<Endpoint>) -> Result<Handle, ConnectError> {
        let _ = (remote, local);
        todo!()
    }

    /// Takes from the front of `data` what there is room for and returns how much that was; if
    /// less than all, [`Event::Writable`] follows.
    pub fn send(&mut self, handle: Handle, data: &mut Bytes) -> Result<usize, SendError> {
        let _ = (handle, data);
        todo!()
    }

    /// The next octets that arrived in order.
    pub fn recv(&mut self, handle: Handle) -> Recv {
        let _ = handle;
        todo!()
    }

    /// Sends FIN after what was sent so far; reading goes on.
    pub fn shutdown(&mut self, handle: Handle) {
        let _ = handle;
        todo!()
    }

    /// Lets go of the connection. What was sent is still delivered, then FIN; if anything was
    /// received and not read, the peer is told by a reset instead (RFC 9293 3.6.1). The handle
    /// names nothing afterwards.
    pub fn close(&mut self, handle: Handle) {
        let _ = handle;
        todo!()
    }

    /// Resets the connection and lets go of it.
    pub fn abort(&mut self, handle: Handle) {
        let _ = handle;
        todo!()
    }
}

/// What to do next.
impl Shard {
    /// Fills `batch` with what is to be sent. Returns whether more waits.
    pub fn tx(&mut self, batch: &mut TxBatch) -> bool {
        let _ = batch;
        todo!()
    }

    /// The next thing an application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// When [`Shard::advance`] must be called at the latest, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        todo!()
    }
}

/// How many of each record live.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Census {
    /// Connections, closed ones that their application still holds included.
    pub connections: usize,
    /// Half-open entries.
    pub syn_entries: usize,
    /// TIME-WAIT records.
    pub time_wait: usize,
    /// Cold halves lent to connections with something buffered.
    pub cold_halves: usize,
    /// Records in the flow table.
    pub flows: usize,
    /// Timers armed.
    pub timers: usize,
    /// Stateless replies not yet sent.
    pub replies: usize,
}

/// A configuration that makes no host.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A prefix longer than its address.
    #[error("prefix length {len} exceeds the {bits} bits of the address: give 0 to {bits}")]
    PrefixLength {
        /// What was given.
        len: u8,
        /// What the family has.
        bits: u8,
    },
}

/// Why a listener could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another listener is there.
    #[error("address in use: another listener is at {0}; choose another port or close it")]
    InUse(Endpoint),
    /// Not an address of this host.
    #[error("{0} is not an address of this host: listen on one of its own, or on the unspecified address")]
    NotLocal(Endpoint),
}

/// Why a connection could not be begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No route.
    #[error("no route to {0}: add one, or an address in its network")]
    NoRoute(Endpoint),
}

/// Why nothing can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// This side shut down its direction, or the connection is over.
    #[error("the connection no longer sends: it was shut down, closed or reset")]
    Closed,
    /// The handle names nothing.
    #[error("no such connection")]
    Unknown,
}
