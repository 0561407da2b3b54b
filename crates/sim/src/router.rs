//! The router in front of a link: what it says of packets that are too long for it.

use bytes::Bytes;
use whimbrel_wire::{
    Address, Family, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header, Ipv6Header, Protocol,
    TrafficClass,
};

/// The error for a packet that exceeds `mtu`, to whoever sent it (RFC 1191 4, RFC 4443 3.2).
/// `None` where a router would say nothing: what is no IP packet, and what may be fragmented,
/// which no TCP of today sends.
pub fn too_long(packet: &[u8], mtu: u16) -> Option<Bytes> {
    let (ip, _) = IpHeader::parse(packet).ok()?;
    match ip.src.family() {
        Family::V4 => {
            let (header, _) = Ipv4Header::parse(packet).ok()?;
            let quoted = packet.get(..V4_QUOTED)?;
            let error = IcmpMessage::FragmentationNeeded { next_hop_mtu: mtu, quoted };
            header.dont_fragment.then(|| v4(&ip.src, &error))
        }
        Family::V6 => {
            let quoted = packet.get(..packet.len().min(V6_QUOTED))?;
            Some(v6(&ip.src, &Icmpv6Message::PacketTooBig { mtu: u32::from(mtu), quoted }))
        }
    }
}

fn v4(to: &Address, error: &IcmpMessage<'_>) -> Bytes {
    let mut packet = vec![0; Ipv4Header::LEN + error.wire_len()];
    let header = Ipv4Header {
        src: [10, 0, 0, 254].into(),
        dst: to.v4_octets().into(),
        protocol: Protocol::ICMP,
        ttl: TTL,
        tos: TrafficClass::default(),
        identification: 0,
        dont_fragment: false,
        fragment: None,
        total_len: packet.len() as u16,
        header_len: Ipv4Header::LEN as u8,
    };
    header.emit(&mut packet);
    error.emit(&mut packet[Ipv4Header::LEN..]);
    Bytes::from(packet)
}

fn v6(to: &Address, error: &Icmpv6Message<'_>) -> Bytes {
    let mut packet = vec![0; Ipv6Header::LEN + error.wire_len()];
    let src = std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);
    let dst = std::net::Ipv6Addr::from(*to.octets());
    let header = Ipv6Header {
        src,
        dst,
        protocol: Protocol::ICMPV6,
        hop_limit: TTL,
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: error.wire_len() as u16,
        header_len: Ipv6Header::LEN as u16,
        protocol_pointer: V6_PROTOCOL,
        fragment: None,
    };
    header.emit(&mut packet);
    error.emit(src, dst, &mut packet[Ipv6Header::LEN..]);
    Bytes::from(packet)
}

const TTL: u8 = 64;
/// RFC 792: "Internet Header + 64 bits of Original Data Datagram".
const V4_QUOTED: usize = 28;
/// With its own 48 octets of headers an error fits the least MTU, 1,280.
const V6_QUOTED: usize = 1_232;
/// Where an IPv6 header names what follows it.
const V6_PROTOCOL: u16 = 6;

#[cfg(test)]
mod tests;
