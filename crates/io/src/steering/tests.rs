use whimbrel_wire::MacAddress;

use super::*;

const ETHERNET: Medium = Medium::Ethernet { mac: MacAddress([2, 0, 0, 0, 0, 1]) };

/// An IPv4 packet without options.
fn v4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    let mut sum = 0;
    for pair in packet.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// An IPv6 packet without extension headers.
fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 64];
    for last in [1, 2] {
        packet.extend_from_slice(&[0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend_from_slice(payload);
    packet
}

/// Ports 258 and 80, and nothing else of a header.
const SEGMENT: [u8; 20] = [1, 2, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0];

#[test]
fn segments_belong_to_their_ports_and_errors_to_those_they_quote() {
    let between = Home::Between(258, 80);
    assert_eq!(home(Medium::Ip, &v4(6, 0, &SEGMENT)), between);
    assert_eq!(home(Medium::Ip, &v6(6, &SEGMENT)), between);
    let error = |kind: u8, quoted: &[u8]| [&[kind, 3, 0, 0, 0, 0, 0, 0][..], quoted].concat();
    assert_eq!(home(Medium::Ip, &v4(1, 0, &error(3, &v4(6, 0, &SEGMENT)))), between);
    assert_eq!(home(Medium::Ip, &v6(58, &error(2, &v6(6, &SEGMENT)))), between);
    // Datagrams are the first's, in fragments, too, and what is said of them.
    let quoting = [v4(1, 0, &error(3, &v4(17, 0, &SEGMENT))), v6(58, &error(1, &v6(17, &SEGMENT)))];
    let fragment = v6(44, &[&[17, 0, 0, 8, 0, 0, 0, 1][..], &SEGMENT].concat());
    let whole = [
        v4(17, 0, &SEGMENT),
        v6(17, &SEGMENT),
        v4(17, 0x2000, &SEGMENT[..16]),
        v4(17, 1, &SEGMENT),
    ];
    for packet in whole.iter().chain(&quoting).chain([&fragment]) {
        assert_eq!(home(Medium::Ip, packet), Home::First, "{packet:x?}");
    }
    // An echo, whatever it carries; a fragment; and what is no packet.
    for packet in [
        v4(1, 0, &error(8, &v4(6, 0, &SEGMENT))),
        v4(6, 0x2000, &SEGMENT),
        v4(6, 1, &SEGMENT),
        v4(6, 0, &SEGMENT[..3]),
        Vec::new(),
    ] {
        assert_eq!(home(Medium::Ip, &packet), Home::Anybody, "{packet:x?}");
    }
}

#[test]
fn everybody_hears_where_a_neighbour_is() {
    let frame = |kind: u16, packet: &[u8]| {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9][..], &kind.to_be_bytes(), packet].concat()
    };
    let arp = |operation: u8| {
        let mut packet = vec![0, 1, 8, 0, 6, 4, 0, operation];
        packet.extend_from_slice(&[2, 0, 0, 0, 0, 9, 10, 9, 0, 9, 2, 0, 0, 0, 0, 1, 10, 9, 0, 2]);
        frame(0x0806, &packet)
    };
    assert_eq!(home(ETHERNET, &arp(2)), Home::Everybody);
    assert_eq!(home(ETHERNET, &arp(1)), Home::Anybody);
    let advertisement = v6(58, &[&[136, 0, 0, 0, 0, 0, 0, 0][..], &[0; 16]].concat());
    assert_eq!(home(ETHERNET, &frame(0x86dd, &advertisement)), Home::Everybody);
    assert_eq!(home(ETHERNET, &frame(0x0800, &v4(6, 0, &SEGMENT))), Home::Between(258, 80));
}
