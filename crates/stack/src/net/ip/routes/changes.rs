//! Routes that go while the host runs.

use alloc::collections::BTreeMap;
use core::cmp::Reverse;

use whimbrel_tcp::conn::RouteMetrics;

use super::{Routes, broadcast_of, end_bit, key_of, network_of};
use crate::{InterfaceAddress, Route};

impl Routes {
    /// A host may have this many that are added while it runs: with them a table of some 10 MB.
    pub const MOST: usize = 65_536;

    /// Returns the number of routes, those of the addresses' own networks among them.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every route, by networks from the shortest prefix on, and of each network the best first.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.networks.values().flatten()
    }

    /// The route to this network over this gateway, or directly. One that only an address implies is not
    /// one that was given.
    pub(crate) fn given(&self, route: &Route) -> Option<&Route> {
        let key = key_of(route);
        if route.gateway.is_none() {
            return self.given.get(&key);
        }
        self.networks.get(&key)?.iter().find(|way| way.gateway == route.gateway)
    }

    /// Removes it, whatever its metrics. Returns what it was.
    pub fn remove(&mut self, route: &Route) -> Option<Route> {
        let known = *self.given(route)?;
        let key = key_of(route);
        if route.gateway.is_none() {
            self.given.remove(&key);
        }
        if route.gateway.is_none() && self.own.contains_key(&key) {
            // That of the addresses stays where it stands, and nothing more is known of its paths.
            let ways = self.networks.get_mut(&key).into_iter().flatten();
            for way in ways.filter(|way| way.gateway.is_none()) {
                way.metrics = RouteMetrics::default();
            }
            self.look_for_metrics();
        } else {
            self.take_out(route);
        }
        Some(known)
    }

    /// An address of this host is no more: its network goes with the last of them, unless it was given as
    /// a route, too.
    pub fn remove_own(&mut self, own: &InterfaceAddress) {
        let network = network_of(own);
        let key = key_of(&network);
        let Some(count) = self.own.get_mut(&key) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.own.remove(&key);
        self.take_out(&network);
        if let Some(given) = self.given.get(&key).copied() {
            self.push_front(given);
        }
    }

    /// One whose prefix is known to be valid.
    fn push_front(&mut self, route: Route) {
        let added = self.insert(route);
        debug_assert!(added.is_ok(), "it was in the table");
    }

    fn take_out(&mut self, route: &Route) {
        let key = key_of(route);
        let Some(ways) = self.networks.get_mut(&key) else { return };
        let Some(at) = ways.iter().position(|way| way.gateway == route.gateway) else { return };
        let gone = ways.remove(at);
        self.count -= 1;
        if ways.is_empty() {
            self.networks.remove(&key);
            forget(&mut self.lengths, &Reverse(key.0));
        }
        if let Some(gateway) = &gone.gateway {
            forget(&mut self.gateways, gateway);
        }
        if let Some(broadcast) = broadcast_of(&gone) {
            forget(&mut self.broadcasts, &broadcast);
            self.broadcast_ends = self.broadcasts.keys().map(end_bit).fold(0, |all, bit| all | bit);
        }
        if gone.metrics != RouteMetrics::default() {
            self.look_for_metrics();
        }
    }

    fn look_for_metrics(&mut self) {
        let others = self.iter().any(|way| way.metrics != RouteMetrics::default());
        self.has_metrics = others;
    }
}

/// One less has it; with the last it goes.
fn forget<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
