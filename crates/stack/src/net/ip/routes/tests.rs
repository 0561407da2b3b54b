//! The table of routes.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_wire::Address;

use super::Routes;
use crate::ip::addresses::bits;
use crate::ip::addresses::tests::{addr, any_address, share_prefix};
use crate::shard::ConfigError;
use crate::{InterfaceAddress, Route, RouteMetrics};

fn route(network: &str, prefix_len: u8, gateway: Option<&str>, metric: u32) -> Route {
    Route {
        network: addr(network),
        prefix_len,
        gateway: gateway.map(addr),
        metric,
        metrics: RouteMetrics::default(),
    }
}

#[test]
fn the_longest_prefix_wins_then_the_least_metric() {
    let own = [InterfaceAddress { addr: addr("10.0.0.1"), prefix_len: 24 }];
    let given = [
        route("0.0.0.0", 0, Some("10.0.0.254"), 10),
        route("0.0.0.0", 0, Some("10.0.0.253"), 5),
        route("10.0.0.128", 25, Some("10.0.0.3"), 100),
        route("::", 0, Some("fe80::1"), 0),
    ];
    let routes = Routes::new(&own, &given).expect("valid routes");
    let gateway = |text| routes.find(&addr(text)).and_then(|route| route.gateway);
    assert_eq!(gateway("10.0.0.7"), None, "directly connected");
    assert_eq!(gateway("10.0.0.200"), Some(addr("10.0.0.3")));
    assert_eq!(gateway("8.8.8.8"), Some(addr("10.0.0.253")));
    assert_eq!(gateway("2001:db8::1"), Some(addr("fe80::1")), "each family has its own default");
}

#[test]
fn the_ways_to_a_network_stand_by_metric_and_each_gateway_once() {
    let given = [
        route("0.0.0.0", 0, Some("10.0.0.3"), 7),
        route("0.0.0.0", 0, Some("10.0.0.1"), 5),
        route("0.0.0.0", 0, Some("10.0.0.2"), 5),
        route("0.0.0.0", 0, Some("10.0.0.3"), 9),
        route("0.0.0.0", 0, Some("10.0.0.4"), 9),
        route("0.0.0.0", 0, Some("10.0.0.4"), 0),
        route("10.1.0.0", 16, Some("10.0.0.5"), 9),
    ];
    let routes = Routes::new(&[], &given).expect("valid routes");
    let candidates = |to| -> Vec<_> {
        routes
            .routes_to(&addr(to))
            .iter()
            .map(|way| (way.gateway.expect("a gateway"), way.metric))
            .collect()
    };
    let by = |last: u8| addr(&std::format!("10.0.0.{last}"));
    assert_eq!(candidates("8.8.8.8"), [(by(4), 0), (by(1), 5), (by(2), 5), (by(3), 7)]);
    assert_eq!(candidates("10.1.2.3"), [(by(5), 9)], "the longest prefix alone");
    assert_eq!(candidates("fd00::1"), []);
    assert!(routes.is_gateway(&by(3)) && !routes.is_gateway(&by(6)));
}

#[test]
fn without_a_route_there_is_no_way() {
    let own = [InterfaceAddress { addr: addr("10.0.0.1"), prefix_len: 24 }];
    let routes = Routes::new(&own, &[]).expect("valid routes");
    assert_eq!(routes.find(&addr("10.0.1.1")), None);
    assert_eq!(routes.find(&addr("::")), None);
}

#[test]
fn a_prefix_longer_than_the_address_is_refused() {
    let refused = Routes::new(&[], &[route("10.0.0.0", 33, None, 0)]).map(|_| ());
    assert_eq!(refused, Err(ConfigError::PrefixLength { len: 33, bits: 32 }));
}

#[test]
fn the_last_address_of_a_connected_network_means_all_its_hosts() {
    let given = [
        route("10.0.0.0", 24, None, 0),
        route("10.0.1.0", 31, None, 0),
        route("10.1.0.0", 16, Some("10.0.0.9"), 0),
        route("10.2.0.0", 16, None, 0),
        route("10.2.255.255", 32, Some("10.0.0.9"), 0),
        route("fd00::", 64, None, 0),
    ];
    let routes = Routes::new(&[], &given).expect("valid routes");
    assert!(routes.is_broadcast(&addr("10.0.0.255")));
    for host in ["10.0.0.254", "10.0.1.1", "10.1.255.255", "fd00::ffff:ffff:ffff:ffff"] {
        assert!(!routes.is_broadcast(&addr(host)), "{host}");
    }
    assert!(!routes.is_broadcast(&addr("10.2.255.255")), "a longer prefix makes it one host's");
}

#[test]
fn the_network_of_two_addresses_goes_with_the_last_of_them() {
    let own = |text: &str| InterfaceAddress { addr: addr(text), prefix_len: 24 };
    let both = [own("10.0.0.1"), own("10.0.0.2")];
    let mut routes = Routes::new(&both, &[]).expect("valid routes");
    assert_eq!(routes.remove(&route("10.0.0.0", 24, None, 0)), None, "it was not given");
    routes.remove_own(&both[0]);
    assert!(routes.is_broadcast(&addr("10.0.0.255")));
    routes.remove_own(&both[1]);
    assert!(routes.is_empty() && !routes.is_broadcast(&addr("10.0.0.255")));
    // One that was given stays, with what is known of it.
    let metrics = RouteMetrics::new().with_mtu(1_400);
    let given = Route { metrics, ..route("10.0.0.0", 24, None, 3) };
    let mut routes = Routes::new(&both, &[given]).expect("valid routes");
    both.iter().for_each(|it| routes.remove_own(it));
    assert_eq!(routes.find(&addr("10.0.0.9")), Some(&given));
    assert!(routes.has_metrics() && routes.len() == 1);
    assert_eq!(routes.remove(&given), Some(given));
    assert!(routes.is_empty() && !routes.has_metrics());
}

/// The route to `remote` by looking at each.
fn scan<'a>(given: &'a [Route], remote: &Address) -> Option<&'a Route> {
    let fitting = given.iter().filter(|it| share_prefix(&it.network, remote, it.prefix_len));
    // Of equals the first that was given.
    fitting.reduce(|best, next| {
        let better =
            (next.prefix_len, u32::MAX - next.metric) > (best.prefix_len, u32::MAX - best.metric);
        if better { next } else { best }
    })
}

proptest! {
    #[test]
    fn finding_agrees_with_looking_at_each(
        given in vec((any_address(), 0u8..=128, 0u32..4, any_address()), 0..20),
        remotes in vec(any_address(), 1..20),
    ) {
        let given: Vec<Route> = given
            .into_iter()
            .map(|(network, len, metric, gateway)| {
                let prefix_len = len.min(bits(network.family()));
                let metrics = RouteMetrics::default();
                Route { network, prefix_len, gateway: Some(gateway), metric, metrics }
            })
            .collect();
        let routes = Routes::new(&[], &given).expect("valid routes");
        for remote in &remotes {
            prop_assert_eq!(routes.find(remote), scan(&given, remote), "to {}", remote);
        }
    }

    #[test]
    fn what_is_removed_leaves_a_table_as_if_it_had_never_been_there(
        given in vec((0u8..4, 8u8..=10, 0u32..3, 0u8..3), 0..20),
        kept in vec(any::<bool>(), 20),
        remotes in vec(any_address(), 1..20),
    ) {
        let mut all: Vec<Route> = Vec::new();
        for (net, len, metric, by) in given {
            let gateway = ["10.9.0.1", "10.9.0.2"].get(usize::from(by)).copied();
            let network = std::format!("10.{}.0.0", net * 64);
            let one = route(&network, len, gateway, metric);
            let leads = |it: &Route| share_prefix(&it.network, &one.network, len);
            let same = |it: &Route| it.prefix_len == len && it.gateway == one.gateway && leads(it);
            // Of two over one gateway the table keeps one.
            if !all.iter().any(same) {
                all.push(one);
            }
        }
        let own = [InterfaceAddress { addr: addr("10.64.0.1"), prefix_len: 10 }];
        let mut routes = Routes::new(&own, &all).expect("valid routes");
        for (one, _) in all.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            prop_assert_eq!(routes.remove(one).map(|it| it.prefix_len), Some(one.prefix_len));
        }
        let rest: Vec<_> = all.iter().zip(&kept).filter(|(_, kept)| **kept).map(|it| *it.0).collect();
        let fresh = Routes::new(&own, &rest).expect("valid routes");
        prop_assert_eq!(routes.len(), fresh.len());
        for remote in remotes.iter().chain(&[addr("10.255.255.255"), addr("10.127.255.255")]) {
            // Which address of a network names it does not matter.
            let ways = |table: &Routes| -> Vec<_> {
                let ways = table.routes_to(remote).iter();
                ways.map(|way| (way.prefix_len, way.gateway, way.metric)).collect()
            };
            prop_assert_eq!(ways(&routes), ways(&fresh), "to {}", remote);
            prop_assert_eq!(routes.is_broadcast(remote), fresh.is_broadcast(remote));
            prop_assert!(routes.may_be_broadcast(remote) || !routes.is_broadcast(remote));
        }
        for gateway in ["10.9.0.1", "10.9.0.2"].map(addr) {
            prop_assert_eq!(routes.is_gateway(&gateway), fresh.is_gateway(&gateway));
        }
    }
}
