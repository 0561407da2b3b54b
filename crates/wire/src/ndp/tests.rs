//! Tests of `ndp`.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Icmpv6Message;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0x12, 0x3456);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

const SOLICITATION: NdpMessage<'_> =
    NdpMessage::NeighborSolicitation { target: HOST, source_link_layer: Some(MAC) };

fn emitted(message: NdpMessage<'_>, src: Ipv6Addr, dst: Ipv6Addr) -> Vec<u8> {
    let mut buf = std::vec![0xee; message.wire_len() + 3];
    let len = message.emit(src, dst, &mut buf);
    buf.truncate(len);
    buf
}

#[test]
fn a_solicitation_goes_to_the_group_of_its_target() {
    let expected: Ipv6Addr = "ff02::1:ff12:3456".parse().unwrap();
    assert_eq!(solicited_node(HOST), expected);
}

#[test]
fn what_crossed_a_router_is_refused() {
    let bytes = emitted(SOLICITATION, ROUTER, HOST);
    assert_eq!(NdpMessage::parse(ROUTER, HOST, 255, &bytes), Ok(SOLICITATION));
    let refused = NdpMessage::parse(ROUTER, HOST, 254, &bytes);
    assert_eq!(refused, Err(ParseError::BadHopLimit));
}

#[test]
fn every_shorter_message_is_truncated() {
    let bytes = emitted(SOLICITATION, ROUTER, HOST);
    for len in (0..bytes.len()).filter(|len| *len != 24) {
        let parsed = NdpMessage::parse(ROUTER, HOST, 255, &bytes[..len]);
        assert_eq!(parsed, Err(ParseError::Truncated), "{len}");
    }
}

#[test]
fn an_option_of_length_zero_condemns_its_message() {
    let mut bytes = emitted(SOLICITATION, ROUTER, HOST);
    bytes[25] = 0;
    assert_eq!(NdpMessage::parse(ROUTER, HOST, 255, &bytes), Err(ParseError::BadOption));
}

#[test]
fn an_unknown_code_type_or_redirect_is_refused() {
    for (offset, value) in [(0, 137), (0, 1), (1, 1)] {
        let mut bytes = emitted(SOLICITATION, ROUTER, HOST);
        bytes[offset] = value;
        assert_eq!(NdpMessage::parse(ROUTER, HOST, 255, &bytes), Err(ParseError::UnknownType));
    }
}

#[test]
fn duplicate_address_probe_has_no_source_and_goes_to_group() {
    let unspecified = Ipv6Addr::UNSPECIFIED;
    let group = solicited_node(HOST);
    let probe = NdpMessage::NeighborSolicitation { target: HOST, source_link_layer: None };
    let bytes = emitted(probe, unspecified, group);
    assert_eq!(NdpMessage::parse(unspecified, group, 255, &bytes), Ok(probe));
    assert_eq!(NdpMessage::parse(unspecified, HOST, 255, &bytes), Err(ParseError::BadAddress));
    let bytes = emitted(SOLICITATION, unspecified, group);
    assert_eq!(NdpMessage::parse(unspecified, group, 255, &bytes), Err(ParseError::BadOption));
}

#[test]
fn a_multicast_target_is_refused() {
    let target = solicited_node(HOST);
    for message in [
        NdpMessage::NeighborSolicitation { target, source_link_layer: None },
        NdpMessage::NeighborAdvertisement {
            target,
            flags: NeighborFlags::default(),
            target_link_layer: None,
        },
    ] {
        let bytes = emitted(message, ROUTER, HOST);
        assert_eq!(NdpMessage::parse(ROUTER, HOST, 255, &bytes), Err(ParseError::BadAddress));
    }
}

#[test]
fn an_advertisement_to_everyone_answers_nobody() {
    let everyone = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let flags = NeighborFlags { router: false, solicited: true, overrides: true };
    let answer =
        NdpMessage::NeighborAdvertisement { target: HOST, flags, target_link_layer: Some(MAC) };
    let bytes = emitted(answer, HOST, everyone);
    assert_eq!(NdpMessage::parse(HOST, everyone, 255, &bytes), Err(ParseError::BadAddress));
    assert_eq!(NdpMessage::parse(HOST, ROUTER, 255, &bytes), Ok(answer));
}

#[test]
fn a_router_announces_prefix_mtu_and_its_address() {
    #[rustfmt::skip]
    let options = [
        1, 1, 2, 0, 0, 0, 0, 1,
        5, 1, 0, 0, 0, 0, 0x05, 0xdc,
        3, 4, 64, 0xc0, 0, 0, 0x0e, 0x10, 0, 0, 0x07, 0x08, 0, 0, 0, 0,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        25, 1, 0, 0, 0, 0, 0, 0,
    ];
    let message = NdpMessage::RouterAdvertisement(RouterAdvertisement {
        hop_limit: 64,
        managed: false,
        other_config: true,
        router_lifetime: 1800,
        reachable_time: 0,
        retrans_timer: 1000,
        options: NdpOptions(&options),
    });
    let bytes = emitted(message, ROUTER, HOST);
    let parsed = NdpMessage::parse(ROUTER, HOST, 255, &bytes).unwrap();
    assert_eq!(parsed, message);
    let NdpMessage::RouterAdvertisement(advertisement) = parsed else { panic!("{parsed:?}") };
    let prefix = PrefixInformation {
        prefix_len: 64,
        on_link: true,
        autonomous: true,
        valid_lifetime: 3600,
        preferred_lifetime: 1800,
        prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
    };
    assert_eq!(
        advertisement.options.into_iter().collect::<Vec<_>>(),
        [
            NdpOption::SourceLinkLayer(MAC),
            NdpOption::Mtu(1500),
            NdpOption::Prefix(prefix),
            NdpOption::Other(25),
        ]
    );
    assert_eq!(NdpMessage::parse(HOST, HOST, 255, &bytes), Err(ParseError::BadAddress));
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_carried_by_icmpv6(
        variant in 0u8..3, target: [u8; 16], mac: Option<[u8; 6]>, bits in 0u8..8,
    ) {
        let target = Ipv6Addr::from(target);
        prop_assume!(!target.is_multicast());
        let mac = mac.map(MacAddress);
        let message = match variant {
            0 => NdpMessage::RouterSolicitation { source_link_layer: mac },
            1 => NdpMessage::NeighborSolicitation { target, source_link_layer: mac },
            _ => NdpMessage::NeighborAdvertisement {
                target, flags: NeighborFlags::from_byte(bits << 5), target_link_layer: mac,
            },
        };
        let bytes = emitted(message, ROUTER, HOST);
        prop_assert_eq!(NdpMessage::parse(ROUTER, HOST, 255, &bytes), Ok(message));
        let carried = Icmpv6Message::parse(ROUTER, HOST, &bytes);
        prop_assert_eq!(carried, Ok(Icmpv6Message::NeighborDiscovery { message: &bytes }));
    }

    #[test]
    fn no_bytes_panic(icmp_type in 132u8..=138, rest in vec(any::<u8>(), 0..80)) {
        let message = [&[icmp_type, 0][..], &rest].concat();
        let parsed = NdpMessage::parse(ROUTER, HOST, 255, &message);
        if let Ok(NdpMessage::RouterAdvertisement(advertisement)) = parsed {
            prop_assert!(advertisement.options.into_iter().count() <= 10);
        }
    }
}
