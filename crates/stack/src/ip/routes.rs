//! Where packets go: the longest matching prefix, then the least metric, then whose gateway answers.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_wire::Address;

use super::addresses::{bits, check_prefix, masked};
use crate::error::ConfigError;
use crate::{InterfaceAddress, Route};

/// The routing table. A look-up costs one search for each prefix length in use.
#[derive(Debug, Default)]
pub struct Routes {
    /// The ways to each network, the best first.
    networks: BTreeMap<(u8, Address), Vec<Route>>,
    gateways: BTreeSet<Address>,
    lengths: BTreeSet<Reverse<u8>>,
    /// The broadcast addresses of IPv4 networks that are directly connected.
    broadcasts: BTreeSet<Address>,
    /// A bit for each value of the low six bits of those.
    broadcast_ends: u64,
    /// Whether anything is known of the paths over any route.
    has_metrics: bool,
}

impl Routes {
    /// The routes given, and those that the addresses' own networks imply.
    pub fn new(own: &[InterfaceAddress], given: &[Route]) -> Result<Self, ConfigError> {
        let mut routes = Self::default();
        for address in own {
            let network = Route {
                network: address.addr,
                prefix_len: address.prefix_len,
                gateway: None,
                metric: 0,
                metrics: RouteMetrics::default(),
            };
            routes.add(network)?;
        }
        for route in given {
            routes.add(*route)?;
        }
        Ok(routes)
    }

    /// Adds a route, behind those to the same network whose metric is as good. Of two over the same
    /// gateway the one with the lesser metric stays; of the same metric the first, with what either
    /// knows of its paths; where both know something, with the second's.
    pub fn add(&mut self, route: Route) -> Result<(), ConfigError> {
        check_prefix(&route.network, route.prefix_len)?;
        let network = masked(&route.network, route.prefix_len);
        let len = full_len(&network, route.prefix_len);
        self.lengths.insert(Reverse(len));
        if let Some(broadcast) = broadcast_of(&route) {
            self.broadcasts.insert(broadcast);
            self.broadcast_ends |= end_bit(&broadcast);
        }
        self.gateways.extend(route.gateway);
        self.has_metrics |= route.metrics != RouteMetrics::default();
        let candidates = self.networks.entry((len, network)).or_default();
        let same = |way: &&mut Route| way.gateway == route.gateway && way.metric == route.metric;
        if let Some(way) = candidates.iter_mut().find(same) {
            way.metrics = route.metrics.or(way.metrics);
            return Ok(());
        }
        candidates.retain(|way| way.gateway != route.gateway || way.metric <= route.metric);
        if candidates.iter().all(|way| way.gateway != route.gateway) {
            let place = candidates.partition_point(|way| way.metric <= route.metric);
            candidates.insert(place, route);
        }
        Ok(())
    }

    /// The best route to `remote`.
    pub fn find(&self, remote: &Address) -> Option<&Route> {
        self.routes_to(remote).first()
    }

    /// Whether anything is known of any path.
    #[inline]
    pub const fn has_metrics(&self) -> bool {
        self.has_metrics
    }

    /// What is known of the paths to `remote`, if anything is.
    #[inline]
    pub fn metrics_to(&self, remote: &Address) -> Option<&RouteMetrics> {
        if !self.has_metrics {
            return None;
        }
        self.find(remote).map(|route| &route.metrics)
    }

    /// The routes to `remote` of the longest prefix that has some, the best first: those behind it
    /// are for when its gateway does not answer (RFC 1122 3.3.1.4).
    pub fn routes_to(&self, remote: &Address) -> &[Route] {
        let own_bits = 128 - bits(remote.family());
        let found = self.lengths.iter().filter(|len| len.0 >= own_bits).find_map(|Reverse(len)| {
            let network = masked(remote, *len - own_bits);
            let candidates = self.networks.get(&(*len, network))?;
            candidates
                .first()
                .is_some_and(|way| way.network.family() == remote.family())
                .then_some(candidates)
        });
        found.map_or(&[], Vec::as_slice)
    }

    /// Whether a route leads over `addr`.
    pub fn is_gateway(&self, addr: &Address) -> bool {
        self.gateways.contains(addr)
    }

    /// Whether [`Routes::is_broadcast`] must be asked. The host bits of a broadcast address are all
    /// ones, so that few others end as it does.
    #[inline]
    pub fn may_be_broadcast(&self, addr: &Address) -> bool {
        self.broadcast_ends & end_bit(addr) != 0
    }

    /// Whether the address means all hosts of a network that we are on. The set answers for nearly
    /// all of them, and only a match is looked up, as a longer prefix may make it one host's.
    #[inline]
    pub fn is_broadcast(&self, addr: &Address) -> bool {
        self.broadcasts.contains(addr)
            && self.find(addr).is_some_and(|route| broadcast_of(route) == Some(*addr))
    }
}

/// The bit for an address' low six bits.
fn end_bit(addr: &Address) -> u64 {
    let [.., last] = addr.octets();
    1 << (last & 63)
}

/// The address of all hosts of a directly connected network. RFC 3021 2.1: one of two addresses
/// has none.
fn broadcast_of(route: &Route) -> Option<Address> {
    let hosts = u32::MAX.checked_shr(u32::from(route.prefix_len)).unwrap_or(0);
    let connected = route.network.is_v4() && route.gateway.is_none();
    let bits = u32::from_be_bytes(route.network.v4_octets()) | hosts;
    (connected && hosts > 1).then(|| Address::from_v4_octets(bits.to_be_bytes()))
}

/// The prefix length in the 128 bits that both families share.
fn full_len(network: &Address, prefix_len: u8) -> u8 {
    128 - bits(network.family()) + prefix_len
}

#[cfg(test)]
mod tests;
