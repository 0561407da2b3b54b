//! Tests of `ipv6`.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SRC: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const DST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const TEXT: &[u8] = b"segment!";

const PADDED: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// Returns a packet whose extension headers are (kind, bytes after Next Header), then TCP.
fn packet(extensions: &[(Protocol, &[u8])]) -> Vec<u8> {
    let kinds = extensions.iter().map(|(kind, _)| *kind).chain([Protocol::TCP]);
    let mut kinds = kinds.collect::<Vec<_>>().into_iter();
    let first = kinds.next().unwrap();
    let mut body = Vec::new();
    for (_, bytes) in extensions {
        body.push(kinds.next().unwrap().0);
        body.extend_from_slice(bytes);
    }
    body.extend_from_slice(TEXT);
    let header = Ipv6Header {
        src: SRC,
        dst: DST,
        protocol: first,
        hop_limit: 64,
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: body.len() as u16,
        header_len: 40,
        protocol_pointer: 6,
        fragment: None,
    };
    let mut packet = std::vec![0; 40];
    header.emit(&mut packet);
    packet.extend(body);
    packet
}

/// Returns an options header with one option, padded to eight bytes.
fn option(kind: u8) -> [u8; 7] {
    [0, 1, 0, kind, 2, 0, 0]
}

fn problem(code: u8, pointer: u16) -> ParseError {
    ParseError::ParameterProblem { code, pointer, even_to_multicast: false }
}

#[test]
fn extension_headers_are_passed_on_the_way_to_the_segment() {
    let options = [&[0][..], &PADDED].concat();
    let routing_done = [0, 43, 0, 0, 0, 0, 0];
    let authentication = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let packet = packet(&[
        (Protocol::HOP_BY_HOP, &options),
        (Protocol::ROUTING, &routing_done),
        (Protocol::AUTHENTICATION, &authentication),
        (Protocol::DESTINATION_OPTIONS, &options),
    ]);
    let (header, payload) = Ipv6Header::parse(&packet).unwrap();
    assert_eq!(header.protocol, Protocol::TCP);
    assert_eq!((header.header_len, header.payload_len), (40 + 8 + 8 + 12 + 8, 8));
    assert_eq!(header.protocol_pointer, 40 + 8 + 8 + 12);
    assert_eq!(packet[usize::from(header.protocol_pointer)], Protocol::TCP.0);
    assert_eq!(payload, TEXT);
}

#[test]
fn padding_of_the_link_is_cut_off_and_a_cut_packet_is_truncated() {
    let mut packet = packet(&[]);
    assert_eq!(Ipv6Header::parse(&packet[..47]), Err(ParseError::Truncated));
    packet.extend([0; 9]);
    assert_eq!(Ipv6Header::parse(&packet).unwrap().1, TEXT);
}

#[test]
fn a_mapped_address_is_refused_at_either_end() {
    for offset in [8, 24] {
        let mut packet = packet(&[]);
        packet[offset..offset + 12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(Ipv6Header::parse(&packet), Err(ParseError::MappedAddress));
    }
}

#[test]
fn routing_header_with_segments_left_needs_parameter_problem() {
    for routing_type in [0, 2, 4, 253] {
        let routing = [0, routing_type, 1, 0, 0, 0, 0];
        let packet = packet(&[(Protocol::ROUTING, &routing)]);
        assert_eq!(Ipv6Header::parse(&packet), Err(problem(0, 42)));
    }
}

#[test]
fn an_unknown_option_does_what_its_high_bits_say() {
    let parse = |kind: u8| {
        let packet = packet(&[(Protocol::DESTINATION_OPTIONS, &option(kind))]);
        Ipv6Header::parse(&packet).map(|(header, _)| header.protocol)
    };
    assert_eq!(parse(0x1e), Ok(Protocol::TCP));
    assert_eq!(parse(0x5e), Err(ParseError::DiscardOption));
    let even_to_multicast = true;
    assert_eq!(
        parse(0x9e),
        Err(ParseError::ParameterProblem { code: 2, pointer: 44, even_to_multicast })
    );
    assert_eq!(parse(0xde), Err(problem(2, 44)));
}

#[test]
fn hop_by_hop_options_stand_first_or_are_answered() {
    let options = [&[0][..], &PADDED].concat();
    let packet =
        packet(&[(Protocol::DESTINATION_OPTIONS, &options), (Protocol::HOP_BY_HOP, &options)]);
    assert_eq!(Ipv6Header::parse(&packet), Err(problem(1, 40)));
}

#[test]
fn more_than_eight_extension_headers_or_512_bytes_are_refused() {
    let options = [&[0][..], &PADDED].concat();
    let eight = [(Protocol::DESTINATION_OPTIONS, &options[..]); 8];
    assert!(Ipv6Header::parse(&packet(&eight)).is_ok());
    let nine = [(Protocol::DESTINATION_OPTIONS, &options[..]); 9];
    assert_eq!(Ipv6Header::parse(&packet(&nine)), Err(ParseError::TooManyExtensions));

    let padded = |units: u8| {
        let mut bytes = std::vec![0; usize::from(units) * 8 + 7];
        bytes[0] = units;
        bytes
    };
    assert!(Ipv6Header::parse(&packet(&[(Protocol::DESTINATION_OPTIONS, &padded(63))])).is_ok());
    let long = packet(&[(Protocol::DESTINATION_OPTIONS, &padded(64))]);
    assert_eq!(Ipv6Header::parse(&long), Err(ParseError::TooManyExtensions));
}

#[test]
fn the_walk_ends_at_a_fragment() {
    let fragment = [0, 0x01, 0x01, 0, 0, 0, 9];
    let packet = packet(&[
        (Protocol::FRAGMENT, &fragment),
        (Protocol::DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]),
    ]);
    let (header, payload) = Ipv6Header::parse(&packet).unwrap();
    let expected = Fragment { identification: 9, offset: 0x100, more: true };
    assert_eq!(header.fragment, Some(expected));
    assert_eq!(header.protocol, Protocol::DESTINATION_OPTIONS);
    assert_eq!(payload.len(), 16);
}

#[test]
fn an_atomic_fragment_is_a_whole_packet() {
    let packet = packet(&[(Protocol::FRAGMENT, &[0, 0, 0, 0, 0, 0, 9])]);
    let (header, payload) = Ipv6Header::parse(&packet).unwrap();
    assert_eq!((header.fragment, header.protocol), (None, Protocol::TCP));
    assert_eq!(payload, TEXT);
}

#[test]
fn impossible_fragments_are_answered() {
    let mut broken = packet(&[(Protocol::FRAGMENT, &[0, 0, 1, 0, 0, 0, 9])]);
    broken[5] -= 1;
    assert_eq!(Ipv6Header::parse(&broken), Err(problem(0, 4)));
    let beyond = packet(&[(Protocol::FRAGMENT, &[0, 0xff, 0xf8, 0, 0, 0, 9])]);
    assert_eq!(Ipv6Header::parse(&beyond), Err(problem(0, 42)));
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(
        src: [u8; 16], dst: [u8; 16], protocol: u8, hop_limit: u8, class: u8,
        flow_label in 0u32..1 << 20, payload in vec(any::<u8>(), 0..50),
    ) {
        let header = Ipv6Header {
            src: src.into(),
            dst: dst.into(),
            protocol: Protocol(protocol),
            hop_limit,
            traffic_class: TrafficClass(class),
            flow_label,
            payload_len: payload.len() as u16,
            header_len: 40,
            protocol_pointer: 6,
            fragment: None,
        };
        prop_assume!(!is_extension(header.protocol));
        prop_assume!(header.src.to_ipv4_mapped().or(header.dst.to_ipv4_mapped()).is_none());
        let mut packet = std::vec![0; 40];
        header.emit(&mut packet);
        packet.extend_from_slice(&payload);
        prop_assert_eq!(Ipv6Header::parse(&packet), Ok((header, &payload[..])));

        let (theirs, _) = etherparse::Ipv6Header::from_slice(&packet).unwrap();
        prop_assert_eq!((theirs.source, theirs.destination), (src, dst));
        prop_assert_eq!((theirs.next_header.0, theirs.hop_limit), (protocol, hop_limit));
        prop_assert_eq!((theirs.traffic_class, theirs.flow_label.value()), (class, flow_label));
        prop_assert_eq!(usize::from(theirs.payload_length), payload.len());
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..80), kinds in vec(0usize..5, 0..9)) {
        let _ = Ipv6Header::parse(&bytes);
        let known = [
            Protocol::HOP_BY_HOP, Protocol::ROUTING, Protocol::FRAGMENT, Protocol::AUTHENTICATION,
            Protocol::DESTINATION_OPTIONS,
        ];
        let extensions: Vec<_> = kinds.iter().map(|kind| (known[*kind], &bytes[..])).collect();
        let _ = Ipv6Header::parse(&packet(&extensions));
    }
}
