//! Tests of `ethernet`.

use std::format;
use std::vec::Vec;

use etherparse::Ethernet2Header;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const DST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SRC: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn frame(after_addresses: &[u8]) -> Vec<u8> {
    [&DST[..], &SRC, after_addresses].concat()
}

#[test]
fn a_priority_tag_is_read_through() {
    let frame = frame(&[0x81, 0x00, 0xe0, 0x00, 0x08, 0x00, 0x45]);
    let (header, payload) = EthernetHeader::parse(&frame).unwrap();
    assert_eq!(header.ether_type, EtherType::IPV4);
    assert_eq!(payload, [0x45]);
}

#[test]
fn a_frame_of_another_vlan_keeps_its_tag() {
    let frame = frame(&[0x81, 0x00, 0x00, 0x07, 0x08, 0x00, 0x45]);
    let (header, payload) = EthernetHeader::parse(&frame).unwrap();
    assert_eq!(header.ether_type, EtherType::VLAN);
    assert_eq!(payload, [0x00, 0x07, 0x08, 0x00, 0x45]);
}

#[test]
fn a_second_tag_is_not_read_through() {
    let frame = frame(&[0x81, 0x00, 0x00, 0x00, 0x81, 0x00, 0x00, 0x00, 0x08, 0x00]);
    let (header, _) = EthernetHeader::parse(&frame).unwrap();
    assert_eq!(header.ether_type, EtherType::VLAN);
}

#[test]
fn a_frame_cut_in_its_header_or_tag_is_truncated() {
    let frame = frame(&[0x81, 0x00, 0x00, 0x00, 0x08, 0x00]);
    for len in 0..frame.len() {
        assert_eq!(EthernetHeader::parse(&frame[..len]), Err(ParseError::Truncated), "{len}");
    }
}

#[test]
fn addresses_print_in_hexadecimal_and_know_groups() {
    assert_eq!(format!("{}", MacAddress([0, 0x1b, 0xff, 1, 2, 0xa0])), "00:1b:ff:01:02:a0");
    assert!(MacAddress::BROADCAST.is_multicast());
    assert!(!MacAddress(SRC).is_multicast());
    let group = MacAddress::of_ipv6_multicast("ff02::1:ff12:3456".parse().unwrap());
    assert_eq!(group, MacAddress([0x33, 0x33, 0xff, 0x12, 0x34, 0x56]));
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(
        dst: [u8; 6], src: [u8; 6], ether_type: u16, payload in vec(any::<u8>(), 0..20),
    ) {
        prop_assume!(ether_type != EtherType::VLAN.0);
        let header = EthernetHeader {
            dst: MacAddress(dst), src: MacAddress(src), ether_type: EtherType(ether_type),
        };
        let frame = [&header.emit()[..], &payload].concat();
        prop_assert_eq!(EthernetHeader::parse(&frame), Ok((header, &payload[..])));
        let (theirs, rest) = Ethernet2Header::from_slice(&frame).unwrap();
        prop_assert_eq!((theirs.destination, theirs.source), (dst, src));
        prop_assert_eq!((theirs.ether_type.0, rest), (ether_type, &payload[..]));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..40)) {
        let _ = EthernetHeader::parse(&bytes);
    }
}
