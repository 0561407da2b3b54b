//! Tests of `icmpv6`.

use std::vec::Vec;

use etherparse::Icmpv6Header;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SRC: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const DST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fn emitted(message: Icmpv6Message<'_>) -> Vec<u8> {
    let mut buf = std::vec![0xee; message.wire_len() + 3];
    let len = message.emit(SRC, DST, &mut buf);
    buf.truncate(len);
    buf
}

#[test]
fn packet_too_big_tells_the_mtu_in_32_bits() {
    let bytes = emitted(Icmpv6Message::PacketTooBig { mtu: 0x0001_0500, quoted: &[] });
    assert_eq!(bytes[..2], [2, 0]);
    assert_eq!(bytes[4..], [0, 1, 5, 0]);
}

#[test]
fn the_checksum_covers_the_addresses() {
    let request = Icmpv6Message::EchoRequest { identifier: 1, sequence: 2, data: b"ping" };
    let bytes = emitted(request);
    assert_eq!(Icmpv6Message::parse(SRC, DST, &bytes), Ok(request));
    assert_eq!(Icmpv6Message::parse(SRC, SRC, &bytes), Err(ParseError::BadChecksum));
    assert_eq!(Icmpv6Message::parse_verified(&bytes), Ok(request));
}

#[test]
fn a_message_without_its_eight_bytes_is_truncated() {
    for len in 0..8 {
        assert_eq!(Icmpv6Message::parse_verified(&[1; 8][..len]), Err(ParseError::Truncated));
    }
}

fn any_message(variant: u8, code: u8, [high, low]: [u16; 2], body: &[u8]) -> Icmpv6Message<'_> {
    match variant {
        0 => Icmpv6Message::DestinationUnreachable { code, quoted: body },
        1 => Icmpv6Message::PacketTooBig { mtu: word(high, low), quoted: body },
        2 => Icmpv6Message::TimeExceeded { code, quoted: body },
        3 => Icmpv6Message::ParameterProblem { code, pointer: word(high, low), quoted: body },
        4 => Icmpv6Message::EchoRequest { identifier: high, sequence: low, data: body },
        5 => Icmpv6Message::EchoReply { identifier: high, sequence: low, data: body },
        _ => Icmpv6Message::Other { icmp_type: 200, code },
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(
        variant in 0u8..7, code: u8, fields: [u16; 2], body in vec(any::<u8>(), 0..40),
    ) {
        let message = any_message(variant, code, fields, &body);
        let bytes = emitted(message);
        prop_assert_eq!(Icmpv6Message::parse(SRC, DST, &bytes), Ok(message));

        let (theirs, rest) = Icmpv6Header::from_slice(&bytes).unwrap();
        let checksum = theirs.icmp_type.calc_checksum(SRC.octets(), DST.octets(), rest);
        prop_assert_eq!(checksum, Ok(theirs.checksum));
    }

    #[test]
    fn a_carried_neighbour_discovery_message_is_emitted_with_its_checksum(
        icmp_type in 133u8..=137, rest in vec(any::<u8>(), 7..40),
    ) {
        let message = [&[icmp_type][..], &rest].concat();
        let bytes = emitted(Icmpv6Message::NeighborDiscovery { message: &message });
        prop_assert!(Icmpv6Message::parse(SRC, DST, &bytes).is_ok());
        prop_assert_eq!((&bytes[..2], &bytes[4..]), (&message[..2], &message[4..]));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..60)) {
        let _ = Icmpv6Message::parse(SRC, DST, &bytes);
        let _ = Icmpv6Message::parse_verified(&bytes);
    }
}
