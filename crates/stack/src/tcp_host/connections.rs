//! The connections of a shard, each with what the shard itself must know of it.

use whimbrel_base::Slab;
use whimbrel_tcp::conn::{Connection, State};
use whimbrel_tcp::table::{FlowHash, Opener};

use crate::ip::FlowKey;
use crate::wheel::{TimerNode, TimerNodes};

/// A connection in its place: 240 bytes.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) connection: Connection,
    /// Its timer. `timer.at` is when it has the connection attended to, [`Instant::NEVER`] if it is not armed.
    pub(crate) timer: TimerNode,
    /// Its hash in the flow table.
    pub(crate) hash: FlowHash,
    /// It waits in a listener's accept queue.
    pub(crate) unaccepted: bool,
    /// It stands in the dirty list.
    pub(crate) dirty: bool,
    /// It stands in the event list.
    pub(crate) listed: bool,
    /// The flow table leads to it: who opened it.
    pub(crate) linked: Option<Opener>,
}

impl ConnectionSlot {
    /// The place of a connection that the peer opened.
    pub(crate) fn new(connection: Connection, hash: FlowHash) -> Self {
        Self {
            connection,
            timer: TimerNode::default(),
            hash,
            unaccepted: false,
            dirty: false,
            listed: false,
            linked: Some(Opener::Peer),
        }
    }

    /// True if the flow table leads here for `key`.
    #[inline]
    pub(crate) fn is_flow(&self, key: &FlowKey) -> bool {
        let connection = &self.connection;
        self.linked.is_some()
            && connection.remote_port() == key.remote_port
            && connection.local_port() == key.local_port
            && connection.local_index() == key.local_index
            && *connection.remote() == key.remote
    }

    /// True if the connection is at its end: it has no use for its place in the flow table.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.connection.state(), State::TimeWait | State::Closed)
    }

    /// True if there is something to tell, and an application to tell it to.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.connection.signals().is_empty() && !self.unaccepted && !self.connection.is_orphan()
    }
}

/// The slab of connections, whose slots hold the wheel's nodes.
#[derive(Debug, Default)]
pub(crate) struct Connections(pub(crate) Slab<ConnectionSlot>);

impl TimerNodes for Connections {
    fn node(&self, id: u32) -> &TimerNode {
        &self.0.get(id).expect("an armed timer has a connection").timer
    }

    fn node_mut(&mut self, id: u32) -> &mut TimerNode {
        &mut self.0.get_mut(id).expect("an armed timer has a connection").timer
    }
}

const _: () = assert!(size_of::<ConnectionSlot>() <= 240);
