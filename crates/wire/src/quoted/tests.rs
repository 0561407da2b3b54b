//! Tests of `quoted`.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{Fragment, Ipv4Header, Ipv6Header, TrafficClass};

const SEGMENT: [u8; 8] = [0x12, 0x34, 0, 80, 1, 2, 3, 4];

fn v4(protocol: Protocol, offset: u16) -> Vec<u8> {
    let fragment = Fragment { identification: 1, offset, more: true };
    let header = Ipv4Header {
        src: Ipv4Addr::new(192, 0, 2, 1),
        dst: Ipv4Addr::new(192, 0, 2, 2),
        protocol,
        ttl: 1,
        tos: TrafficClass(0),
        identification: 1,
        dont_fragment: false,
        fragment: Some(fragment),
        total_len: 1500,
        header_len: 20,
    };
    let mut quoted = std::vec![0; 20];
    header.emit(&mut quoted);
    quoted.extend(SEGMENT);
    quoted
}

fn v6() -> Vec<u8> {
    let header = Ipv6Header {
        src: Ipv6Addr::LOCALHOST,
        dst: Ipv6Addr::LOCALHOST,
        protocol: Protocol::TCP,
        hop_limit: 1,
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: 1000,
        header_len: 40,
        protocol_pointer: 6,
        fragment: None,
    };
    let mut quoted = std::vec![0; 40];
    header.emit(&mut quoted);
    quoted.extend(SEGMENT);
    quoted
}

#[test]
fn eight_bytes_name_the_connection_and_the_segment() {
    let quoted = QuotedSegment::parse(&v4(Protocol::TCP, 0)).unwrap();
    assert_eq!(
        quoted,
        QuotedSegment {
            src: Address::from_v4_bytes([192, 0, 2, 1]),
            dst: Address::from_v4_bytes([192, 0, 2, 2]),
            protocol: Protocol::TCP,
            src_port: 0x1234,
            dst_port: 80,
            seq: Some(SeqNum::new(0x0102_0304)),
            echo: None,
        }
    );
    let quoted = QuotedSegment::parse(&v6()).unwrap();
    assert_eq!((quoted.src, quoted.src_port), (Ipv6Addr::LOCALHOST.into(), 0x1234));
    assert_eq!(quoted.seq, Some(SeqNum::new(0x0102_0304)));
}

#[test]
fn a_quotation_may_end_behind_the_ports() {
    for (quoted, header_len) in [(v4(Protocol::TCP, 0), 20), (v6(), 40)] {
        for len in 0..quoted.len() {
            let parsed = QuotedSegment::parse(&quoted[..len]);
            if len < header_len + 4 {
                assert_eq!(parsed, Err(ParseError::Truncated), "{len}");
            } else {
                assert_eq!(parsed.unwrap().seq, None, "{len}");
            }
        }
    }
}

#[test]
fn a_wrong_header_checksum_is_nobodys_fault() {
    let mut quoted = v4(Protocol::TCP, 0);
    quoted[10] ^= 0xff;
    assert!(QuotedSegment::parse(&quoted).is_ok());
}

#[test]
fn a_datagram_has_no_sequence_number() {
    assert_eq!(QuotedSegment::parse(&v4(Protocol::UDP, 0)).unwrap().seq, None);
}

#[test]
fn a_later_fragment_names_no_connection() {
    let later = QuotedSegment::parse(&v4(Protocol::TCP, 8));
    assert_eq!(later, Err(ParseError::BadFragment));
}

#[test]
fn options_before_the_ports_are_skipped() {
    let mut quoted = v4(Protocol::TCP, 0);
    quoted[0] = 0x46;
    quoted.splice(20..20, [1, 1, 1, 0]);
    assert_eq!(QuotedSegment::parse(&quoted).unwrap().dst_port, 80);
    quoted[0] = 0x44;
    assert_eq!(QuotedSegment::parse(&quoted), Err(ParseError::BadHeaderLength));
}

proptest! {
    #[test]
    fn no_bytes_panic(first in 0x40u8..=0x6f, rest in vec(any::<u8>(), 0..80)) {
        let _ = QuotedSegment::parse(&[&[first][..], &rest].concat());
    }
}
