//! Addresses and routes that come and go while the host runs (Linux' `ip address` and `ip route`).
//!
//! What hangs on an address that is removed ends with it: connections are aborted, half-open ones and
//! records in TIME-WAIT forgotten, answers that wait to leave dropped, and no segment reports it:
//! RFC 4862 5.5.4: "An invalid address MUST NOT be used as a source address in outgoing communications and
//! MUST NOT be recognized as a destination on a receiving interface." Linux keeps the connections, which
//! can send nothing more and end by time-outs a quarter of an hour later; here their applications learn of
//! it at once. Listeners and UDP sockets that are bound to the address stay, as there: they hear nothing
//! until it comes back.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use whimbrel_wire::{Address, Flow};

use super::{AddressError, RouteError, Shard};
use crate::protocol::Protocol;
use crate::{InterfaceAddress, Route};

/// The host's own addresses.
impl Shard {
    /// Gives this host another address, and a route to its network. On an Ethernet it is announced at once
    /// (RFC 5227 2.3, RFC 4861 7.2.6); whether it is free is [asked](Shard::check_address) beforehand, or not.
    /// Listeners at the unspecified address listen at it; connections that another's address
    /// had until now, of a host that [takes any](Shard::take_any_address), are aborted.
    pub fn add_address(&mut self, address: InterfaceAddress) -> Result<(), AddressError> {
        self.net.judge_address(&address)?;
        if self.net.ip.addresses.index_of_other(&address.addr).is_some() {
            self.end_flows_at(&address.addr);
        }
        let in_use = self.numbers_in_use();
        self.net.add_address(address, &in_use)?;
        self.forget_judged();
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
        self.net.forget_answers(local, addr);
        self.tcp.on_address_removed(local, addr);
        self.packets.on_address_removed(local, addr);
        self.net.remove_address(addr, local)?;
        self.forget_judged();
        Ok(())
    }

    /// Numbers of addresses that are no more and that a connection has which is over, and which its
    /// application holds still.
    fn numbers_in_use(&self) -> BTreeSet<u16> {
        if !self.net.ip.addresses.has_holes() {
            return BTreeSet::new();
        }
        self.tcp.records.connections().map(|(_, slot)| slot.connection.local_index()).collect()
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
}

/// The host's table of routes.
impl Shard {
    /// Adds a route: the longest prefix counts, then the least metric. What was chosen by the former routes
    /// is chosen anew when the next packet leaves.
    pub fn add_route(&mut self, route: Route) -> Result<(), RouteError> {
        self.net.add_route(route)?;
        self.forget_judged();
        Ok(())
    }

    /// Removes the route to this network over this gateway, or directly; its metric and metrics do not
    /// matter. Packets that have no other from then on do not leave: `connect` says so, and connections
    /// that there are end by their time-outs, unless a route comes back.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), RouteError> {
        self.net.remove_route(route)?;
        self.forget_judged();
        Ok(())
    }

    /// Forgets what was judged by the former addresses and routes.
    fn forget_judged(&mut self) {
        self.tcp.on_routes_changed();
        self.packets.on_routes_changed();
    }
}
