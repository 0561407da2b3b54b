//! Plain datagrams, compared with the parsers and writers of the single headers.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{Ipv4Header, UdpView};

fn any_headers() -> impl Strategy<Value = PlainDatagramHeaders> {
    let ends = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>(), any::<u16>());
    (ends, any::<u8>(), any::<u8>()).prop_map(
        |((src, dst, src_port, dst_port), class, hop_limit)| {
            let [src, dst] = [src, dst].map(Address::from_v4_bytes);
            PlainDatagramHeaders {
                src,
                dst,
                src_port,
                dst_port,
                class: TrafficClass(class),
                hop_limit,
            }
        },
    )
}

fn packet(headers: &PlainDatagramHeaders, data: &[u8]) -> Vec<u8> {
    let mut packet = std::vec![0; HEADS];
    let sum = Some(Sum::new().add_bytes(data));
    let room = packet.first_chunk_mut().unwrap();
    headers.emit(Text { len: data.len() as u32, sum }, room);
    packet.extend_from_slice(data);
    packet
}

/// Returns the headers and data that the single parsers find, if they take the packet.
fn parsed(packet: &[u8]) -> Option<(Ipv4Header, UdpHeader, Vec<u8>)> {
    let (ip, payload) = Ipv4Header::parse(packet).ok()?;
    let [src, dst] = [ip.src, ip.dst].map(|addr| Address::from_v4_bytes(addr.octets()));
    let view = UdpView::parse(src, dst, payload).ok()?;
    Some((ip, view.header, view.data.to_vec()))
}

proptest! {
    #[test]
    fn written_headers_are_those_of_the_single_writers(
        headers in any_headers(),
        data in vec(any::<u8>(), 0..100),
    ) {
        let packet = packet(&headers, &data);
        let mut datagram = std::vec![0; UdpHeader::LEN + data.len()];
        let udp = UdpHeader { src_port: headers.src_port, dst_port: headers.dst_port };
        udp.emit_datagram(headers.src, headers.dst, &data, &mut datagram);
        prop_assert_eq!(&packet[IP_LEN..], &datagram[..]);
        let (ip, header, found) = parsed(&packet).unwrap();
        prop_assert_eq!((header, found), (udp, data));
        prop_assert_eq!((ip.tos, ip.ttl, ip.dont_fragment), (headers.class, headers.hop_limit, true));
        prop_assert!(ip.fragment.is_none());
    }

    #[test]
    fn read_datagram_has_what_the_single_parsers_find(
        headers in any_headers(),
        data in vec(any::<u8>(), 0..100),
        behind in vec(any::<u8>(), 0..9),
    ) {
        let mut packet = packet(&headers, &data);
        packet.extend_from_slice(&behind);
        let read = PlainDatagram::read(&packet, Checksum::Verify).unwrap();
        prop_assert_eq!(read.addresses(), (headers.src, headers.dst));
        prop_assert_eq!(read.ports(), (headers.src_port, headers.dst_port));
        prop_assert_eq!(read.class_and_hop_limit(), (headers.class, headers.hop_limit));
        prop_assert!(read.has_dont_fragment());
        prop_assert_eq!(read.data, &data[..]);
    }

    #[test]
    fn damaged_packet_is_taken_only_if_the_single_parsers_take_it_alike(
        headers in any_headers(),
        data in vec(any::<u8>(), 0..40),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in 0_usize..30,
    ) {
        let mut packet = packet(&headers, &data);
        for (at, byte) in damage {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        packet.truncate(packet.len().saturating_sub(cut / 10));
        if let Some(read) = PlainDatagram::read(&packet, Checksum::Verify) {
            let (ip, header, found) = parsed(&packet).expect("both take it");
            prop_assert_eq!(read.ports(), (header.src_port, header.dst_port));
            prop_assert_eq!(read.data, &found[..]);
            prop_assert_eq!(read.has_dont_fragment(), ip.dont_fragment);
            prop_assert_eq!(read.class_and_hop_limit(), (ip.tos, ip.ttl));
        }
    }
}

#[test]
fn checksum_of_a_device_is_that_of_the_pseudo_header() {
    let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Address::from_v4_bytes);
    let class = TrafficClass(0);
    let headers = PlainDatagramHeaders { src, dst, src_port: 1, dst_port: 2, class, hop_limit: 64 };
    let mut room = [0; HEADS];
    headers.emit(Text { len: 3, sum: None }, &mut room);
    let pseudo = Sum::pseudo_header(src, dst, Protocol::UDP.0, 11).fold();
    assert_eq!(room[26..], pseudo.to_be_bytes());
    // Nothing was summed of the data, so a device has to have said that it is right.
    let packet = [&room[..], b"abc"].concat();
    assert!(PlainDatagram::read(&packet, Checksum::Trust).is_some());
    assert!(PlainDatagram::read(&packet, Checksum::Verify).is_none());
}

#[test]
fn checksum_of_zero_is_sent_as_ones_and_read_as_none() {
    let [src, dst] = [[0; 4], [0; 4]].map(Address::from_v4_bytes);
    let class = TrafficClass(0);
    let headers = PlainDatagramHeaders { src, dst, src_port: 0, dst_port: 0, class, hop_limit: 1 };
    // Protocol 17 and twice the length of 10 bytes: what is missing to ones.
    let data = (!(17_u16 + 10 + 10)).to_be_bytes();
    let mut packet = packet(&headers, &data);
    assert_eq!(packet[26..28], [0xff, 0xff]);
    assert!(PlainDatagram::read(&packet, Checksum::Verify).is_some());
    packet[26..28].fill(0);
    assert!(PlainDatagram::read(&packet, Checksum::Verify).is_none());
    assert!(parsed(&packet).is_some());
}
