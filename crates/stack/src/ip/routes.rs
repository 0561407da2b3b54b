//! Where packets go: the longest matching prefix, then the least metric.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Reverse;

use whimbrel_wire::Address;

use super::addresses::{bits, check_prefix, masked};
use crate::shard::ConfigError;
use crate::{InterfaceAddress, Route};

/// The routing table. A look-up costs one search for each prefix length in use.
#[derive(Debug, Default)]
pub struct Routes {
    networks: BTreeMap<(u8, Address), Route>,
    lengths: BTreeSet<Reverse<u8>>,
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
            };
            routes.add(network)?;
        }
        for route in given {
            routes.add(*route)?;
        }
        Ok(routes)
    }

    /// Adds a route; of two to the same network the one with the lesser metric stays.
    pub fn add(&mut self, route: Route) -> Result<(), ConfigError> {
        check_prefix(&route.network, route.prefix_len)?;
        let network = masked(&route.network, route.prefix_len);
        let len = full_len(&network, route.prefix_len);
        self.lengths.insert(Reverse(len));
        let present = self.networks.entry((len, network)).or_insert(route);
        if route.metric < present.metric {
            *present = route;
        }
        Ok(())
    }

    /// The route to `remote`.
    pub fn find(&self, remote: &Address) -> Option<&Route> {
        let own_bits = 128 - bits(remote.family());
        self.lengths.iter().filter(|len| len.0 >= own_bits).find_map(|Reverse(len)| {
            let network = masked(remote, *len - own_bits);
            let route = self.networks.get(&(*len, network))?;
            (route.network.family() == remote.family()).then_some(route)
        })
    }
}

/// The prefix length in the 128 bits that both families share.
fn full_len(network: &Address, prefix_len: u8) -> u8 {
    128 - bits(network.family()) + prefix_len
}

#[cfg(test)]
mod tests;
