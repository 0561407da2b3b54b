//! Whatever leaves in pieces is whole again when they are put together.

use std::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;
use whimbrel_base::packet::TxSegment;
use whimbrel_base::{Instant, PairHasher, Secrets};
use whimbrel_udp::Fragmenting;
use whimbrel_wire::{Address, Family, IpHeader, Ipv4Header, Protocol, TrafficClass};

use super::{Datagram, counter, offset, start};
use crate::Steering;
use crate::ip::IpLayer;
use crate::ip::addresses::tests::addr;
use crate::ip::output::tests::{host, peer};

fn datagram(family: Family, len: usize) -> Datagram {
    Datagram {
        local: own(family),
        remote: peer(family),
        protocol: Protocol(200),
        hop_limit: 64,
        class: TrafficClass(0xb8),
        fragmenting: Fragmenting::Allowed,
        payload: (0..len).map(|at| (at ^ (at >> 8)) as u8).collect::<Vec<_>>().into(),
        next: None,
    }
}

fn own(family: Family) -> Address {
    match family {
        Family::V4 => addr("10.0.0.1"),
        Family::V6 => addr("fd00::1"),
    }
}

/// The packets that a message leaves in.
fn packets(host: &mut IpLayer, mut datagram: Datagram) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while !datagram.is_done() {
        let mut tx = TxSegment::new();
        assert!(host.write_datagram(&mut datagram, Instant::ZERO, &mut tx));
        packets.push(tx.to_vec());
    }
    packets
}

/// Joins the fragments; returns their payload and their common identification.
fn joined(packets: &[Vec<u8>]) -> (Vec<u8>, u32) {
    let mut bytes = Vec::new();
    let mut identification = None;
    for (at, packet) in packets.iter().enumerate() {
        let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
        let fragment = ip.fragment.expect("a fragment");
        assert_eq!((ip.protocol, ip.traffic_class), (Protocol(200), TrafficClass(0xb8)));
        assert_eq!(usize::from(fragment.offset), bytes.len());
        assert_eq!(fragment.more, at + 1 < packets.len());
        assert_eq!(*identification.get_or_insert(fragment.identification), fragment.identification);
        bytes.extend_from_slice(payload);
    }
    (bytes, identification.expect("at least one"))
}

#[test]
fn what_fits_leaves_whole_and_one_byte_more_in_two() {
    for (family, fits) in [(Family::V4, 1_480), (Family::V6, 1_460)] {
        let mut host = host(false);
        let whole = packets(&mut host, datagram(family, fits));
        assert_eq!(whole.iter().map(Vec::len).collect::<Vec<_>>(), [1_500]);
        assert!(IpHeader::parse(&whole[0]).expect("an IP packet").0.fragment.is_none());
        assert_eq!((host.counters.fragmented, host.counters.fragments_created), (0, 0));
        let pieces = packets(&mut host, datagram(family, fits + 1));
        assert_eq!(pieces.len(), 2);
        assert_eq!(joined(&pieces).0, datagram(family, fits + 1).payload);
        assert_eq!((host.counters.fragmented, host.counters.fragments_created), (1, 2));
        assert_eq!(host.counters.out_requests, 2);
    }
}

#[test]
fn what_leaves_whole_may_not_be_fragmented_and_counts_nothing() {
    let mut host = host(false);
    let first = identification(&mut host, peer(Family::V4));
    let whole = packets(&mut host, datagram(Family::V4, 1_000));
    let (ip, _) = Ipv4Header::parse(&whole[0]).expect("an IPv4 packet");
    assert!(ip.dont_fragment && ip.fragment.is_none());
    assert_eq!(ip.identification, 0);
    let next = following(peer(Family::V4), first);
    assert_eq!(identification(&mut host, peer(Family::V4)), next);
}

#[test]
fn two_messages_to_one_host_have_different_identifications() {
    for family in [Family::V4, Family::V6] {
        let mut host = host(false);
        let [one, other] = [3_000, 3_000].map(|len| packets(&mut host, datagram(family, len)));
        assert_ne!(joined(&one).1, joined(&other).1);
    }
}

fn hasher(seed: u64) -> PairHasher {
    PairHasher::new(&Secrets::from_seed(seed).timestamps)
}

#[test]
fn identifications_start_apart_for_each_pair_of_hosts() {
    let (hasher, host, peer) = (hasher(1), addr("192.0.2.1"), addr("198.51.100.7"));
    let there = offset(&hasher, &host, &peer);
    assert_ne!(there, offset(&hasher, &peer, &host));
    // TCP shows the other half of the hash.
    assert_ne!(there, hasher.hash(&host, &peer) as u32);
    assert_ne!(there, offset(&self::hasher(2), &host, &peer));
}

#[test]
fn hosts_of_one_network_share_counter_of_fragments() {
    let hasher = hasher(1);
    let hosts = [
        ["192.0.2.1", "198.51.100.7", "198.51.100.99", "198.51.101.7"],
        ["fd00::1", "2001:db8::7", "2001:db8::9:9", "2001:db8:0:1::7"],
    ];
    for [own, peer, neighbour, other] in hosts.map(|hosts| hosts.map(addr)) {
        let shared = counter(&hasher, &own, &peer);
        assert_eq!(shared, counter(&hasher, &own, &neighbour));
        assert_ne!(shared, counter(&hasher, &own, &other));
        assert_ne!(shared, counter(&hasher, &neighbour, &peer));
    }
    assert_ne!(start(&hasher, 0, 7), start(&hasher, 1, 7));
    assert_ne!(start(&hasher, 0, 7), start(&hasher, 0, 8));
}

/// The identification of a message that leaves in pieces to `remote`.
fn identification(host: &mut IpLayer, remote: Address) -> u32 {
    let family = remote.family();
    joined(&packets(host, Datagram { remote, ..datagram(family, 3_000) })).1
}

#[test]
fn identifications_hide_number_of_packets_to_others() {
    let one = [addr("198.51.100.7"), addr("2001:db8::7")];
    let neighbours = [addr("198.51.100.8"), addr("2001:db8::8")];
    for (one, neighbour) in one.into_iter().zip(neighbours) {
        let mut host = host(false);
        let first = identification(&mut host, one);
        for network in 0..100 {
            identification(&mut host, Address::from_v4_bytes([203, 0, network, 9]));
            identification(&mut host, addr(&std::format!("fd00:{network:x}::9")));
        }
        // RFC 7739 5.3: "a monotonically increasing sequence of Identification values for each
        // (src IP, Dst IP) pair".
        assert_eq!(identification(&mut host, one), following(one, first));
        // Only its own network counts together.
        identification(&mut host, neighbour);
        let next = following(one, following(one, first));
        assert_eq!(identification(&mut host, one), following(one, next));
    }
}

/// IPv4 has 16 bits of it.
fn following(remote: Address, identification: u32) -> u32 {
    let next = identification.wrapping_add(1);
    if remote.is_v4() { next & 0xffff } else { next }
}

#[test]
fn queues_of_one_host_count_apart() {
    let remote = addr("2001:db8::7");
    let [one, other] = [0, 1].map(|queue| {
        let mut host = host(false);
        host.capabilities.steering = Steering::Computable { queue, queues: 2 };
        identification(&mut host, remote)
    });
    assert!(one.abs_diff(other) > 1_000);
}

#[test]
fn a_path_known_to_be_narrow_is_cut_for() {
    let mut host = host(false);
    host.path_mtus.note(Instant::ZERO, peer(Family::V6), 1_280);
    let pieces = packets(&mut host, datagram(Family::V6, 1_300));
    assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [1_280, 116]);
}

#[test]
fn without_its_address_nothing_is_left_to_send() {
    let mut datagram = Datagram { local: peer(Family::V4), ..datagram(Family::V4, 3_000) };
    let mut tx = TxSegment::new();
    assert!(!host(false).write_datagram(&mut datagram, Instant::ZERO, &mut tx));
    assert!(datagram.is_done());
}

proptest! {
    #[test]
    fn no_packet_exceeds_the_mtu_and_none_of_it_is_lost(
        v6 in any::<bool>(),
        mtu in 68u16..=9_000,
        len in 1usize..=65_515,
    ) {
        let (family, mtu) = if v6 { (Family::V6, mtu.max(1_280)) } else { (Family::V4, mtu) };
        let mut host = host(false);
        host.capabilities.mtu = mtu;
        let packets = packets(&mut host, datagram(family, len));
        prop_assert!(packets.iter().all(|packet| packet.len() <= usize::from(mtu)));
        if packets.len() > 1 {
            prop_assert_eq!(Bytes::from(joined(&packets).0), datagram(family, len).payload);
        }
    }
}
