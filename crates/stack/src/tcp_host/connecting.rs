//! Active openings: the peer, our endpoint, and the SYN.

use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::Context;
use whimbrel_tcp::conn::{ActiveOpen, Connection, SocketOptions};
use whimbrel_tcp::table::{Kind, Opener, Record};
use whimbrel_wire::{Endpoint, Flow, SeqNum};

use super::ports::{EndpointRequest, LocalEndpoint};
use super::{Active, TcpHost};
use crate::Handle;
use crate::error::ConnectError;
use crate::ip::FlowKey;
use crate::net::Net;
use crate::tcp_host::connections::ConnectionSlot;

impl TcpHost {
    // Always: its one caller gives it parts of one object.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        request: EndpointRequest,
        options: Option<&SocketOptions>,
    ) -> Result<Handle, ConnectError> {
        let remote = request.remote;
        let source = self.active.check_peer(net, remote)?;
        let limit = cx.tunables.max_connections;
        if self.records.connections.0.len() >= limit as usize {
            cold_path();
            return Err(ConnectError::TooMany { limit });
        }
        let LocalEndpoint { local_index, local_port, hash, reuses } =
            self.active.choose_local_endpoint(cx, net, &mut self.records, request, source)?;
        let key =
            FlowKey { remote: remote.addr, remote_port: remote.port, local_port, local_index };
        let Some(addr) = net.ip.addresses.get(local_index).copied() else {
            return Err(ConnectError::NoSource(remote));
        };
        let floor = reuses.map(|it| it.iss_floor);
        let Some(iss) = self.choose_iss(cx, net, &key, floor) else {
            return Err(ConnectError::NoSource(remote));
        };
        let open = ActiveOpen {
            remote: remote.addr,
            remote_port: remote.port,
            local_port,
            local_index,
            iss,
            timestamp_offset: self.identity.timestamp_offset(&addr, &remote.addr),
            mss: net.ip.mss_to(&remote.addr),
        };
        let slot = ConnectionSlot {
            linked: Some(Opener::Us),
            dirty: true,
            ..ConnectionSlot::new(Connection::connect(cx, open), hash)
        };
        let index = self.records.connections.0.insert(slot);
        self.records.flows.insert(hash, Record::new(Kind::Connection, index));
        self.work.dirty.push_back(index);
        let knows_paths = net.ip.routes.has_metrics() || net.ip.knows_paths();
        let is_foreign = net.ip.addresses.is_other(local_index);
        if knows_paths || is_foreign || options.is_some() || reuses.is_some() {
            self.prepare(cx, net, index, options, reuses.and_then(|it| it.ts_recent));
        }
        // It has a SYN to send, which starts its timer, and nothing to tell.
        debug_assert!(self.records.connections.0.get(index).is_some_and(|slot| {
            let connection = &slot.connection;
            let sends = connection.may_transmit() && connection.next_deadline() == Instant::NEVER;
            sends && !slot.has_news()
        }));
        Ok(self.records.handle(index))
    }

    /// Our ISS for a flow; beyond the numbers of its former connection, if it had one
    /// (RFC 9293 3.4.1, RFC 1122 4.2.2.13).
    pub(crate) fn choose_iss(
        &mut self,
        cx: &Context,
        net: &Net,
        key: &FlowKey,
        floor: Option<SeqNum>,
    ) -> Option<SeqNum> {
        let local = Endpoint::new(*net.ip.addresses.get(key.local_index)?, key.local_port);
        let flow = Flow { local, remote: Endpoint::new(key.remote, key.remote_port) };
        let iss = self.identity.isn(&flow, cx.now);
        Some(floor.map_or(iss, |floor| iss.later(floor)))
    }

    /// A connection that begins has what its application set, what is known of its path, and TS.Recent of its
    /// predecessor.
    // In its place: before, it would be built somewhere else and copied there.
    #[inline(never)]
    fn prepare(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        options: Option<&SocketOptions>,
        recent: Option<u32>,
    ) {
        let Some(slot) = self.records.connections.0.get_mut(index) else { return };
        let connection = &mut slot.connection;
        // Another's address keeps its number as long as the connection.
        net.ip.addresses.hold(connection.local_index());
        let remote = *connection.remote();
        if let Some(metrics) = net.ip.routes.metrics_to(&remote) {
            connection.take_metrics(cx, metrics);
        }
        if let Some(options) = options {
            connection.set_options(cx, options);
        }
        if let Some(recent) = recent {
            connection.reuse_time_wait(recent);
        }
        if let Some(mtu) = net.ip.path_mtus.said_of(cx.now, &remote) {
            let _ = connection.on_path_mtu(cx, mtu);
        }
        if let Some(mtu) = net.ip.probed_mtus.said_of(cx.now, &remote) {
            connection.begin_probed(cx, mtu);
        }
    }
}

impl Active {
    /// Checks that `remote` can be connected to; returns the source address if the caller has no wish.
    fn check_peer(&mut self, net: &mut Net, remote: Endpoint) -> Result<Option<u16>, ConnectError> {
        // Where this host's addresses or routes change, this is forgotten.
        match self.last_connect_route {
            Some((known, source)) if known == remote.addr && remote.port != 0 => Ok(source),
            _ => self.judge_peer(net, remote),
        }
    }

    #[inline(never)]
    fn judge_peer(&mut self, net: &mut Net, remote: Endpoint) -> Result<Option<u16>, ConnectError> {
        let addr = &remote.addr;
        let no_host = addr.is_unspecified()
            || addr.is_multicast_or_broadcast()
            || net.ip.routes.is_broadcast(addr);
        // RFC 9293 3.9.1.1: "A TCP implementation MUST reject as an error a local OPEN call for an
        // invalid remote IP address (e.g., a broadcast or multicast address) (MUST-46)."
        if remote.port == 0 || no_host {
            return Err(ConnectError::NotAPeer(remote));
        }
        if net.ip.addresses.is_local(addr) {
            net.enable_destination_check();
        } else if addr.to_ip().is_loopback() || net.ip.routes.find(addr).is_none() {
            return Err(ConnectError::NoRoute(remote));
        }
        let source = net.ip.addresses.source_for(addr);
        self.last_connect_route = Some((*addr, source));
        Ok(source)
    }
}
