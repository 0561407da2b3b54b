//! Addresses and routes that come and go while the host runs (Linux' `ip address` and `ip route`).
//!
//! What hangs on an address that is removed ends with it: connections are aborted, half-open ones and
//! records in TIME-WAIT forgotten, answers that wait to leave dropped, and nobody is told by a segment:
//! RFC 4862 5.5.4: "An invalid address MUST NOT be used as a source address in outgoing communications and
//! MUST NOT be recognized as a destination on a receiving interface." Linux keeps the connections, which
//! can send nothing more and end by time-outs a quarter of an hour later; here their applications learn of
//! it at once. Listeners and UDP sockets that are bound to the address stay, as there: they hear nothing
//! until it comes back.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use whimbrel_wire::{Address, Flow};

use super::{AddressError, RouteError, Shard, check_mtu};
use crate::connections::ConnectionSlot;
use crate::ip::{Routes, check_prefix, is_link_local, is_within, network_of};
use crate::link::{CheckedAddress, TooManyChecks};
use crate::{InterfaceAddress, Route};

/// The host's own addresses.
impl Shard {
    /// Asks, where the link is an Ethernet, whether another station has `addr`, before it is
    /// [added](Shard::add_address) (RFC 5227 2.1, RFC 4862 5.4). [`Shard::poll_checked`] says what came of
    /// it, 0.9 s later, or as soon as somebody answers; at once where nobody can be asked.
    ///
    /// # Errors
    ///
    /// [`AddressError::Checking`]: 64 are asked for, or their ends were not polled.
    pub fn check_address(&mut self, addr: Address) -> Result<Option<CheckedAddress>, AddressError> {
        match self.net.check_tentative(addr, self.cx.now) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(CheckedAddress { addr, conflict: None })),
            Err(TooManyChecks { limit }) => Err(AddressError::Checking { limit }),
        }
    }

    /// The next address of which it is known whether somebody has it.
    pub fn poll_checked(&mut self) -> Option<CheckedAddress> {
        self.net.pop_checked()
    }

    /// Whether this host could be [given](Shard::add_address) this address now.
    pub fn judge_address(&self, address: &InterfaceAddress) -> Result<(), AddressError> {
        let addr = address.addr;
        if addr.to_ip().is_loopback() {
            return Err(AddressError::Loopback(addr));
        }
        if self.net.ip.addresses.is_local(&addr) {
            return Err(AddressError::Exists(addr));
        }
        check_mtu(self.mtu(), core::iter::once(address))?;
        Ok(())
    }

    /// Gives this host another address, and a route to its network. On an Ethernet it is told to all at once
    /// (RFC 5227 2.3, RFC 4861 7.2.6); whether it is free is [asked](Shard::check_address) beforehand, or not.
    /// Whoever listens at the unspecified address listens at it; connections that another's address
    /// had until now, of a host that [takes any](Shard::take_any_address), are aborted.
    pub fn add_address(&mut self, address: InterfaceAddress) -> Result<(), AddressError> {
        self.judge_address(&address)?;
        if self.net.ip.addresses.index_of_other(&address.addr).is_some() {
            self.end_flows_at(&address.addr);
        }
        let in_use = self.numbers_in_use();
        let local = self.net.ip.addresses.add(address, &in_use)?;
        let routed = self.net.ip.routes.add_own(&address);
        debug_assert!(routed.is_ok(), "the prefix fits the address");
        self.on_ways_changed(&network_of(&address));
        if let Some(link) = &mut self.net.link {
            link.on_address_added(local);
        }
        Ok(())
    }

    /// Takes an address from this host, the route to its network with the last address in it, and all that
    /// hangs on it. It walks all records that there are. Its last address, too, may go: then the host hears
    /// nothing until it has another.
    pub fn remove_address(&mut self, addr: &Address) -> Result<(), AddressError> {
        let Some(local) = self.net.ip.addresses.index_of(addr) else {
            return Err(AddressError::Unknown(*addr));
        };
        self.end_flows_at(addr);
        self.forget_answers(local, addr);
        self.tcp.active.sources.forget(local);
        let Some(removed) = self.net.ip.addresses.remove(addr) else {
            return Err(AddressError::Unknown(*addr));
        };
        self.net.ip.routes.remove_own(&removed);
        self.on_ways_changed(&network_of(&removed));
        if let Some(link) = &mut self.net.link {
            link.on_address_removed(local);
        }
        Ok(())
    }

    /// Numbers of addresses that are no more and that a connection has which is over, and which its
    /// application holds still.
    fn numbers_in_use(&self) -> BTreeSet<u16> {
        if !self.net.ip.addresses.has_holes() {
            return BTreeSet::new();
        }
        self.slots().map(|slot| slot.connection.local_index()).collect()
    }

    fn slots(&self) -> impl Iterator<Item = &ConnectionSlot> {
        let slab = &self.tcp.records.connections.0;
        let mut next = 0;
        core::iter::from_fn(move || {
            loop {
                match slab.first_from(next)? {
                    Ok((index, slot)) => {
                        next = index + 1;
                        return Some(slot);
                    }
                    Err(on) => next = on,
                }
            }
        })
    }

    fn end_flows_at(&mut self, addr: &Address) {
        // A half-open entry may stand in front of a record in TIME-WAIT, which is then found behind it.
        for _ in 0..2 {
            let entries = self.sockets().filter(|entry| entry.local.addr == *addr);
            let flows: Vec<Flow> = entries
                .filter_map(|entry| Some(Flow { local: entry.local, remote: entry.remote? }))
                .collect();
            for flow in &flows {
                self.abort_flow(flow);
            }
        }
    }

    /// What was to leave from an address that is no more does not.
    fn forget_answers(&mut self, local: u16, addr: &Address) {
        self.net.replies.forget(local, addr);
        self.net.pings.on_address_removed(local);
        self.tcp.cutting.forget(local);
        self.udp.leaving.forget(addr);
    }
}

/// The host's table of routes.
impl Shard {
    /// Adds a route: the longest prefix counts, then the least metric. What was chosen by the former routes
    /// is chosen anew when the next packet leaves.
    pub fn add_route(&mut self, route: Route) -> Result<(), RouteError> {
        let Route { network, prefix_len, gateway, .. } = route;
        let is_group = network.is_multicast_or_broadcast();
        let is_other = |gateway: Address| gateway.family() != network.family();
        if is_group || gateway.is_some_and(is_other) {
            return Err(RouteError::NotANetwork(network));
        }
        if self.net.ip.routes.len() >= Routes::MOST {
            return Err(RouteError::TooMany { limit: Routes::MOST });
        }
        if let Some(gateway) = gateway
            && !self.is_neighbour(&gateway)
        {
            return Err(RouteError::Gateway(gateway));
        }
        check_prefix(&network, prefix_len)?;
        if self.net.ip.routes.given(&route).is_some() {
            return Err(RouteError::Exists { network, prefix_len });
        }
        self.net.ip.routes.add(route)?;
        self.on_ways_changed(&route);
        Ok(())
    }

    /// Removes the route to this network over this gateway, or directly; its metric and metrics do not
    /// matter. Packets that have no other from then on do not leave: `connect` says so, and connections
    /// that there are end by their time-outs, unless a route comes back.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), RouteError> {
        let Route { network, prefix_len, .. } = *route;
        check_prefix(&network, prefix_len)?;
        let removed = self.net.ip.routes.remove(route);
        removed.ok_or(RouteError::Unknown { network, prefix_len })?;
        self.on_ways_changed(route);
        Ok(())
    }

    /// Whether a router at `addr` could be reached without another. Every Ethernet has the link-local
    /// network of IPv6, whether this host has an address in it or not.
    fn is_neighbour(&self, addr: &Address) -> bool {
        let is_host = !addr.is_unspecified()
            && !addr.is_multicast_or_broadcast()
            && !self.net.ip.addresses.is_local(addr);
        let direct = self.net.ip.routes.find(addr).is_some_and(|way| way.gateway.is_none());
        is_host && (direct || is_link_local(addr))
    }

    /// Whatever was found out by the former addresses and routes of the way to this network is not to be
    /// relied upon.
    fn on_ways_changed(&mut self, network: &Route) {
        self.tcp.passive.heard = None;
        self.tcp.active.judged_peer = None;
        self.udp.judged_way = None;
        self.net.look_at_destinations();
        let leads_there = |remote: &Address| is_within(network, remote);
        self.net.ip.path_mtus.forget_those(leads_there);
        self.net.ip.datagram_mtus.forget_those(leads_there);
        self.net.ip.reply_mtus.forget_those(leads_there);
        if let Some(link) = &mut self.net.link {
            link.forget_ways();
        }
    }
}
