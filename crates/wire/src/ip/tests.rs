//! Tests of `ip`.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn v4(total_len: u16) -> Ipv4Header {
    Ipv4Header {
        src: Ipv4Addr::new(192, 0, 2, 1),
        dst: Ipv4Addr::new(192, 0, 2, 2),
        protocol: Protocol::TCP,
        ttl: 64,
        tos: TrafficClass::new(10, Ecn::Ect0),
        identification: 0,
        dont_fragment: true,
        fragment: None,
        total_len,
        header_len: 20,
    }
}

fn v6(payload_len: u16) -> Ipv6Header {
    Ipv6Header {
        src: Ipv6Addr::LOCALHOST,
        dst: Ipv6Addr::LOCALHOST,
        protocol: Protocol::TCP,
        hop_limit: 64,
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len,
        header_len: 40,
        protocol_pointer: 6,
        fragment: None,
    }
}

#[test]
fn the_version_nibble_chooses_the_family() {
    let mut packet = [0; 44];
    v4(44).emit(&mut packet);
    let (header, payload) = IpHeader::parse(&packet).unwrap();
    assert_eq!(header, v4(44).into());
    assert_eq!((header.payload_len, payload.len()), (24, 24));
    assert_eq!(header.src.to_ip(), Ipv4Addr::new(192, 0, 2, 1));
    for dont_fragment in [true, false] {
        Ipv4Header { dont_fragment, ..v4(44) }.emit(&mut packet);
        assert_eq!(IpHeader::parse(&packet).unwrap().0.dont_fragment, dont_fragment);
    }

    let v6 = v6(4);
    v6.emit(&mut packet);
    let (header, payload) = IpHeader::parse(&packet).unwrap();
    assert_eq!(header, v6.into());
    assert_eq!((header.header_len, payload.len(), header.dont_fragment), (40, 4, true));

    packet[0] = 0x50;
    assert_eq!(IpHeader::parse(&packet), Err(ParseError::BadVersion));
    assert_eq!(IpHeader::parse(&[]), Err(ParseError::Truncated));
}

#[test]
fn a_merged_packet_of_the_largest_length_passes() {
    let mut packet = vec![0; 65_535];
    v4(65_535).emit(&mut packet);
    let (header, payload) = IpHeader::parse(&packet).unwrap();
    assert_eq!((header.payload_len, payload.len()), (65_515, 65_515));
}

#[test]
fn marking_congestion_leaves_the_codepoint_alone() {
    let class = TrafficClass::new(46, Ecn::Ect1).with_ecn(Ecn::Ce);
    assert_eq!((class.dscp(), class.ecn()), (46, Ecn::Ce));
}

#[test]
fn a_fragment_header_that_is_emitted_is_parsed() {
    for (offset, more) in [(0, true), (1_480, true), (65_528, false)] {
        let fragment = Fragment { identification: 0x0102_0304, offset, more };
        let header = fragment.emit(Protocol::ICMPV6);
        let mut packet = vec![0; Ipv6Header::LEN];
        let ip = Ipv6Header { protocol: Protocol::FRAGMENT, ..v6(8) };
        ip.emit(&mut packet);
        packet.extend(header);
        let (parsed, payload) = IpHeader::parse(&packet).unwrap();
        assert_eq!((parsed.fragment, parsed.protocol), (Some(fragment), Protocol::ICMPV6));
        assert!(payload.is_empty());
    }
}

proptest! {
    #[test]
    fn a_traffic_class_is_its_two_parts(raw: u8) {
        let class = TrafficClass(raw);
        prop_assert_eq!(TrafficClass::new(class.dscp(), class.ecn()), class);
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..100)) {
        let _ = IpHeader::parse(&bytes);
    }
}

#[test]
fn congestion_mark_needs_ect_and_keeps_the_checksum_valid() {
    check_replacing(mark_congestion, Ecn::Ce);
}

#[test]
fn bleaching_takes_every_codepoint_and_leaves_intact_header() {
    check_replacing(bleach_ecn, Ecn::NotEct);
}

/// Checks that `replace` changes each codepoint but Not-ECT to `into`, and nothing else of a
/// packet.
fn check_replacing(replace: fn(&mut [u8]) -> bool, into: Ecn) {
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let class = TrafficClass::new(46, ecn);
        let mut packets = [vec![0; 40], vec![0; 60]];
        Ipv4Header { tos: class, ..v4(40) }.emit(&mut packets[0]);
        Ipv6Header { traffic_class: class, ..v6(20) }.emit(&mut packets[1]);
        for packet in &mut packets {
            let (before, _) = IpHeader::parse(packet).expect("valid");
            let is_replaced = replace(packet);
            assert_eq!(is_replaced, ecn != Ecn::NotEct);
            let traffic_class = if is_replaced { class.with_ecn(into) } else { class };
            // This verifies IPv4's checksum.
            let after = IpHeader::parse(packet).map(|(header, _)| header);
            assert_eq!(after, Ok(IpHeader { traffic_class, ..before }));
        }
    }
    assert!(!replace(&mut []));
    assert!(!replace(&mut [0x45; 19]));
}
