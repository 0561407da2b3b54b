//! Addresses and routes of a host that come and go while it runs, as far as no connection hangs on them.

use alloc::collections::BTreeSet;

use whimbrel_base::Instant;
use whimbrel_wire::Address;

use super::{Net, check_mtu};
use crate::error::{AddressError, RouteError};
use crate::ip::{Routes, check_prefix, is_link_local, is_within, network_of};
use crate::link::{CheckedAddress, TooManyChecks};
use crate::{InterfaceAddress, Route};

/// Addresses of this host.
impl Net {
    /// Begins to ask whether another station has `addr`. Returns the answer where no station can be asked.
    pub(crate) fn check_address(
        &mut self,
        addr: Address,
        now: Instant,
    ) -> Result<Option<CheckedAddress>, AddressError> {
        match self.check_tentative(addr, now) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(CheckedAddress { addr, conflict: None })),
            Err(TooManyChecks { limit }) => Err(AddressError::Checking { limit }),
        }
    }

    /// Checks that this host could be given this address now.
    pub(crate) fn judge_address(&self, address: &InterfaceAddress) -> Result<(), AddressError> {
        let addr = address.addr;
        if addr.to_ip().is_loopback() {
            return Err(AddressError::Loopback(addr));
        }
        if self.ip.addresses.is_local(&addr) {
            return Err(AddressError::Exists(addr));
        }
        check_mtu(self.mtu(), core::iter::once(address))?;
        Ok(())
    }

    /// Adds an address, by a number that is not `in_use`, and a route to its network.
    pub(crate) fn add_address(
        &mut self,
        address: InterfaceAddress,
        in_use: &BTreeSet<u16>,
    ) -> Result<(), AddressError> {
        let local = self.ip.addresses.add(address, in_use)?;
        let routed = self.ip.routes.add_own(&address);
        debug_assert!(routed.is_ok(), "the prefix fits the address");
        self.forget_ways(&network_of(&address));
        if let Some(link) = &mut self.link {
            link.on_address_added(local);
        }
        Ok(())
    }

    /// Removes an address, whose number is `local`, and the route to its network with the last one in it.
    pub(crate) fn remove_address(
        &mut self,
        addr: &Address,
        local: u16,
    ) -> Result<(), AddressError> {
        let Some(removed) = self.ip.addresses.remove(addr) else {
            return Err(AddressError::Unknown(*addr));
        };
        self.ip.routes.remove_own(&removed);
        self.forget_ways(&network_of(&removed));
        if let Some(link) = &mut self.link {
            link.on_address_removed(local);
        }
        Ok(())
    }

    /// Drops what was to leave from an address that is no more.
    pub(crate) fn forget_answers(&mut self, local: u16, addr: &Address) {
        self.replies.forget(local, addr);
        self.pings.on_address_removed(local);
    }
}

/// Routes of this host.
impl Net {
    /// Adds a route.
    pub(crate) fn add_route(&mut self, route: Route) -> Result<(), RouteError> {
        let Route { network, prefix_len, gateway, .. } = route;
        let is_group = network.is_multicast_or_broadcast();
        let is_other = |gateway: Address| gateway.family() != network.family();
        if is_group || gateway.is_some_and(is_other) {
            return Err(RouteError::NotANetwork(network));
        }
        if self.ip.routes.len() >= Routes::MOST {
            return Err(RouteError::TooMany { limit: Routes::MOST });
        }
        if let Some(gateway) = gateway
            && !self.is_neighbour(&gateway)
        {
            return Err(RouteError::Gateway(gateway));
        }
        check_prefix(&network, prefix_len)?;
        if self.ip.routes.given(&route).is_some() {
            return Err(RouteError::Exists { network, prefix_len });
        }
        self.ip.routes.add(route)?;
        self.forget_ways(&route);
        Ok(())
    }

    /// Removes a route.
    pub(crate) fn remove_route(&mut self, route: &Route) -> Result<(), RouteError> {
        let Route { network, prefix_len, .. } = *route;
        check_prefix(&network, prefix_len)?;
        let removed = self.ip.routes.remove(route);
        removed.ok_or(RouteError::Unknown { network, prefix_len })?;
        self.forget_ways(route);
        Ok(())
    }

    /// True if a router at `addr` could be reached without another. Every Ethernet has the link-local
    /// network of IPv6, whether this host has an address in it or not.
    fn is_neighbour(&self, addr: &Address) -> bool {
        let is_host = !addr.is_unspecified()
            && !addr.is_multicast_or_broadcast()
            && !self.ip.addresses.is_local(addr);
        let direct = self.ip.routes.find(addr).is_some_and(|way| way.gateway.is_none());
        is_host && (direct || is_link_local(addr))
    }

    /// Forgets what was found out, by the former addresses and routes, of the way to this network.
    fn forget_ways(&mut self, network: &Route) {
        self.enable_destination_check();
        self.forget_paths(|remote| is_within(network, remote));
        if let Some(link) = &mut self.link {
            link.forget_ways();
        }
    }
}
