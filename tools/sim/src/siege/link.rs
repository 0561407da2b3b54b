//! The besieger on an Ethernet: frame headers, and the addresses of hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use whimbrel_wire::ndp::NeighborFlags;
use whimbrel_wire::{
    Address, ArpOperation, ArpPacket, EtherType, EthernetHeader, Family, MacAddress, NdpMessage,
    Protocol,
};

use super::fuzzed_host::{self, OUR_MAC, PEER_MAC};
use super::packet::{v6, wrap};
use super::script::Script;

/// The frame around an IP packet.
pub(super) fn frame(packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet.first().is_some_and(|first| first >> 4 == 6) {
        EtherType::IPV6
    } else {
        EtherType::IPV4
    };
    around(OUR_MAC, ether_type, packet)
}

fn around(dst: MacAddress, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let header = EthernetHeader { dst, src: PEER_MAC, ether_type };
    [&header.emit()[..], payload].concat()
}

/// Changes the header of a frame.
pub(super) fn garnish(frame: &mut Vec<u8>, script: &mut Script<'_>) {
    match script.below(4) {
        0 => frame[script.below(14)] ^= 1 << script.below(8),
        1 => frame[..6].fill(0xff),
        2 => {
            // A priority tag, or a VLAN tag.
            let tag = [0x81, 0, script.u8() % 2 * 0x10, script.u8() % 2];
            frame.splice(12..12, tag);
        }
        _ => frame.truncate(script.below(20)),
    }
}

/// The reply to the host's address request, if the frame is one and its target exists.
pub(super) fn answer(asked: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = EthernetHeader::parse(asked).ok()?;
    if header.ether_type == EtherType::ARP {
        let question = ArpPacket::parse(payload).ok()?;
        let theirs = Address::from(question.target_ip);
        let wanted = question.operation == ArpOperation::Request && is_peer(&theirs);
        return wanted
            .then(|| arp(ArpOperation::Reply, PEER_MAC, [question.target_ip, question.sender_ip]));
    }
    let (ip, body) = whimbrel_wire::IpHeader::parse(payload).ok()?;
    if ip.protocol != Protocol::ICMPV6 {
        return None;
    }
    let message = NdpMessage::parse(v6(&ip.src), v6(&ip.dst), ip.hop_limit, body).ok()?;
    let NdpMessage::NeighborSolicitation { target, .. } = message else { return None };
    let wanted = is_peer(&Address::from(target)) && !ip.src.is_unspecified();
    wanted.then(|| {
        let flags = NeighborFlags { router: true, solicited: true, overrides: true };
        let advert =
            NdpMessage::NeighborAdvertisement { target, flags, target_link_layer: Some(PEER_MAC) };
        ndp(target, v6(&ip.src), &advert)
    })
}

/// True if a host other than this one has the address.
fn is_peer(addr: &Address) -> bool {
    let own = |which| fuzzed_host::ours(addr.family(), which) == *addr;
    !own(0) && !own(1)
}

fn arp(operation: ArpOperation, mac: MacAddress, [sender_ip, target_ip]: [Ipv4Addr; 2]) -> Vec<u8> {
    let packet =
        ArpPacket { operation, sender_mac: mac, sender_ip, target_mac: OUR_MAC, target_ip };
    around(OUR_MAC, EtherType::ARP, &packet.emit())
}

/// A neighbour discovery message with its required hop limit.
fn ndp(src: Ipv6Addr, dst: Ipv6Addr, message: &NdpMessage<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.wire_len()];
    message.emit(src, dst, &mut bytes);
    let mut packet = wrap(src.into(), dst.into(), Protocol::ICMPV6, &bytes);
    packet[7] = NdpMessage::HOP_LIMIT;
    let mac = if dst.is_multicast() { MacAddress::of_ipv6_multicast(dst) } else { OUR_MAC };
    around(mac, EtherType::IPV6, &packet)
}

/// A message about a neighbour: true, false, or malformed in one byte.
pub(super) fn rumour(families: &[Family], script: &mut Script<'_>) -> Vec<u8> {
    let mut frame = match script.one_of(families) {
        Family::V4 => arp_rumour(script),
        Family::V6 => ndp_rumour(script),
    };
    if script.rarely(6) {
        let at = script.below(frame.len());
        frame[at] ^= 1 << script.below(8);
    }
    frame
}

fn draw_peer(family: Family, script: &mut Script<'_>) -> Address {
    match script.below(6) {
        0 => fuzzed_host::ours(family, 0),
        1 => fuzzed_host::ours(family, 1),
        2 => fuzzed_host::router(family, 0),
        3 => fuzzed_host::router(family, 1),
        4 => fuzzed_host::peer(family, 0),
        _ => match family {
            Family::V4 => Address::from_v4_bytes([10, 0, 0, script.u8()]),
            Family::V6 => Address::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, script.u16())),
        },
    }
}

fn station(script: &mut Script<'_>) -> MacAddress {
    match script.below(4) {
        0 | 1 => PEER_MAC,
        2 => OUR_MAC,
        _ => MacAddress([script.u8(), 0, 0, 0, 0, script.u8()]),
    }
}

fn arp_rumour(script: &mut Script<'_>) -> Vec<u8> {
    let operation = script.one_of(&[ArpOperation::Reply, ArpOperation::Request]);
    let sender = match script.rarely(6) {
        true => Ipv4Addr::UNSPECIFIED,
        false => Ipv4Addr::from(draw_peer(Family::V4, script).v4_bytes()),
    };
    let target = Ipv4Addr::from(draw_peer(Family::V4, script).v4_bytes());
    let mut frame = arp(operation, station(script), [sender, target]);
    if script.rarely(3) {
        frame[..6].fill(0xff);
    }
    frame
}

fn ndp_rumour(script: &mut Script<'_>) -> Vec<u8> {
    let target = v6(&draw_peer(Family::V6, script));
    let src = match script.rarely(6) {
        true => Ipv6Addr::UNSPECIFIED,
        false => v6(&draw_peer(Family::V6, script)),
    };
    let link_layer = if script.rarely(3) { None } else { Some(station(script)) };
    let own = v6(&fuzzed_host::ours(Family::V6, 0));
    match script.below(3) {
        0 => {
            let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, target.segments()[7]);
            let dst = if script.rarely(2) { own } else { group };
            let ask = NdpMessage::NeighborSolicitation { target, source_link_layer: link_layer };
            ndp(src, dst, &ask)
        }
        1 => ndp(src, own, &NdpMessage::RouterSolicitation { source_link_layer: link_layer }),
        _ => {
            let bits = script.u8();
            let flags = NeighborFlags {
                router: bits & 1 != 0,
                solicited: bits & 2 != 0,
                overrides: bits & 4 != 0,
            };
            let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
            let dst = if bits & 8 != 0 { group } else { own };
            let advert =
                NdpMessage::NeighborAdvertisement { target, flags, target_link_layer: link_layer };
            ndp(src, dst, &advert)
        }
    }
}
