//! Tests of `arp`.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const REQUEST: ArpPacket = ArpPacket {
    operation: ArpOperation::Request,
    sender_mac: MacAddress([2, 0, 0, 0, 0, 1]),
    sender_ip: Ipv4Addr::new(192, 0, 2, 1),
    target_mac: MacAddress([0; 6]),
    target_ip: Ipv4Addr::new(192, 0, 2, 2),
};

#[test]
fn a_request_has_the_layout_of_rfc_826() {
    #[rustfmt::skip]
    assert_eq!(REQUEST.emit(), [
        0, 1, 8, 0, 6, 4, 0, 1,
        2, 0, 0, 0, 0, 1, 192, 0, 2, 1,
        0, 0, 0, 0, 0, 0, 192, 0, 2, 2,
    ]);
}

#[test]
fn other_hardware_protocols_lengths_and_operations_are_refused() {
    for (offset, error) in [
        (1, ParseError::UnknownType),
        (3, ParseError::UnknownType),
        (4, ParseError::BadLength),
        (5, ParseError::BadLength),
        (7, ParseError::UnknownType),
    ] {
        let mut bytes = REQUEST.emit();
        bytes[offset] = 9;
        assert_eq!(ArpPacket::parse(&bytes), Err(error), "byte {offset}");
    }
}

#[test]
fn every_shorter_packet_is_truncated() {
    let bytes = REQUEST.emit();
    for len in 0..bytes.len() {
        assert_eq!(ArpPacket::parse(&bytes[..len]), Err(ParseError::Truncated));
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_through_padding(
        reply: bool, macs: [[u8; 6]; 2], ips: [[u8; 4]; 2], padding in vec(any::<u8>(), 0..20),
    ) {
        let packet = ArpPacket {
            operation: if reply { ArpOperation::Reply } else { ArpOperation::Request },
            sender_mac: MacAddress(macs[0]),
            sender_ip: ips[0].into(),
            target_mac: MacAddress(macs[1]),
            target_ip: ips[1].into(),
        };
        let bytes = [&packet.emit()[..], &padding].concat();
        prop_assert_eq!(ArpPacket::parse(&bytes), Ok(packet));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..40)) {
        let _ = ArpPacket::parse(&bytes);
    }
}
