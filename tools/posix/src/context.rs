//! State outside of a socket that its calls use.

use alloc::collections::BTreeMap;

use whimbrel_stack::{Event, Handle, ListenerId, Shard, UdpHandle};

use crate::Fd;
use crate::epoll::Polls;
use crate::ports::Ports;

/// The shard, and the tables that all sockets of a process share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) shard: Shard,
    pub(crate) owners: Owners,
    pub(crate) ports: Ports,
    pub(crate) polls: Polls,
}

/// Descriptors by object of the shard.
#[derive(Debug)]
pub(crate) struct Owners {
    pub(crate) connections: BTreeMap<Handle, Fd>,
    pub(crate) listeners: BTreeMap<ListenerId, Fd>,
    pub(crate) datagrams: BTreeMap<UdpHandle, Fd>,
}

impl Context {
    pub(crate) const fn new(shard: Shard) -> Self {
        let owners = Owners {
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            datagrams: BTreeMap::new(),
        };
        Self { shard, owners, ports: Ports::new(), polls: Polls::new() }
    }
}

impl Owners {
    /// Descriptor of `event`, if it is open.
    pub(crate) fn of(&self, event: &Event) -> Option<Fd> {
        let fd = match event {
            Event::Accepted(listener) => self.listeners.get(listener),
            Event::Connected(handle)
            | Event::Readable(handle)
            | Event::Urgent(handle)
            | Event::Writable(handle)
            | Event::Closed(handle, _) => self.connections.get(handle),
            Event::Udp(handle) => self.datagrams.get(handle),
            _ => None,
        };
        fd.copied()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.connections.len() + self.listeners.len() + self.datagrams.len()
    }
}
