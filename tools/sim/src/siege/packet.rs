//! Packets around segments, errors about the host's own, echoes, and fragments of all of them.

use std::net::Ipv6Addr;

use whimbrel_wire::{
    Address, Family, Fragment, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header, Ipv6Header,
    Protocol, Sum, TrafficClass, UdpHeader,
};

use super::fuzzed_host::{self, PORTS};
use super::script::Script;

/// The packet around a payload.
pub(super) fn wrap(src: Address, dst: Address, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let (hop_limit, class) = (64, TrafficClass::default());
    let mut packet = match src.family() {
        Family::V4 => {
            let mut bytes = vec![0; Ipv4Header::LEN];
            v4_header(src, dst, protocol, payload.len()).emit(&mut bytes);
            bytes
        }
        Family::V6 => {
            let header = Ipv6Header {
                hop_limit,
                traffic_class: class,
                ..Ipv6Header::new(v6(&src), v6(&dst), protocol, payload.len())
            };
            let mut bytes = vec![0; Ipv6Header::LEN];
            header.emit(&mut bytes);
            bytes
        }
    };
    packet.extend_from_slice(payload);
    packet
}

fn v4_header(src: Address, dst: Address, protocol: Protocol, payload: usize) -> Ipv4Header {
    Ipv4Header {
        dont_fragment: false,
        ..Ipv4Header::new(src.v4_bytes().into(), dst.v4_bytes().into(), protocol, payload)
    }
}

pub(super) fn v6(addr: &Address) -> Ipv6Addr {
    Ipv6Addr::from(*addr.as_bytes())
}

/// Changes the IP header of a packet: its ECN field, options or extension headers, any byte.
pub(super) fn garnish(packet: &mut Vec<u8>, script: &mut Script<'_>) {
    let v4 = packet[0] >> 4 == 4;
    match script.below(5) {
        0 | 1 if v4 => packet[1] |= script.u8() % 4,
        0 | 1 => packet[1] |= (script.u8() % 4) << 4,
        2 if v4 => insert_options(packet, script.bytes(40)),
        2 => insert_extension(packet, script),
        3 => {
            let header = if v4 { Ipv4Header::LEN } else { Ipv6Header::LEN };
            packet[script.below(header)] ^= 1 << script.below(8);
        }
        _ => packet.truncate(packet.len().saturating_sub(script.below(32)).max(1)),
    }
    if v4 {
        mend_header(packet);
    }
}

/// IPv4 options of these bytes, ended as they must be.
fn insert_options(packet: &mut Vec<u8>, options: &[u8]) {
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    packet[0] = 0x40 | (5 + options.len() / 4) as u8;
    let total = (packet.len() + options.len()).min(usize::from(u16::MAX)) as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet.splice(20..20, options);
}

/// An IPv6 extension header behind the first.
fn insert_extension(packet: &mut Vec<u8>, script: &mut Script<'_>) {
    let kind = script.one_of(&[
        Protocol::HOP_BY_HOP,
        Protocol::DESTINATION_OPTIONS,
        Protocol::ROUTING,
        Protocol::AUTHENTICATION,
    ]);
    let mut header = vec![packet[6], script.rarely(8).into()];
    header.extend(script.bytes(14));
    header.resize(if header[1] == 0 { 8 } else { 16 }, 0);
    packet[6] = kind.0;
    let len = (packet.len() - Ipv6Header::LEN + header.len()).min(usize::from(u16::MAX)) as u16;
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet.splice(Ipv6Header::LEN..Ipv6Header::LEN, header);
}

/// Sets the checksum of an IPv4 header, whatever its length.
fn mend_header(packet: &mut [u8]) {
    let len = usize::from(packet[0] & 15) * 4;
    if (Ipv4Header::LEN..=packet.len()).contains(&len) {
        packet[10..12].fill(0);
        let checksum = Sum::new().add_bytes(&packet[..len]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// An ICMP error about a packet of the host, or nearly so. `None` if that was no packet.
pub(super) fn error(about: &[u8], script: &mut Script<'_>) -> Option<Vec<u8>> {
    let (ip, _) = IpHeader::parse(about).ok()?;
    let mut quoted = about.to_vec();
    let len = match script.below(6) {
        0..=2 => 1_232,
        3 => 28,
        4 => script.below(128),
        _ => 48,
    };
    quoted.truncate(len);
    if script.rarely(4) && !quoted.is_empty() {
        let at = script.below(quoted.len());
        quoted[at] ^= 1 << script.below(8);
    }
    let family = ip.src.family();
    let from = match script.below(3) {
        0 => ip.dst,
        which => fuzzed_host::router(family, which as u8),
    };
    Some(match family {
        Family::V4 => v4_error(from, ip.src, &quoted, script),
        Family::V6 => v6_error(from, ip.src, &quoted, script),
    })
}

/// MTUs, valid and invalid.
const MTUS: [u16; 12] = [1_400, 1_280, 576, 552, 296, 68, 67, 0, 1, 1_279, 1_499, 65_535];

fn v4_error(from: Address, to: Address, quoted: &[u8], script: &mut Script<'_>) -> Vec<u8> {
    let message = match script.below(8) {
        0..=2 => IcmpMessage::FragmentationNeeded { next_hop_mtu: script.one_of(&MTUS), quoted },
        3 | 4 => IcmpMessage::DestinationUnreachable { code: script.u8() % 17, quoted },
        5 => IcmpMessage::TimeExceeded { code: script.u8() % 3, quoted },
        6 => IcmpMessage::ParameterProblem { code: script.u8() % 3, pointer: script.u8(), quoted },
        _ => match script.below(2) {
            0 => IcmpMessage::SourceQuench { quoted },
            _ => IcmpMessage::Redirect {
                code: script.u8() % 4,
                gateway: [10, 0, 0, 9].into(),
                quoted,
            },
        },
    };
    let mut bytes = vec![0; message.wire_len()];
    message.emit(&mut bytes);
    wrap(from, to, Protocol::ICMP, &bytes)
}

fn v6_error(from: Address, to: Address, quoted: &[u8], script: &mut Script<'_>) -> Vec<u8> {
    let message = match script.below(8) {
        0..=2 => {
            let mtu = u32::from(script.one_of(&MTUS)) << if script.rarely(8) { 16 } else { 0 };
            Icmpv6Message::PacketTooBig { mtu, quoted }
        }
        3 | 4 => Icmpv6Message::DestinationUnreachable { code: script.u8() % 8, quoted },
        5 => Icmpv6Message::TimeExceeded { code: script.u8() % 3, quoted },
        6 => Icmpv6Message::ParameterProblem {
            code: script.u8() % 4,
            pointer: script.u8().into(),
            quoted,
        },
        _ => Icmpv6Message::Other { icmp_type: script.u8(), code: script.u8() },
    };
    let mut bytes = vec![0; message.wire_len()];
    message.emit(v6(&from), v6(&to), &mut bytes);
    wrap(from, to, Protocol::ICMPV6, &bytes)
}

/// Content of packets that are not segments.
pub(super) const FILLER: u8 = 0x5a;

/// A packet that is no segment: an echo request, UDP, or an unknown protocol.
pub(super) fn other(from: Address, to: Address, script: &mut Script<'_>) -> Vec<u8> {
    let len = match script.below(4) {
        0 => 0,
        1 => usize::from(script.u8()),
        _ => usize::from(script.u16()),
    };
    let bytes = vec![FILLER; len.min(60_000)];
    let (identifier, sequence, data) = (7, 1, bytes.as_slice());
    match (script.below(3), from.family()) {
        (0, Family::V4) => {
            let message = IcmpMessage::EchoRequest { identifier, sequence, data };
            let mut bytes = vec![0; message.wire_len()];
            message.emit(&mut bytes);
            wrap(from, to, Protocol::ICMP, &bytes)
        }
        (0, Family::V6) => {
            let message = Icmpv6Message::EchoRequest { identifier, sequence, data };
            let mut bytes = vec![0; message.wire_len()];
            message.emit(v6(&from), v6(&to), &mut bytes);
            wrap(from, to, Protocol::ICMPV6, &bytes)
        }
        (1, _) if script.below(4) == 0 => wrap(from, to, Protocol::UDP, &bytes),
        (1, _) => {
            // A port with a socket, or another.
            let dst_port = if script.below(4) == 0 { 9 } else { PORTS[0] };
            let header = UdpHeader { src_port: script.u16(), dst_port };
            let mut datagram = vec![0; data.len() + UdpHeader::LEN];
            header.emit_datagram(from, to, data, &mut datagram);
            wrap(from, to, Protocol::UDP, &datagram)
        }
        _ => wrap(from, to, Protocol(script.u8()), &bytes),
    }
}

/// The packet in fragments: in order, in reverse, with one missing, twice, or that overlap.
pub(super) fn fragments(packet: &[u8], script: &mut Script<'_>) -> Vec<Vec<u8>> {
    let Ok((ip, payload)) = IpHeader::parse(packet) else { return vec![packet.to_vec()] };
    let step = script.one_of(&[512_usize, 8, 16, 64, 1_232, 24]).max(payload.len() / 80 / 8 * 8);
    let identification = u32::from(script.u8() % 4);
    let piece = |from: usize, to: usize| {
        let (to, more) = (to.min(payload.len()), to < payload.len());
        let fragment = Fragment { identification, offset: from as u16 / 8 * 8, more };
        fragment_of(&ip, fragment, payload.get(from..to).unwrap_or_default())
    };
    let mut pieces: Vec<_> =
        (0..payload.len()).step_by(step).map(|from| piece(from, from + step)).collect();
    match script.below(8) {
        0..=2 => {}
        3 => pieces.reverse(),
        4 => {
            let lost = script.below(pieces.len().max(1));
            pieces.retain({
                let mut at = 0;
                move |_| {
                    at += 1;
                    at != lost + 1
                }
            });
        }
        5 => pieces.extend(pieces.clone()),
        6 => {
            let from = script.below(payload.len().max(1)) / 8 * 8;
            pieces.insert(pieces.len() / 2, piece(from, from + 8 + script.below(64)));
        }
        _ => {
            let offset = script.u16() / 8 * 8;
            let more = script.rarely(2);
            let fragment = Fragment { identification, offset, more };
            pieces.push(fragment_of(&ip, fragment, script.bytes(64)));
        }
    }
    pieces
}

fn fragment_of(ip: &IpHeader, fragment: Fragment, bytes: &[u8]) -> Vec<u8> {
    match ip.src.family() {
        Family::V4 => {
            let header = Ipv4Header {
                identification: fragment.identification as u16,
                fragment: Some(fragment),
                ..v4_header(ip.src, ip.dst, ip.protocol, bytes.len())
            };
            let mut packet = vec![0; Ipv4Header::LEN];
            header.emit(&mut packet);
            packet.extend_from_slice(bytes);
            packet
        }
        Family::V6 => {
            let body = [&fragment.emit(ip.protocol)[..], bytes].concat();
            wrap(ip.src, ip.dst, Protocol::FRAGMENT, &body)
        }
    }
}
