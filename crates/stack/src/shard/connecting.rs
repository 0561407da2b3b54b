//! How connections begin from this side: the peer, our end of it, and the SYN.

use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::conn::{ActiveOpen, Attempt, Connection, SocketOptions};
use whimbrel_tcp::table::{Kind, Opener, Record};
use whimbrel_wire::Endpoint;

use super::ports::LocalEnd;
use super::{ConnectError, Shard};
use crate::Handle;
use crate::connections::ConnectionSlot;
use crate::ip::FlowKey;

/// Opening connections, with a SYN that has no text.
impl Shard {
    /// Opens a connection to `remote`; [`Event::Connected`](crate::Event::Connected) or
    /// [`Event::Closed`](crate::Event::Closed) follows. `local` fixes this side's end: an
    /// unspecified address comes of the pool ([`Shard::set_source_pool`]) or of the route, port 0 is
    /// drawn from the ephemeral ports.
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
        let source = self.check_peer(remote)?;
        let limit = self.cx.tunables.max_connections;
        if self.tcp.records.connections.0.len() >= limit as usize {
            cold_path();
            return Err(ConnectError::TooMany { limit });
        }
        let LocalEnd { local_index, local_port, hash, succeeds } =
            self.choose_end(remote, local, source)?;
        let key =
            FlowKey { remote: remote.addr, remote_port: remote.port, local_port, local_index };
        let Some(addr) = self.net.ip.addresses.get(local_index).copied() else {
            return Err(ConnectError::NoSource(remote));
        };
        let floor = succeeds.map(|it| it.iss_floor);
        let Some(iss) = self.choose_iss(&key, floor) else {
            return Err(ConnectError::NoSource(remote));
        };
        let open = ActiveOpen {
            remote: remote.addr,
            remote_port: remote.port,
            local_port,
            local_index,
            iss,
            timestamp_offset: self.tcp.identity.timestamp_offset(&addr, &remote.addr),
            mss: self.net.ip.mss_to(&remote.addr),
        };
        let slot = ConnectionSlot {
            linked: Some(Opener::Us),
            dirty: true,
            ..ConnectionSlot::new(Connection::connect(&mut self.cx, open), hash)
        };
        let index = self.tcp.records.connections.0.insert(slot);
        self.tcp.records.flows.insert(hash, Record::new(Kind::Connection, index));
        self.tcp.work.dirty.push_back(index);
        let knows_paths = self.net.ip.routes.has_metrics() || !self.net.ip.path_mtus.is_empty();
        if knows_paths || options.is_some() || succeeds.is_some() {
            self.prepare(index, options, succeeds.and_then(|it| it.ts_recent));
        }
        // It has a SYN to send, which starts its timer, and nothing to tell.
        debug_assert!(self.tcp.records.connections.0.get(index).is_some_and(|slot| {
            let connection = &slot.connection;
            let sends = connection.may_transmit() && connection.next_deadline() == Instant::NEVER;
            sends && !slot.has_news()
        }));
        Ok(self.tcp.records.handle(index))
    }

    /// A connection that begins has what its application set, what is known of its path, and TS.Recent of its
    /// predecessor.
    // In its place: before, it would be built somewhere else and copied there.
    #[inline(never)]
    fn prepare(&mut self, index: u32, options: Option<&SocketOptions>, recent: Option<u32>) {
        let Some(slot) = self.tcp.records.connections.0.get_mut(index) else { return };
        let (connection, cx) = (&mut slot.connection, &mut self.cx);
        let remote = *connection.remote();
        if let Some(metrics) = self.net.ip.routes.metrics_to(&remote) {
            connection.take_metrics(cx, metrics);
        }
        if let Some(options) = options {
            connection.set_options(cx, options);
        }
        if let Some(recent) = recent {
            connection.succeed(cx, recent);
        }
        if let Some(mtu) = self.net.ip.path_mtus.said_of(cx.now, &remote) {
            let _ = connection.on_path_mtu(cx, mtu);
        }
    }

    /// What was tried to open a connection, and what came back: for whoever tells why it failed.
    pub fn attempt(&self, handle: Handle) -> Option<Attempt> {
        self.tcp.records.held(handle).map(|slot| slot.connection.attempt(self.cx.now))
    }

    /// Whether `remote` can be connected to, and from which address if the caller has no wish.
    fn check_peer(&mut self, remote: Endpoint) -> Result<Option<u16>, ConnectError> {
        // Where this host's addresses or routes change, this is forgotten.
        match self.tcp.active.judged_peer {
            Some((known, source)) if known == remote.addr && remote.port != 0 => Ok(source),
            _ => self.judge_peer(remote),
        }
    }

    #[inline(never)]
    fn judge_peer(&mut self, remote: Endpoint) -> Result<Option<u16>, ConnectError> {
        let addr = &remote.addr;
        let no_host = addr.is_unspecified()
            || addr.is_multicast_or_broadcast()
            || self.net.ip.routes.is_broadcast(addr);
        // RFC 9293 3.9.1.1: "A TCP implementation MUST reject as an error a local OPEN call for an
        // invalid remote IP address (e.g., a broadcast or multicast address) (MUST-46)."
        if remote.port == 0 || no_host {
            return Err(ConnectError::NotAPeer(remote));
        }
        if self.net.ip.addresses.is_local(addr) {
            self.net.look_at_destinations();
        } else if addr.to_ip().is_loopback() || self.net.ip.routes.find(addr).is_none() {
            return Err(ConnectError::NoRoute(remote));
        }
        let source = self.net.ip.addresses.source_for(addr);
        self.tcp.active.judged_peer = Some((*addr, source));
        Ok(source)
    }
}
