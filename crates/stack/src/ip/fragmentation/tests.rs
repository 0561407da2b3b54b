//! Whatever leaves in pieces is whole again when they are put together.

use std::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;
use whimbrel_tcp::table::{Identity, Secrets};
use whimbrel_tcp::{Instant, Tunables, TxSegment};
use whimbrel_wire::{Family, IpHeader, Protocol, TrafficClass};

use super::Datagram;
use crate::ip::Host;
use crate::ip::output::tests::{host, peer};

fn identity() -> Identity {
    Identity::new(&Secrets::from_seed(1), &Tunables::default())
}

fn datagram(family: Family, len: usize) -> Datagram {
    Datagram {
        local_index: u16::from(family == Family::V6),
        remote: peer(family),
        protocol: Protocol(200),
        class: TrafficClass(0xb8),
        payload: (0..len).map(|at| (at ^ (at >> 8)) as u8).collect::<Vec<_>>().into(),
        next: None,
    }
}

/// The packets that a message leaves in.
fn packets(host: &mut Host, mut datagram: Datagram) -> Vec<Vec<u8>> {
    let identity = identity();
    let mut packets = Vec::new();
    while !datagram.is_done() {
        let mut tx = TxSegment::new();
        assert!(host.write_datagram(&mut datagram, &identity, Instant::ZERO, &mut tx));
        packets.push(tx.to_vec());
    }
    packets
}

/// What the fragments carry together, and their common identification.
fn joined(packets: &[Vec<u8>]) -> (Vec<u8>, u32) {
    let mut octets = Vec::new();
    let mut identification = None;
    for (at, packet) in packets.iter().enumerate() {
        let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
        let fragment = ip.fragment.expect("a fragment");
        assert_eq!((ip.protocol, ip.traffic_class), (Protocol(200), TrafficClass(0xb8)));
        assert_eq!(usize::from(fragment.offset), octets.len());
        assert_eq!(fragment.more, at + 1 < packets.len());
        assert_eq!(*identification.get_or_insert(fragment.identification), fragment.identification);
        octets.extend_from_slice(payload);
    }
    (octets, identification.expect("at least one"))
}

#[test]
fn what_fits_leaves_whole_and_one_octet_more_in_two() {
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
fn two_messages_to_one_host_have_different_identifications() {
    for family in [Family::V4, Family::V6] {
        let mut host = host(false);
        let [one, other] = [3_000, 3_000].map(|len| packets(&mut host, datagram(family, len)));
        assert_ne!(joined(&one).1, joined(&other).1);
    }
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
    let mut datagram = Datagram { local_index: 9, ..datagram(Family::V4, 3_000) };
    let mut tx = TxSegment::new();
    assert!(!host(false).write_datagram(&mut datagram, &identity(), Instant::ZERO, &mut tx));
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
