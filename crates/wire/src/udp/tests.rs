//! Tests of `udp`.

use std::vec::Vec;

use etherparse::UdpHeader as TheirHeader;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NEAR: Address = Address::from_v4_bytes([10, 0, 0, 1]);
const FAR: Address = Address::from_v4_bytes([10, 0, 0, 2]);
const HEADER: UdpHeader = UdpHeader { src_port: 1234, dst_port: 53 };

fn v6(last: u8) -> Address {
    let mut bytes = [0; 16];
    (bytes[0], bytes[15]) = (0xfd, last);
    Address::from_bytes(bytes)
}

fn emitted(header: UdpHeader, src: Address, dst: Address, data: &[u8]) -> Vec<u8> {
    let mut buf = std::vec![0xee; data.len() + UdpHeader::LEN + 3];
    let len = header.emit_datagram(src, dst, data, &mut buf);
    buf.truncate(len);
    buf
}

/// Returns two bytes with which the checksum of a datagram of only these bytes is zero.
fn data_that_sums_to_zero(src: Address, dst: Address) -> [u8; 2] {
    let bytes = emitted(HEADER, src, dst, &[0, 0]);
    [bytes[6], bytes[7]]
}

#[test]
fn a_datagram_has_ports_length_and_checksum_in_this_order() {
    let bytes = emitted(HEADER, NEAR, FAR, b"abc");
    assert_eq!(bytes[..6], [0x04, 0xd2, 0, 53, 0, 11]);
    assert_eq!(&bytes[8..], b"abc");
    let view = UdpView::parse(NEAR, FAR, &bytes).unwrap();
    assert_eq!((view.header, view.data), (HEADER, &b"abc"[..]));
}

#[test]
fn a_checksum_that_comes_out_as_zero_is_sent_as_all_ones() {
    for (src, dst) in [(NEAR, FAR), (v6(1), v6(2))] {
        let data = data_that_sums_to_zero(src, dst);
        let bytes = emitted(HEADER, src, dst, &data);
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        assert_eq!(UdpView::parse(src, dst, &bytes).unwrap().data, data);
    }
}

#[test]
fn no_checksum_is_taken_in_ipv4_and_refused_in_ipv6() {
    let mut bytes = emitted(HEADER, NEAR, FAR, b"unsummed");
    UdpHeader::set_checksum(&mut bytes, 0);
    assert_eq!(UdpView::parse(NEAR, FAR, &bytes).unwrap().data, b"unsummed");
    assert_eq!(UdpView::parse(v6(1), v6(2), &bytes), Err(ParseError::BadChecksum));
    assert_eq!(UdpView::parse_verified(Family::V6, &bytes), Err(ParseError::BadChecksum));
}

#[test]
fn a_wrong_checksum_is_refused_unless_a_device_has_looked() {
    let mut bytes = emitted(HEADER, NEAR, FAR, b"data");
    bytes[6] ^= 0x55;
    assert_eq!(UdpView::parse(NEAR, FAR, &bytes), Err(ParseError::BadChecksum));
    assert_eq!(UdpView::parse_verified(Family::V4, &bytes).unwrap().data, b"data");
    // The pseudo-header is summed, too: RFC 768, "protection against misrouted datagrams".
    let bytes = emitted(HEADER, NEAR, FAR, b"data");
    assert_eq!(UdpView::parse(NEAR, NEAR, &bytes), Err(ParseError::BadChecksum));
}

#[test]
fn length_beyond_packet_is_refused_and_padding_ignored() {
    let mut bytes = emitted(HEADER, NEAR, FAR, b"data");
    assert_eq!(UdpView::parse(NEAR, FAR, &bytes[..11]), Err(ParseError::Truncated));
    bytes.extend_from_slice(b"behind");
    assert_eq!(UdpView::parse(NEAR, FAR, &bytes).unwrap().data, b"data");
    for length in 0..8 {
        bytes[5] = length;
        assert_eq!(UdpView::parse(NEAR, FAR, &bytes), Err(ParseError::BadLength));
    }
    for len in 0..8 {
        assert_eq!(UdpView::parse(NEAR, FAR, &[0; 8][..len]), Err(ParseError::Truncated));
    }
}

#[test]
fn the_largest_datagram_fills_the_largest_packet() {
    for (src, dst, most) in [(NEAR, FAR, 65_507), (v6(1), v6(2), 65_527)] {
        assert_eq!(UdpHeader::most_data(src.family()), most);
        let bytes = emitted(HEADER, src, dst, &std::vec![7; most]);
        assert_eq!(UdpView::parse(src, dst, &bytes).unwrap().data.len(), most);
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed_and_etherparse_agrees(
        ports: [u16; 2], hosts: [[u8; 4]; 2], data in vec(any::<u8>(), 0..70),
    ) {
        let header = UdpHeader { src_port: ports[0], dst_port: ports[1] };
        let [src, dst] = hosts.map(Address::from_v4_bytes);
        let bytes = emitted(header, src, dst, &data);
        let view = UdpView::parse(src, dst, &bytes).unwrap();
        prop_assert_eq!((view.header, view.data), (header, &data[..]));
        let (theirs, rest) = TheirHeader::from_slice(&bytes).unwrap();
        prop_assert_eq!((theirs.source_port, theirs.destination_port), (ports[0], ports[1]));
        prop_assert_eq!(usize::from(theirs.length), bytes.len());
        let checksum = theirs.calc_checksum_ipv4_raw(hosts[0], hosts[1], rest);
        prop_assert_eq!(checksum, Ok(theirs.checksum));
    }

    #[test]
    fn no_byte_changes_unseen(
        at in 0..30_usize, by in 1..255_u8, data in vec(any::<u8>(), 24..25),
    ) {
        // The length decides which bytes are summed.
        prop_assume!(at != 4 && at != 5);
        let mut bytes = emitted(HEADER, v6(1), v6(2), &data);
        bytes[at] ^= by;
        let seen = UdpView::parse(v6(1), v6(2), &bytes);
        prop_assert!(seen.is_err(), "byte {at} changed by {by:#x}: {seen:?}");
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..60)) {
        let _ = UdpView::parse(NEAR, FAR, &bytes);
        let _ = UdpView::parse(v6(1), v6(2), &bytes);
    }
}
