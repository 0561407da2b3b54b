//! Frames that a host takes, those that it does not, and those that it sends by itself.

use whimbrel_base::Instant;
use whimbrel_wire::ethernet::{EtherType, EthernetHeader};
use whimbrel_wire::ndp::{NdpMessage, solicited_node};
use whimbrel_wire::{Address, ArpOperation, MacAddress};

use super::super::hosts::{BOTH, Over, server_addr};
use super::station::{
    ALL_NODES, Host, OURS, Sent, address, arp, asks, configuration, frame, ndp, packet_v6, ping,
    read, station, v6,
};
use crate::ip::FrameDrop;
use crate::link::AddressConflict;
use crate::shard::ConfigError;
use crate::{Medium, Route, RouteMetrics, Shard, TxBatch};

#[test]
fn a_host_announces_its_addresses_at_its_start() {
    let mut shard = Shard::new(configuration()).expect("valid");
    let mut batch = TxBatch::new(8);
    shard.tx(&mut batch);
    let sent: Vec<_> = batch.pending().iter().map(|segment| read(&segment.to_vec())).collect();
    assert_eq!(sent, BOTH.map(|over| Sent::Announce(server_addr(over))));
    assert_eq!(shard.link().expect("an Ethernet").mac(), OURS);
}

#[test]
fn a_station_of_a_group_or_of_nobody_is_no_hosts() {
    for mac in [MacAddress::BROADCAST, MacAddress([1, 0, 0, 0, 0, 1]), MacAddress([0; 6])] {
        let mut config = configuration();
        config.capabilities.medium = Medium::Ethernet { mac };
        let error = Shard::new(config).expect_err("no station");
        assert_eq!(error, ConfigError::Station(mac));
    }
}

#[test]
fn frames_for_others_or_from_no_station_are_dropped() {
    let mut host = Host::new();
    let good = ping(address(Over::V4, 9), 1);
    let with = |range: std::ops::Range<usize>, bytes: &[u8]| {
        let mut frame = good.clone();
        frame[range].copy_from_slice(bytes);
        frame
    };
    let cases = [
        (with(0..6, &[2, 0, 0, 0, 0, 3]), FrameDrop::OtherStation),
        (with(0..6, &[0xff; 6]), FrameDrop::LinkGroup),
        (with(0..6, &[0x33, 0x33, 0, 0, 0, 1]), FrameDrop::LinkGroup),
        (with(6..12, &[0xff; 6]), FrameDrop::LinkSource),
        (with(6..12, &[0; 6]), FrameDrop::LinkSource),
        (with(6..12, &OURS.0), FrameDrop::LinkSource),
        (with(12..14, &[0x88, 0xcc]), FrameDrop::EtherType),
        (with(12..14, &[0x86, 0xdd]), FrameDrop::Header),
        (good[..13].to_vec(), FrameDrop::Header),
        (good[..14].to_vec(), FrameDrop::Header),
        (good[..20].to_vec(), FrameDrop::Header),
        (frame(OURS, station(9), EtherType::ARP, &[0; 27]), FrameDrop::Arp),
        (arp(ArpOperation::Request, OURS, 9, station(9), 3), FrameDrop::OtherHost),
    ];
    for (frame, reason) in cases {
        let before = host.shard.ip_counters().dropped(reason);
        assert_eq!(host.take(&frame), [], "{reason:?}");
        assert_eq!(host.shard.ip_counters().dropped(reason), before + 1, "{reason:?}");
    }
    assert!(host.neighbours().is_empty());
}

#[test]
fn a_padded_and_a_priority_tagged_frame_are_read() {
    let mut host = Host::new();
    let mut padded = asks(Over::V4, 9, station(9));
    padded.resize(60, 0);
    assert_eq!(host.take(&padded), [Sent::Answer(station(9))]);
    let mut tagged = ping(address(Over::V4, 9), 1);
    tagged.splice(12..12, [0x81, 0, 0xe0, 0]);
    assert_eq!(host.take(&tagged), [Sent::Echo(1, station(9))]);
}

#[test]
fn misplaced_solicitations_are_ignored() {
    let ours = v6(server_addr(Over::V6));
    let peer = v6(address(Over::V6, 9));
    let ask =
        |target| NdpMessage::NeighborSolicitation { target, source_link_layer: Some(station(9)) };
    let mut host = Host::new();
    let far = {
        let mut icmp = [0; 32];
        ask(ours).emit(peer, ours, &mut icmp);
        frame(OURS, station(9), EtherType::IPV6, &packet_v6(peer, ours, 254, &icmp))
    };
    let router = NdpMessage::RouterSolicitation { source_link_layer: None };
    let cases = [
        (far, FrameDrop::Discovery),
        (ndp(peer, ALL_NODES, station(9), &ask(peer)), FrameDrop::OtherHost),
        (ndp(peer, solicited_node(peer), station(9), &ask(ours)), FrameDrop::OtherHost),
        (ndp(ours, ours, station(9), &ask(ours)), FrameDrop::Martian),
        (ndp(peer, ours, station(9), &router), FrameDrop::IcmpType),
    ];
    for (frame, reason) in cases {
        assert_eq!(host.take(&frame), [], "{reason:?}");
        assert_eq!(host.shard.ip_counters().dropped(reason), 1, "{reason:?}");
        host = Host::new();
    }
    // One to ourselves alone is as good; without a station it is answered and teaches nothing.
    assert_eq!(host.take(&ndp(peer, ours, station(9), &ask(ours))), [Sent::Answer(station(9))]);
    let plain = NdpMessage::NeighborSolicitation { target: ours, source_link_layer: None };
    let other = v6(address(Over::V6, 8));
    assert_eq!(host.take(&ndp(other, ours, station(8), &plain)), [Sent::Answer(station(8))]);
    assert_eq!(host.neighbours().len(), 1);
}

#[test]
fn whoever_is_about_to_take_our_address_learns_that_it_is_taken() {
    let mut host = Host::new();
    let probe = arp(ArpOperation::Request, MacAddress::BROADCAST, 0, station(9), 2);
    assert_eq!(host.take(&probe), [Sent::Answer(station(9))]);
    let ours = v6(server_addr(Over::V6));
    let ask = NdpMessage::NeighborSolicitation { target: ours, source_link_layer: None };
    let detection = ndp(std::net::Ipv6Addr::UNSPECIFIED, solicited_node(ours), station(9), &ask);
    assert_eq!(host.take(&detection), [Sent::Announce(server_addr(Over::V6))]);
    assert!(host.neighbours().is_empty(), "who has no address is not known by it");
}

#[test]
fn address_is_defended_once_in_10s_each_conflict_counted() {
    let mut host = Host::new();
    let claim = arp(ArpOperation::Request, MacAddress::BROADCAST, 2, station(9), 2);
    let conflict = AddressConflict { addr: server_addr(Over::V4), station: station(9) };
    assert_eq!(host.take(&claim), [Sent::Announce(server_addr(Over::V4))]);
    assert_eq!(host.shard.take_conflict(), Some(conflict));
    assert_eq!(host.take(&claim), []);
    assert_eq!(host.shard.take_conflict(), None, "it was told");
    host.run_seconds(10);
    assert_eq!(host.take(&claim), [Sent::Announce(server_addr(Over::V4))]);
    assert_eq!(host.shard.take_conflict(), Some(conflict));
    assert_eq!(host.counters().conflicts, 3);
}

#[test]
fn packets_for_other_networks_go_to_the_router() {
    for over in BOTH {
        let (network, far) = match over {
            Over::V4 => (Address::from_v4_bytes([0; 4]), Address::from_v4_bytes([192, 0, 2, 1])),
            Over::V6 => (Address::from_bytes([0; 16]), {
                std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()
            }),
        };
        let gateway = Some(address(over, 1));
        let metrics = RouteMetrics::default();
        let route = Route { network, prefix_len: 0, gateway, metric: 0, metrics };
        let mut host = Host::with_routes(vec![route]);
        assert_eq!(host.take(&ping(far, 1)), [Sent::Ask(address(over, 1), None)]);
        let found = host.take(&super::station::answers(over, 1, station(1)));
        assert_eq!(found, [Sent::Echo(1, station(1))]);
        assert_eq!(host.neighbours().len(), 1);
    }
}

#[test]
fn what_has_no_route_is_dropped_and_counted() {
    let mut host = Host::new();
    assert_eq!(host.take(&ping(Address::from_v4_bytes([192, 0, 2, 1]), 1)), []);
    assert_eq!(host.counters().out_no_route, 1);
    assert_eq!(host.shard.next_deadline(), None);
}

#[test]
fn an_unfinished_checksum_is_found_behind_both_headers() {
    let mut config = configuration();
    config.capabilities.tx_checksum = true;
    let mut shard = Shard::new(config).expect("valid");
    let peer = whimbrel_wire::Endpoint::new(address(Over::V4, 9), 80);
    shard.connect(peer, None).expect("a free port");
    let mut batch = TxBatch::new(8);
    while shard.tx(&mut batch) {}
    batch.consume(batch.pending().len());
    let answer = super::station::answers(Over::V4, 9, station(9));
    shard
        .rx(Instant::ZERO, &[crate::RxFrame::new(&answer, whimbrel_base::packet::SegMeta::SINGLE)]);
    shard.tx(&mut batch);
    let syn = &batch.pending()[0];
    assert_eq!(usize::from(syn.transport_offset), EthernetHeader::LEN + 20);
    assert_eq!(syn.header()[..6], station(9).0);
    assert_eq!(syn.checksum, whimbrel_base::packet::TxChecksum::Partial(16));
}
