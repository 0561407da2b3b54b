//! Addresses and routes that come and go on an Ethernet.

use std::time::Duration;

use whimbrel_wire::ndp::{NdpMessage, NeighborFlags};
use whimbrel_wire::{ArpOperation, MacAddress};

use super::super::hosts::{BOTH, Over};
use super::station::{
    ALL_NODES, Host, OURS, Sent, address, announces, arp, asks, ndp, station, v6,
};
use crate::link::{AddressConflict, CheckedAddress};
use crate::shard::AddressError;
use crate::{InterfaceAddress, Route, RouteMetrics};

const OTHER: MacAddress = MacAddress([6, 6, 6, 6, 6, 6]);

/// The address that comes.
fn third(over: Over) -> InterfaceAddress {
    InterfaceAddress { addr: address(over, 3), prefix_len: if over == Over::V4 { 16 } else { 64 } }
}

#[test]
fn address_is_probed_three_times_then_announced() {
    for over in BOTH {
        let mut host = Host::new();
        let added = third(over);
        assert_eq!(host.shard.check_address(added.addr), Ok(None));
        assert_eq!(host.run(Duration::ZERO), [Sent::Probe(added.addr)]);
        for _ in 0..2 {
            assert_eq!(host.run(Duration::from_millis(300)), [Sent::Probe(added.addr)]);
            assert_eq!(host.shard.poll_checked(), None);
            // Meanwhile it is not used, and the others are.
            assert_eq!(host.take(&asks(over, 9, station(9))), [Sent::Answer(station(9))]);
        }
        assert_eq!(host.run(Duration::from_millis(300)), []);
        let free = CheckedAddress { addr: added.addr, conflict: None };
        assert_eq!(host.shard.poll_checked(), Some(free));
        host.shard.add_address(added).expect("it is free");
        assert_eq!(host.run(Duration::ZERO), []);
        assert_eq!(
            host.take(&asks_for(over, 3)),
            [Sent::Announce(added.addr), Sent::Answer(station(9))]
        );
        // Removed, it is silent, and what was to be said of it is not said.
        host.shard.rx(
            host.now,
            &[crate::RxFrame::new(&asks_for(over, 3), whimbrel_base::packet::SegMeta::SINGLE)],
        );
        host.shard.remove_address(&added.addr).expect("it was added");
        assert_eq!(host.take(&asks_for(over, 3)), []);
        assert_eq!(host.take(&asks(over, 9, station(9))), [Sent::Answer(station(9))]);
    }
}

/// The neighbour number 9 asks who has the address number `target`.
fn asks_for(over: Over, target: u16) -> Vec<u8> {
    match over {
        Over::V4 => arp(ArpOperation::Request, MacAddress::BROADCAST, 9, station(9), target),
        Over::V6 => {
            let target = v6(address(over, target));
            let question =
                NdpMessage::NeighborSolicitation { target, source_link_layer: Some(station(9)) };
            let group = whimbrel_wire::ndp::solicited_node(target);
            ndp(v6(address(over, 9)), group, station(9), &question)
        }
    }
}

#[test]
fn an_address_that_another_station_has_is_found_out_at_once() {
    for over in BOTH {
        let mut host = Host::new();
        let wanted = address(over, 3);
        host.shard.check_address(wanted).expect("room");
        assert_eq!(host.run(Duration::ZERO), [Sent::Probe(wanted)]);
        let claim = match over {
            Over::V4 => announces(over, 3, OTHER),
            Over::V6 => {
                let flags = NeighborFlags { router: false, solicited: false, overrides: true };
                let target = v6(wanted);
                let has = NdpMessage::NeighborAdvertisement {
                    target,
                    flags,
                    target_link_layer: Some(OTHER),
                };
                ndp(target, ALL_NODES, OTHER, &has)
            }
        };
        host.take(&claim);
        let conflict = Some(AddressConflict { addr: wanted, station: OTHER });
        let checked = CheckedAddress { addr: wanted, conflict };
        assert_eq!(host.shard.poll_checked(), Some(checked));
        assert_eq!(host.run_seconds(5), [], "it is not asked for again");
        assert_eq!(host.counters().conflicts, 1);
    }
}

#[test]
fn reflected_probe_is_ignored_and_64_checks_are_the_limit() {
    let mut host = Host::new();
    for number in 100..164 {
        host.shard.check_address(address(Over::V4, number)).expect("room");
    }
    let beyond = host.shard.check_address(address(Over::V4, 164));
    assert_eq!(beyond, Err(AddressError::Checking { limit: 64 }));
    assert_eq!(host.run(Duration::ZERO).len(), 64);
    host.take(&arp(ArpOperation::Request, MacAddress::BROADCAST, 0, OURS, 100));
    host.run_seconds(1);
    let checked: Vec<_> = std::iter::from_fn(|| host.shard.poll_checked()).collect();
    assert_eq!(checked.len(), 64);
    assert!(checked.iter().all(|it| it.conflict.is_none()));
}

#[test]
fn a_route_over_another_gateway_takes_the_next_packet() {
    for over in BOTH {
        let mut host = Host::new();
        let far = match over {
            Over::V4 => whimbrel_wire::Address::from_v4_bytes([192, 0, 2, 1]),
            Over::V6 => std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        let way = |by| Route {
            network: far,
            prefix_len: 24,
            gateway: Some(address(over, by)),
            metric: 0,
            metrics: RouteMetrics::default(),
        };
        host.shard.add_route(way(4)).expect("a neighbour");
        let syn = whimbrel_wire::Endpoint::new(far, 80);
        let handle = host.shard.connect(syn, None).expect("a free port");
        assert_eq!(host.run(Duration::ZERO), []);
        assert_eq!(host.shard.state(handle), Some(whimbrel_tcp::conn::State::SynSent));
        assert_eq!(host.sent(), [Sent::Ask(address(over, 4), None)]);
        host.shard.remove_route(&way(4)).expect("it was added");
        host.shard.add_route(way(5)).expect("a neighbour");
        let asked = host.run_seconds(3);
        assert!(asked.contains(&Sent::Ask(address(over, 5), None)), "{asked:?}");
        host.shard.abort(handle);
    }
}
