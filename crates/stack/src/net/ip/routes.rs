//! The table of routes: the longest matching prefix, then the least metric, then a gateway that answers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_wire::Address;

use super::addresses::{bits, check_prefix, masked};
use crate::error::ConfigError;
use crate::{InterfaceAddress, Route};

mod changes;

/// The routing table. A look-up costs one search for each prefix length in use.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// The ways to each network, the best first.
    networks: BTreeMap<(u8, Address), Vec<Route>>,
    /// Number of routes.
    count: usize,
    /// Number of routes over each gateway.
    gateways: BTreeMap<Address, u32>,
    /// Number of networks of each prefix length.
    lengths: BTreeMap<Reverse<u8>, u32>,
    /// The broadcast addresses of IPv4 networks that are directly connected, and of how many each is: networks
    /// of different lengths may end alike.
    broadcasts: BTreeMap<Address, u32>,
    /// A bit for each value of the low six bits of those.
    broadcast_ends: u64,
    /// True if anything is known of the paths over any route.
    has_metrics: bool,
    /// Number of addresses of this host in each network.
    own: BTreeMap<(u8, Address), u32>,
    /// The directly connected networks that were given as routes: they stay when no address lies in them.
    given: BTreeMap<(u8, Address), Route>,
}

impl Routes {
    /// The routes given, and those that the addresses' own networks imply.
    pub fn new(own: &[InterfaceAddress], given: &[Route]) -> Result<Self, ConfigError> {
        let mut routes = Self::default();
        for address in own {
            routes.add_own(address)?;
        }
        for route in given {
            routes.add(*route)?;
        }
        Ok(routes)
    }

    /// An address of this host lies in its network.
    pub fn add_own(&mut self, own: &InterfaceAddress) -> Result<(), ConfigError> {
        let network = network_of(own);
        self.insert(network)?;
        *self.own.entry(key_of(&network)).or_default() += 1;
        Ok(())
    }

    /// Adds a route, behind those to the same network whose metric is as good. Of two over the same
    /// gateway the one with the lesser metric stays; of the same metric the first, with what either
    /// knows of its paths; where both know something, with the second's.
    pub fn add(&mut self, route: Route) -> Result<(), ConfigError> {
        self.insert(route)?;
        if route.gateway.is_none() {
            self.given.insert(key_of(&route), route);
        }
        Ok(())
    }

    fn insert(&mut self, route: Route) -> Result<(), ConfigError> {
        check_prefix(&route.network, route.prefix_len)?;
        let key = key_of(&route);
        self.has_metrics |= route.metrics != RouteMetrics::default();
        let ways = self.networks.entry(key).or_default();
        if ways.is_empty() {
            *self.lengths.entry(Reverse(key.0)).or_default() += 1;
        }
        // Over one gateway there is one way.
        let Some(at) = ways.iter().position(|way| way.gateway == route.gateway) else {
            let place = ways.partition_point(|way| way.metric <= route.metric);
            ways.insert(place, route);
            self.on_added(&route);
            return Ok(());
        };
        let Some(known) = ways.get_mut(at) else { return Ok(()) };
        if known.metric == route.metric {
            known.metrics = route.metrics.or(known.metrics);
        } else if route.metric < known.metric {
            ways.remove(at);
            let place = ways.partition_point(|way| way.metric <= route.metric);
            ways.insert(place, route);
        }
        Ok(())
    }

    fn on_added(&mut self, route: &Route) {
        self.count += 1;
        if let Some(broadcast) = broadcast_of(route) {
            *self.broadcasts.entry(broadcast).or_default() += 1;
            self.broadcast_ends |= end_bit(&broadcast);
        }
        if let Some(gateway) = route.gateway {
            *self.gateways.entry(gateway).or_default() += 1;
        }
    }

    /// The best route to `remote`.
    pub fn find(&self, remote: &Address) -> Option<&Route> {
        self.routes_to(remote).first()
    }

    /// True if anything is known of any path.
    #[inline]
    pub const fn has_metrics(&self) -> bool {
        self.has_metrics
    }

    /// Returns the path metrics of `remote`, if there are any.
    #[inline]
    pub fn metrics_to(&self, remote: &Address) -> Option<&RouteMetrics> {
        if self.has_metrics() { self.find_metrics(remote) } else { None }
    }

    #[inline(never)]
    fn find_metrics(&self, remote: &Address) -> Option<&RouteMetrics> {
        self.find(remote).map(|route| &route.metrics)
    }

    /// The routes to `remote` of the longest prefix that has some, the best first: those behind it
    /// are for when its gateway does not answer (RFC 1122 3.3.1.4).
    pub fn routes_to(&self, remote: &Address) -> &[Route] {
        let own_bits = 128 - bits(remote.family());
        let found = self.lengths.keys().filter(|len| len.0 >= own_bits).find_map(|Reverse(len)| {
            let network = masked(remote, *len - own_bits);
            let candidates = self.networks.get(&(*len, network))?;
            candidates
                .first()
                .is_some_and(|way| way.network.family() == remote.family())
                .then_some(candidates)
        });
        found.map_or(&[], Vec::as_slice)
    }

    /// True if a route leads over `addr`.
    pub fn is_gateway(&self, addr: &Address) -> bool {
        self.gateways.contains_key(addr)
    }

    /// True if [`Routes::is_broadcast`] must be asked. The host bits of a broadcast address are all
    /// ones, so that few others end as it does.
    #[inline]
    pub fn may_be_broadcast(&self, addr: &Address) -> bool {
        self.broadcast_ends & end_bit(addr) != 0
    }

    /// True if the address means all hosts of a network that we are on. Its end answers for most, the set
    /// for nearly all, and only a match is looked up, as a longer prefix may make it one host's.
    #[inline]
    pub fn is_broadcast(&self, addr: &Address) -> bool {
        self.may_be_broadcast(addr)
            && self.broadcasts.contains_key(addr)
            && self.find(addr).is_some_and(|route| broadcast_of(route) == Some(*addr))
    }
}

/// The network of an address, which is directly connected.
pub(crate) fn network_of(own: &InterfaceAddress) -> Route {
    Route {
        network: own.addr,
        prefix_len: own.prefix_len,
        gateway: None,
        metric: 0,
        metrics: RouteMetrics::default(),
    }
}

/// Under which its network stands in the table; of a valid prefix.
fn key_of(route: &Route) -> (u8, Address) {
    let network = masked(&route.network, route.prefix_len);
    (full_len(&network, route.prefix_len), network)
}

/// True if the route is to a network that `remote` lies in.
pub(crate) fn is_within(route: &Route, remote: &Address) -> bool {
    route.network.family() == remote.family()
        && masked(remote, route.prefix_len) == masked(&route.network, route.prefix_len)
}

/// The bit for an address' low six bits.
fn end_bit(addr: &Address) -> u64 {
    let [.., last] = addr.as_bytes();
    1 << (last & 63)
}

/// The address of all hosts of a directly connected network. RFC 3021 2.1: one of two addresses
/// has none.
fn broadcast_of(route: &Route) -> Option<Address> {
    let hosts = u32::MAX.checked_shr(u32::from(route.prefix_len)).unwrap_or(0);
    let connected = route.network.is_v4() && route.gateway.is_none();
    let bits = u32::from_be_bytes(route.network.v4_bytes()) | hosts;
    (connected && hosts > 1).then(|| Address::from_v4_bytes(bits.to_be_bytes()))
}

/// The prefix length in the 128 bits that both families share.
fn full_len(network: &Address, prefix_len: u8) -> u8 {
    128 - bits(network.family()) + prefix_len
}

#[cfg(test)]
mod tests;
