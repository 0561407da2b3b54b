//! Other stations with our addresses, before they are used and afterwards.

use std::time::Duration;

use whimbrel_wire::ndp::{NdpMessage, NeighborFlags, solicited_node};
use whimbrel_wire::{ArpOperation, MacAddress};

use super::super::hosts::{BOTH, Over};
use super::station::{
    ALL_NODES, Host, OURS, Sent, address, announces, answers, arp, asks, ndp, station, v6,
};
use crate::ip::FrameDrop;
use crate::link::{AddressCheck, AddressConflict};

const OTHER: MacAddress = MacAddress([6, 6, 6, 6, 6, 6]);

/// A host that begins to ask for its addresses, and what it sends at once.
fn beginning() -> (Host, Vec<Sent>) {
    let mut host = Host::new();
    host.shard.check_addresses();
    let sent = host.run(Duration::ZERO);
    (host, sent)
}

fn probes() -> [Sent; 2] {
    BOTH.map(|over| Sent::Probe(address(over, 2)))
}

#[test]
fn addresses_are_probed_thrice_and_announced_within_1s() {
    let (mut host, sent) = beginning();
    assert_eq!(sent, probes());
    for _ in 0..2 {
        assert_eq!(host.run(Duration::from_millis(310)), probes());
    }
    assert_eq!(host.shard.address_check(), AddressCheck::UnderWay);
    assert_eq!(host.run(Duration::from_millis(310)), BOTH.map(|it| Sent::Announce(address(it, 2))));
    assert_eq!(host.shard.address_check(), AddressCheck::Done);
    assert_eq!(host.run_seconds(60), []);
    assert_eq!(host.take(&asks(Over::V4, 9, station(9))), [Sent::Answer(station(9))]);
}

#[test]
fn address_under_check_neither_sends_nor_answers() {
    for over in BOTH {
        let (mut host, _) = beginning();
        for frame in [asks(over, 9, station(9)), answers(over, 9, station(9))] {
            assert_eq!(host.take(&frame), []);
        }
        assert_eq!(host.ping(over, 9), []);
        assert!(host.neighbours().is_empty());
        assert_eq!(host.shard.ip_counters().dropped(FrameDrop::Tentative), 3);
        assert_eq!(host.shard.address_check(), AddressCheck::UnderWay);
        // What an application asks for meanwhile leaves afterwards.
        let peer = whimbrel_wire::Endpoint::new(address(over, 9), 80);
        host.shard.connect(peer, None).expect("a free port");
        let before = host.run(Duration::from_millis(890));
        assert!(before.iter().all(|sent| matches!(sent, Sent::Probe(_))), "{before:?}");
        let after = host.run(Duration::from_millis(30));
        assert!(after.contains(&Sent::Ask(address(over, 9), None)), "{after:?}");
    }
}

/// Everything that says of our address that another station has it, or is about to take it.
fn claims() -> Vec<(Over, Vec<u8>)> {
    let to = MacAddress::BROADCAST;
    let probe = arp(ArpOperation::Request, to, 0, OTHER, 2);
    let target = v6(address(Over::V6, 2));
    let question = NdpMessage::NeighborSolicitation { target, source_link_layer: None };
    let unspecified = std::net::Ipv6Addr::UNSPECIFIED;
    let flags = NeighborFlags { router: false, solicited: false, overrides: true };
    let has = NdpMessage::NeighborAdvertisement { target, flags, target_link_layer: Some(OTHER) };
    vec![
        (Over::V4, probe),
        (Over::V4, arp(ArpOperation::Reply, OURS, 2, OTHER, 2)),
        (Over::V4, announces(Over::V4, 2, OTHER)),
        (Over::V6, ndp(unspecified, solicited_node(target), OTHER, &question)),
        (Over::V6, ndp(target, ALL_NODES, OTHER, &has)),
    ]
}

#[test]
fn address_of_another_station_is_never_used() {
    for (over, claim) in claims() {
        let (mut host, _) = beginning();
        host.run(Duration::from_millis(400));
        assert_eq!(host.take(&claim), []);
        let conflict = AddressConflict { addr: address(over, 2), station: OTHER };
        assert_eq!(host.shard.address_check(), AddressCheck::Conflict(conflict));
        assert_eq!(host.counters().conflicts, 1);
        assert_eq!(host.run_seconds(60), [], "nothing more is sent");
        assert_eq!(host.take(&asks(over, 9, station(9))), []);
        assert_eq!(host.shard.next_deadline(), None);
    }
}

#[test]
fn our_own_frames_that_come_back_are_nobody_elses() {
    let (mut host, _) = beginning();
    host.take(&arp(ArpOperation::Request, MacAddress::BROADCAST, 0, OURS, 2));
    assert_eq!(host.shard.address_check(), AddressCheck::UnderWay);
    host.run_seconds(1);
    assert_eq!(host.shard.address_check(), AddressCheck::Done);
}

#[test]
fn checked_address_is_defended_once_in_10s_and_answers() {
    for (at, (over, claim)) in claims().into_iter().enumerate() {
        let (mut host, _) = beginning();
        host.run_seconds(1);
        let ours = Sent::Announce(address(over, 2));
        if at == 0 || at == 3 {
            // About to take it, from no address yet.
            let told = if over == Over::V4 { Sent::Answer(OTHER) } else { ours };
            assert_eq!([host.take(&claim), host.take(&claim)], [[told], [told]]);
            continue;
        }
        assert_eq!(host.take(&claim), [ours]);
        assert_eq!(host.take(&claim), []);
        host.run_seconds(10);
        assert_eq!(host.take(&claim), [ours]);
        assert_eq!(host.counters().conflicts, 3);
        assert_eq!(host.shard.address_check(), AddressCheck::Done);
    }
}
