//! Tests of `icmp`.

use std::vec::Vec;

use etherparse::{Icmpv4Header, Icmpv4Type};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn emitted(message: IcmpMessage<'_>) -> Vec<u8> {
    let mut buf = std::vec![0xee; message.wire_len() + 3];
    let len = message.emit(&mut buf);
    buf.truncate(len);
    buf
}

#[test]
fn fragmentation_needed_tells_the_next_hops_mtu() {
    let bytes = emitted(IcmpMessage::FragmentationNeeded { next_hop_mtu: 1400, quoted: &[1, 2] });
    assert_eq!(bytes[..2], [3, 4]);
    assert_eq!(bytes[4..], [0, 0, 0x05, 0x78, 1, 2]);
}

#[test]
fn a_wrong_checksum_is_refused_unless_a_device_has_looked() {
    let request = IcmpMessage::EchoRequest { identifier: 1, sequence: 2, data: b"ping" };
    let mut bytes = emitted(request);
    bytes[2] ^= 0xff;
    assert_eq!(IcmpMessage::parse(&bytes), Err(ParseError::BadChecksum));
    assert_eq!(IcmpMessage::parse_verified(&bytes), Ok(request));
}

#[test]
fn a_message_without_its_eight_bytes_is_truncated() {
    for len in 0..8 {
        assert_eq!(IcmpMessage::parse_verified(&[0; 8][..len]), Err(ParseError::Truncated));
    }
}

fn any_message(variant: u8, code: u8, [high, low]: [u16; 2], body: &[u8]) -> IcmpMessage<'_> {
    match variant {
        0 => IcmpMessage::EchoReply { identifier: high, sequence: low, data: body },
        1 if code != 4 => IcmpMessage::DestinationUnreachable { code, quoted: body },
        1 => IcmpMessage::FragmentationNeeded { next_hop_mtu: low, quoted: body },
        2 => IcmpMessage::SourceQuench { quoted: body },
        3 => IcmpMessage::Redirect { code, gateway: gateway(high, low), quoted: body },
        4 => IcmpMessage::EchoRequest { identifier: high, sequence: low, data: body },
        5 => IcmpMessage::TimeExceeded { code, quoted: body },
        6 => {
            // The other implementation keeps the pointer only for code 0.
            let pointer = if code == 0 { low as u8 } else { 0 };
            IcmpMessage::ParameterProblem { code, pointer, quoted: body }
        }
        _ => IcmpMessage::Other { icmp_type: 42, code },
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(
        variant in 0u8..8, code in 0u8..16, fields: [u16; 2], body in vec(any::<u8>(), 0..40),
    ) {
        let message = any_message(variant, code, fields, &body);
        let bytes = emitted(message);
        prop_assert_eq!(IcmpMessage::parse(&bytes), Ok(message));

        let (theirs, rest) = Icmpv4Header::from_slice(&bytes).unwrap();
        prop_assert_eq!(theirs.icmp_type.calc_checksum(rest), theirs.checksum);
        match (theirs.icmp_type, message) {
            (Icmpv4Type::EchoRequest(echo), IcmpMessage::EchoRequest { identifier, sequence, .. })
            | (Icmpv4Type::EchoReply(echo), IcmpMessage::EchoReply { identifier, sequence, .. }) => {
                prop_assert_eq!((echo.id, echo.seq), (identifier, sequence));
            }
            (Icmpv4Type::EchoRequest(_) | Icmpv4Type::EchoReply(_), _) => prop_assert!(false),
            _ => {}
        }
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..60)) {
        let _ = IcmpMessage::parse(&bytes);
        let _ = IcmpMessage::parse_verified(&bytes);
    }
}
