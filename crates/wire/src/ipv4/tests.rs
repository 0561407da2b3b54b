//! Tests of `ipv4`.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const HEADER: Ipv4Header = Ipv4Header {
    src: Ipv4Addr::new(192, 0, 2, 1),
    dst: Ipv4Addr::new(192, 0, 2, 2),
    protocol: Protocol::TCP,
    ttl: 64,
    tos: TrafficClass(0),
    identification: 0,
    dont_fragment: true,
    fragment: None,
    total_len: 24,
    header_len: 20,
};

fn packet(header: Ipv4Header) -> Vec<u8> {
    let mut packet = std::vec![0xaa; usize::from(header.total_len)];
    header.emit(&mut packet);
    packet
}

/// Changes bytes and updates the checksum.
fn rewritten(mut packet: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    changes.iter().for_each(|(offset, byte)| packet[*offset] = *byte);
    let header_len = (usize::from(packet[0] & 15) * 4).min(packet.len());
    packet[10..12].fill(0);
    let checksum = Sum::new().add_bytes(&packet[..header_len]).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn padding_of_the_link_is_cut_off() {
    let mut packet = packet(HEADER);
    packet.extend([0; 22]);
    let (header, payload) = Ipv4Header::parse(&packet).unwrap();
    assert_eq!(header, HEADER);
    assert_eq!(payload, [0xaa; 4]);
}

#[test]
fn options_are_skipped() {
    let packet = rewritten(packet(HEADER), &[(0, 0x46), (20, 1), (21, 1), (22, 1), (23, 0)]);
    let (header, payload) = Ipv4Header::parse(&packet).unwrap();
    assert_eq!(header.header_len, 24);
    assert!(payload.is_empty());
}

#[test]
fn impossible_headers_are_refused() {
    for (changes, error) in [
        (&[(0, 0x65)][..], ParseError::BadVersion),
        (&[(0, 0x44)], ParseError::BadHeaderLength),
        (&[(3, 19)], ParseError::BadLength),
        (&[(3, 25)], ParseError::Truncated),
        (&[(0, 0x4f)], ParseError::BadLength),
    ] {
        assert_eq!(Ipv4Header::parse(&rewritten(packet(HEADER), changes)), Err(error));
    }
    let mut packet = packet(HEADER);
    packet[8] ^= 1;
    assert_eq!(Ipv4Header::parse(&packet), Err(ParseError::BadChecksum));
}

#[test]
fn a_fragment_that_is_not_whole_bytes_of_eight_must_be_the_last() {
    let fragment = |more| Some(Fragment { identification: 7, offset: 8, more });
    let header = Ipv4Header { identification: 7, dont_fragment: false, ..HEADER };
    let last = Ipv4Header { fragment: fragment(false), ..header };
    assert_eq!(Ipv4Header::parse(&packet(last)).unwrap().0, last);
    let middle = Ipv4Header { fragment: fragment(true), ..header };
    assert_eq!(Ipv4Header::parse(&packet(middle)), Err(ParseError::BadFragment));
}

#[test]
fn a_fragment_that_ends_past_the_largest_packet_is_refused() {
    let fragment = Fragment { identification: 0, offset: 65_528, more: false };
    let header = Ipv4Header { fragment: Some(fragment), total_len: 28, ..HEADER };
    assert_eq!(Ipv4Header::parse(&packet(header)), Err(ParseError::BadFragment));
    let header = Ipv4Header { total_len: 27, ..header };
    assert!(Ipv4Header::parse(&packet(header)).is_ok());
}

prop_compose! {
    fn any_header()(
        src: [u8; 4], dst: [u8; 4], bytes: [u8; 3], identification: u16, dont_fragment: bool,
        units in 0u16..100, more: bool, payload_units in 0u16..20,
    ) -> Ipv4Header {
        let fragment =
            Fragment { identification: identification.into(), offset: units * 8, more };
        Ipv4Header {
            src: src.into(),
            dst: dst.into(),
            protocol: Protocol(bytes[0]),
            ttl: bytes[1],
            tos: TrafficClass(bytes[2]),
            identification,
            dont_fragment,
            fragment: (more || units != 0).then_some(fragment),
            total_len: 20 + payload_units * 8,
            header_len: 20,
        }
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(header in any_header()) {
        let packet = packet(header);
        let (parsed, payload) = Ipv4Header::parse(&packet).unwrap();
        prop_assert_eq!(parsed, header);

        let (theirs, rest) = etherparse::Ipv4Header::from_slice(&packet).unwrap();
        prop_assert_eq!(rest, payload);
        prop_assert_eq!(theirs.header_checksum, theirs.calc_header_checksum());
        prop_assert_eq!(theirs.source, header.src.octets());
        prop_assert_eq!(theirs.destination, header.dst.octets());
        prop_assert_eq!(theirs.dscp.value(), header.tos.dscp());
        prop_assert_eq!(theirs.ecn.value(), header.tos.ecn() as u8);
        prop_assert_eq!(theirs.total_len, header.total_len);
        prop_assert_eq!(theirs.identification, header.identification);
        prop_assert_eq!(theirs.dont_fragment, header.dont_fragment);
        let fragment = header.fragment.map_or((false, 0), |fragment| (fragment.more, fragment.offset));
        let offset = theirs.fragment_offset.value() * 8;
        prop_assert_eq!((theirs.more_fragments, offset), fragment);
        prop_assert_eq!((theirs.time_to_live, theirs.protocol.0), (header.ttl, header.protocol.0));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..80), version_ihl in 0x43u8..=0x4f) {
        let _ = Ipv4Header::parse(&bytes);
        if bytes.len() >= 20 {
            let total_len = bytes.len() as u8;
            let _ = Ipv4Header::parse(
                &rewritten(bytes, &[(0, version_ihl), (2, 0), (3, total_len)]));
        }
    }
}
