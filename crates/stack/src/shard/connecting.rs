//! How connections begin from this side: the peer, our end of it, and the SYN.

use whimbrel_tcp::conn::{ActiveOpen, Attempt, Connection, SocketOptions};
use whimbrel_tcp::table::{Kind, Record};
use whimbrel_wire::Endpoint;

use super::{ConnectError, Shard};
use crate::Handle;
use crate::connections::Slot;
use crate::ip::FlowKey;

/// Connecting.
impl Shard {
    /// Opens a connection to `remote`; [`Event::Connected`](crate::Event::Connected) or
    /// [`Event::Closed`](crate::Event::Closed) follows. `local` fixes this side's end: an
    /// unspecified address is chosen by the route, port 0 is drawn from the ephemeral ports.
    pub fn connect(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
    ) -> Result<Handle, ConnectError> {
        self.open(remote, local, None)
    }

    /// The same, with what was set before.
    pub fn connect_with(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
        options: &SocketOptions,
    ) -> Result<Handle, ConnectError> {
        self.open(remote, local, Some(options))
    }

    fn open(
        &mut self,
        remote: Endpoint,
        local: Option<Endpoint>,
        options: Option<&SocketOptions>,
    ) -> Result<Handle, ConnectError> {
        let local_index = self.judge_peer(remote, local)?;
        let limit = self.tunables.max_connections;
        if self.records.connections.0.len() >= limit as usize {
            return Err(ConnectError::TooMany { limit });
        }
        let local_port = self.choose_port(local_index, remote, local)?;
        let key =
            FlowKey { remote: remote.addr, remote_port: remote.port, local_port, local_index };
        let addr = *self.host.addresses.get(local_index).ok_or(ConnectError::NoSource(remote))?;
        let open = ActiveOpen {
            remote: remote.addr,
            remote_port: remote.port,
            local_port,
            local_index,
            iss: self.choose_iss(&key, None).ok_or(ConnectError::NoSource(remote))?,
            timestamp_offset: self.identity.timestamp_offset(&addr, &remote.addr),
            mss: self.host.mss(remote.addr.family()),
        };
        let mut cx = self.context();
        let mut connection = Connection::connect(&mut cx, open);
        if let Some(options) = options {
            connection.set_options(&mut cx, options);
        }
        let hash = self.records.hash(&key);
        let index = self.records.connections.0.insert(Slot::new(connection, hash));
        self.records.flows.insert(hash, Record::new(Kind::Connection, index));
        self.tell_path_mtu(index);
        self.settle(index);
        Ok(self.handle(index))
    }

    /// What was tried to open a connection, and what came back: for whoever tells why it failed.
    pub fn attempt(&self, handle: Handle) -> Option<Attempt> {
        self.slot(handle).map(|slot| slot.connection.attempt(self.now))
    }

    /// Whether `remote` can be connected to, and from which of our addresses.
    fn judge_peer(&self, remote: Endpoint, local: Option<Endpoint>) -> Result<u16, ConnectError> {
        let addr = &remote.addr;
        let no_host = addr.is_unspecified()
            || addr.is_multicast_or_broadcast()
            || self.host.routes.is_broadcast(addr);
        // RFC 9293 3.9.1.1: "A TCP implementation MUST reject as an error a local OPEN call for an
        // invalid remote IP address (e.g., a broadcast or multicast address) (MUST-46)."
        if remote.port == 0 || no_host {
            return Err(ConnectError::NotAPeer(remote));
        }
        if self.host.addresses.index_of(addr).is_some() {
            return Err(ConnectError::Loopback(remote));
        }
        self.host.routes.find(addr).ok_or(ConnectError::NoRoute(remote))?;
        match local.filter(|local| !local.addr.is_unspecified()) {
            Some(local) => self
                .host
                .addresses
                .index_of(&local.addr)
                .filter(|_| local.addr.family() == addr.family())
                .ok_or(ConnectError::NotLocal(local)),
            None => self.host.addresses.source_for(addr).ok_or(ConnectError::NoSource(remote)),
        }
    }

    fn choose_port(
        &mut self,
        local_index: u16,
        remote: Endpoint,
        local: Option<Endpoint>,
    ) -> Result<u16, ConnectError> {
        let addr = *self.host.addresses.get(local_index).ok_or(ConnectError::NoSource(remote))?;
        let key = |local_port| FlowKey {
            remote: remote.addr,
            remote_port: remote.port,
            local_port,
            local_index,
        };
        if let Some(port) = local.map(|local| local.port).filter(|port| *port != 0) {
            return if self.records.contains(&key(port)) {
                Err(ConnectError::InUse { local: Endpoint::new(addr, port), remote })
            } else {
                Ok(port)
            };
        }
        // What a port comes home to is this shard's queue, where that can be computed.
        let steering = self.host.capabilities.steering;
        let is_home = |port| steering.comes_home(port, remote.port);
        // The 4-tuple as a whole must be free, not the port: one port serves many peers.
        let records = &self.records;
        let chosen = self
            .ports
            .choose(&addr, &remote, |port| is_home(port) && !records.contains(&key(port)));
        chosen.map_err(|exhausted| {
            self.counters.ports_exhausted += 1;
            let (first, last) = (exhausted.range.first(), exhausted.range.last());
            ConnectError::PortsExhausted { remote, first, last, tried: exhausted.tried }
        })
    }
}
