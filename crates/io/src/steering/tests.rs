use whimbrel_wire::MacAddress;

use super::*;

const ETHERNET: Medium = Medium::Ethernet { mac: MacAddress([2, 0, 0, 0, 0, 1]) };

/// Returns an IPv4 packet without options.
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

/// Returns an IPv6 packet without extension headers.
fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 64];
    for last in [1, 2] {
        packet.extend_from_slice(&[0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend_from_slice(payload);
    packet
}

/// A TCP header with ports 258 and 80, and little else.
const SEGMENT: [u8; 20] = [1, 2, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0];

#[test]
fn owner_follows_from_ports_or_from_quoted_ports() {
    let between = FrameOwner::Between(258, 80);
    assert_eq!(frame_owner(Medium::Ip, &v4(6, 0, &SEGMENT)), between);
    assert_eq!(frame_owner(Medium::Ip, &v6(6, &SEGMENT)), between);
    let error = |kind: u8, quoted: &[u8]| [&[kind, 3, 0, 0, 0, 0, 0, 0][..], quoted].concat();
    assert_eq!(frame_owner(Medium::Ip, &v4(1, 0, &error(3, &v4(6, 0, &SEGMENT)))), between);
    assert_eq!(frame_owner(Medium::Ip, &v6(58, &error(2, &v6(6, &SEGMENT)))), between);
    // Datagrams belong to the first shard, in fragments, too, and so do errors about them.
    let quoting = [v4(1, 0, &error(3, &v4(17, 0, &SEGMENT))), v6(58, &error(1, &v6(17, &SEGMENT)))];
    let fragment = v6(44, &[&[17, 0, 0, 8, 0, 0, 0, 1][..], &SEGMENT].concat());
    let whole = [
        v4(17, 0, &SEGMENT),
        v6(17, &SEGMENT),
        v4(17, 0x2000, &SEGMENT[..16]),
        v4(17, 1, &SEGMENT),
    ];
    for packet in whole.iter().chain(&quoting).chain([&fragment]) {
        assert_eq!(frame_owner(Medium::Ip, packet), FrameOwner::FirstShard, "{packet:x?}");
    }
    // An echo with any data, a fragment, and bytes that are no packet.
    for packet in [
        v4(1, 0, &error(8, &v4(6, 0, &SEGMENT))),
        v4(6, 0x2000, &SEGMENT),
        v4(6, 1, &SEGMENT),
        v4(6, 0, &SEGMENT[..3]),
        Vec::new(),
    ] {
        assert_eq!(frame_owner(Medium::Ip, &packet), FrameOwner::AnyShard, "{packet:x?}");
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
    assert_eq!(frame_owner(ETHERNET, &arp(2)), FrameOwner::EveryShard);
    assert_eq!(frame_owner(ETHERNET, &arp(1)), FrameOwner::AnyShard);
    let advertisement = v6(58, &[&[136, 0, 0, 0, 0, 0, 0, 0][..], &[0; 16]].concat());
    assert_eq!(frame_owner(ETHERNET, &frame(0x86dd, &advertisement)), FrameOwner::EveryShard);
    assert_eq!(
        frame_owner(ETHERNET, &frame(0x0800, &v4(6, 0, &SEGMENT))),
        FrameOwner::Between(258, 80)
    );
}
