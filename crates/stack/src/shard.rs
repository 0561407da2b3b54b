//! The shard: one host on one core, driven by calls in four groups.
//!
//! | group | methods |
//! |---|---|
//! | getters | [`Shard::counters`], [`Shard::census`], [`Shard::flow`], … |
//! | what happened | [`Shard::rx`], [`Shard::advance`], [`Shard::set_now`] |
//! | commands, at the time last told | [`Shard::listen`], [`Shard::connect`], [`Shard::send`], … |
//! | what to do next | [`Shard::tx`], [`Shard::poll_event`], [`Shard::next_deadline`] |

mod addressing;
mod budget;
mod clock;
mod commands;
mod connect;
mod control;
mod icmp;
mod input;
mod invariants;
mod listeners;
mod listing;
mod loopback;
mod mtu;
mod network;
mod output;
mod reports;
mod settings;
mod udp;

use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::conn::{Connection, State};
use whimbrel_tcp::{Context, Counters, Tunables};
use whimbrel_udp::Sockets;
use whimbrel_wire::Flow;

use self::budget::MemoryWatch;
use crate::ip::{
    Addresses, Bounds, ErrorBudget, Identifications, IpCounters, IpLayer, Origin, PathMtus,
    Reassembly, Routes,
};
use crate::link::Link;
use crate::net::{Net, check_mtu};
use crate::packet_transports::PacketTransports;
use crate::tcp_host::TcpHost;
use crate::tcp_host::work::{Cause, EventSource};
use crate::udp_host::UdpHost;
use crate::{Handle, ShardConfig};

pub use budget::Memory;
pub use listing::{Listed, ListedPurpose, ListedTimer, Listing, ListingDetail, ListingPlace};

pub use crate::error::{
    AddressError, ConfigError, ConnectError, InjectError, ListenError, NotLocal, RetuneError,
    RouteError, SendError,
};
pub use crate::net::{DatagramPath, DatagramPathNews, DatagramPathsSeen};
pub use crate::tcp_host::inspect::{SocketEntry, SocketState, StateCounts};
pub use crate::udp_host::{SendTo, judge_destination};

/// One host on one core. One thread owns it; nothing in it is shared.
#[derive(Debug)]
pub struct Shard {
    /// The time last told, the rules, the counters, and buffers: what a call into a connection is handed.
    cx: Context,
    net: Net,
    tcp: TcpHost,
    packets: PacketTransports,
    memory: MemoryWatch,
}

/// Making a host, and asking it what it is and has.
impl Shard {
    /// A host by this configuration.
    pub fn new(config: ShardConfig) -> Result<Self, ConfigError> {
        let ShardConfig { tunables, secrets, capabilities, addresses, routes } = config;
        tunables.validate()?;
        let range = tunables.port_range()?;
        let routes = Routes::new(&addresses, &routes)?;
        let addresses = Addresses::new(&addresses)?;
        check_mtu(capabilities.mtu, addresses.iter())?;
        let link = Link::new(capabilities.medium, &addresses)?;
        let ip = IpLayer {
            capabilities,
            addresses,
            routes,
            counters: IpCounters::default(),
            reassembly: Reassembly::new(Bounds::DEFAULT),
            identifications: Identifications::new(&secrets.timestamps),
            path_mtus: PathMtus::default(),
            probed_mtus: PathMtus::default(),
            datagram_mtus: PathMtus::default(),
            reply_mtus: PathMtus::default(),
            error_budget: ErrorBudget::new(&secrets.ports),
            origin: Origin::Wire,
        };
        let mut net = Net::new(ip, link, &secrets.timestamps);
        net.set_link_rules(&tunables);
        let tcp = TcpHost::new(&secrets, &tunables, range, &net);
        let udp = UdpHost::new(Sockets::new(&secrets, range, tunables.reserved_ports), &tunables);
        let cx = Context::new(Instant::ZERO, tunables);
        let packets = PacketTransports::new(udp);
        Ok(Self { cx, net, tcp, packets, memory: MemoryWatch::default() })
    }

    /// The time last told.
    pub fn now(&self) -> Instant {
        self.cx.now
    }

    /// It is `now`: what is commanded next happens then. [`Shard::rx`] and [`Shard::advance`] say
    /// so themselves; after a sleep, the caller must before the first command, or its timers would
    /// start in the past.
    pub fn set_now(&mut self, now: Instant) {
        // Between two turns it is set several times.
        if now > self.cx.now {
            self.cx.now = now;
            self.cx.tick = now.tick();
        }
    }

    /// Returns the counters of segments and connections.
    pub fn counters(&self) -> &Counters {
        &self.cx.counters
    }

    /// Counters of packets that never became segments.
    pub fn ip_counters(&self) -> &IpCounters {
        &self.net.ip.counters
    }

    /// Its Ethernet: neighbours and counters. `None` where frames begin with their IP header.
    pub fn link(&self) -> Option<&Link> {
        self.net.link.as_ref()
    }

    /// The addresses of this host, numbered.
    pub fn addresses(&self) -> &Addresses {
        &self.net.ip.addresses
    }

    /// Its routes, those of its addresses' own networks among them.
    pub fn routes(&self) -> &Routes {
        &self.net.ip.routes
    }

    /// The rules in force.
    pub fn tunables(&self) -> &Tunables {
        &self.cx.tunables
    }

    /// The ends of a connection.
    pub fn flow(&self, handle: Handle) -> Option<Flow> {
        self.tcp.records.flow(&self.net, handle)
    }

    /// Bytes to be read up to the end of the peer's urgent data, if any is still to come
    /// (RFC 6093; what `SIOCATMARK` asks).
    pub fn urgent_mark(&self, handle: Handle) -> Option<u32> {
        self.tcp.records.urgent_mark(handle)
    }

    /// The state of a connection.
    pub fn state(&self, handle: Handle) -> Option<State> {
        self.tcp.records.state(handle)
    }

    /// Returns the number of each kind of record.
    pub fn census(&self) -> Census {
        Census {
            connections: self.tcp.records.connections.0.len(),
            syn_entries: self.tcp.records.syns.len(),
            time_wait: self.tcp.records.waits.len(),
            destinations: self.tcp.active.ports.destinations(),
            listeners: self.tcp.passive.listeners.len(),
            fast_opens: self.tcp.fast_opens.len(),
            buffers: self.cx.pool.lent(),
            flows: self.tcp.records.flows.len(),
            timers: self.tcp.work.timers.len(),
            replies: self.net.replies.len(),
            looped: self.net.looped(),
            pings: self.net.pings.len(),
            fragmented: self.net.ip.reassembly.len(),
            fragment_bytes: self.net.ip.reassembly.bytes(),
            udp_sockets: self.packets.udp.sockets.len(),
            udp_unsent: self.packets.udp.unsent(),
            other_addresses: self.net.ip.addresses.others(),
            pending_dials: self.tcp.passive.dials.len(),
        }
    }

    /// A connection and the surroundings of a call into it.
    fn connection(&mut self, index: u32) -> Option<(&mut Connection, &mut Context)> {
        let slot = self.tcp.records.connections.0.get_mut(index)?;
        Some((&mut slot.connection, &mut self.cx))
    }

    /// Calls `act` on the connection behind `handle`, if the application still holds it.
    #[inline]
    fn with_handle<T>(
        &mut self,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Context) -> T,
    ) -> Option<T> {
        self.with_slot(ConnectionName::Handle(handle), Cause::Call, act)
    }

    /// Calls `act`, which brings its application no news, on the connection behind `handle`.
    #[inline]
    fn with_handle_quietly<T>(
        &mut self,
        handle: Handle,
        act: impl FnOnce(&mut Connection, &mut Context) -> T,
    ) -> Option<T> {
        self.with_slot(ConnectionName::Handle(handle), Cause::QuietCall, act)
    }

    // Always: what it is called with decides what is left of it.
    #[inline(always)]
    fn with_slot<T>(
        &mut self,
        name: ConnectionName,
        cause: Cause,
        act: impl FnOnce(&mut Connection, &mut Context) -> T,
    ) -> Option<T> {
        let (index, slot) = match name {
            ConnectionName::Index(index) => (index, self.tcp.records.connections.0.get_mut(index)?),
            ConnectionName::Handle(handle) => (handle.index, self.tcp.records.held_mut(handle)?),
        };
        // What follows is found by comparing: no call must remember to say it.
        let done = act(&mut slot.connection, &mut self.cx);
        if let Some(deadline) = self.tcp.work.update(slot, index, cause) {
            self.update_timer(index, deadline);
        }
        Some(done)
    }

    /// Brings lists, timers and table in line with the connection.
    fn after_change(&mut self, index: u32) {
        self.with_slot(ConnectionName::Index(index), Cause::Call, |_, _| ());
    }

    /// Arms or disarms the timer, as the connection has a deadline or none; without one it may be
    /// over.
    #[inline(never)]
    fn update_timer(&mut self, index: u32, deadline: Instant) {
        // Beforehand, so that what follows finds the connection once.
        if !self.tcp.fast_opens.is_empty() {
            cold_path();
            self.tcp.end_fast_opening(&mut self.cx, index);
        }
        let Some(slot) = self.tcp.records.connections.0.get_mut(index) else { return };
        if slot.is_over() {
            self.tcp.unlink(&mut self.cx, &mut self.net, index);
        } else if deadline < slot.timer.at {
            self.tcp.work.timers.arm(
                &mut self.tcp.records.connections,
                index,
                deadline,
                self.cx.now,
            );
        } else {
            self.tcp.work.timers.disarm(&mut self.tcp.records.connections, index);
        }
    }
}

/// The name of a connection in a call.
#[derive(Clone, Copy, Debug)]
enum ConnectionName {
    Index(u32),
    /// As its application does, which has to hold it still.
    Handle(Handle),
}

/// Numbers of each kind of record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Census {
    /// Connections, closed ones that their application still holds included.
    pub connections: usize,
    /// Half-open entries in the SYN cache.
    pub syn_entries: usize,
    /// Records of connections in TIME-WAIT.
    pub time_wait: usize,
    /// Pairs of an own address and a peer's end towards which connections of ours have ports in
    /// use.
    pub destinations: usize,
    /// Listeners that are open.
    pub listeners: usize,
    /// Connections in a handshake that Fast Open began.
    pub fast_opens: usize,
    /// Sets of buffers lent to connections with something in them.
    pub buffers: usize,
    /// Records in the flow table: connections that are not closed, half-open entries and
    /// TIME-WAIT records.
    pub flows: usize,
    /// Timers of connections that are armed.
    pub timers: usize,
    /// Stateless replies not yet sent.
    pub replies: usize,
    /// Packets of this host to itself that did not arrive yet.
    pub looped: usize,
    /// Echo requests that are under way, or of which the result was not read.
    pub pings: usize,
    /// Datagrams of which some fragments are here.
    pub fragmented: usize,
    /// Bytes that their fragments take.
    pub fragment_bytes: usize,
    /// UDP sockets that are open.
    pub udp_sockets: usize,
    /// Datagrams not yet sent.
    pub udp_unsent: usize,
    /// Addresses of others that this host speaks for.
    pub other_addresses: usize,
    /// Destinations, of any, with which handshakes wait for an answer or are under way.
    pub pending_dials: usize,
}

impl Census {
    /// Names the records that are left, without those that expire by themselves: TIME-WAIT and fragments.
    pub fn remaining(&self) -> impl Iterator<Item = (usize, &'static str)> + use<> {
        let Self {
            connections,
            syn_entries,
            time_wait,
            destinations: _,
            buffers,
            flows,
            timers,
            replies,
            looped,
            pings,
            listeners,
            fast_opens,
            fragmented: _,
            fragment_bytes: _,
            udp_sockets,
            udp_unsent,
            other_addresses,
            pending_dials,
        } = *self;
        let kinds = [
            (connections, "connections"),
            (syn_entries, "half-open entries"),
            (buffers, "buffers"),
            (flows.saturating_sub(time_wait), "flows"),
            (timers, "timers"),
            (replies, "replies"),
            (looped, "packets to itself"),
            (pings, "echo requests"),
            (listeners, "listeners"),
            (fast_opens, "handshakes of Fast Open"),
            (udp_sockets, "UDP sockets"),
            (udp_unsent, "unsent datagrams"),
            (other_addresses.saturating_sub(time_wait), "addresses of others"),
            (pending_dials, "handshakes that wait for a decision"),
        ];
        kinds.into_iter().filter(|(count, _)| *count > 0)
    }
}

/// Those of two shards.
impl core::ops::AddAssign for Census {
    fn add_assign(&mut self, other: Self) {
        let Self {
            connections,
            syn_entries,
            time_wait,
            destinations,
            listeners,
            fast_opens,
            buffers,
            flows,
            timers,
            replies,
            looped,
            pings,
            fragmented,
            fragment_bytes,
            udp_sockets,
            udp_unsent,
            other_addresses,
            pending_dials,
        } = other;
        self.connections += connections;
        self.syn_entries += syn_entries;
        self.time_wait += time_wait;
        self.destinations += destinations;
        self.listeners += listeners;
        self.fast_opens += fast_opens;
        self.buffers += buffers;
        self.flows += flows;
        self.timers += timers;
        self.replies += replies;
        self.looped += looped;
        self.pings += pings;
        self.fragmented += fragmented;
        self.fragment_bytes += fragment_bytes;
        self.udp_sockets += udp_sockets;
        self.udp_unsent += udp_unsent;
        self.other_addresses += other_addresses;
        self.pending_dials += pending_dials;
    }
}

#[cfg(test)]
mod tests;
