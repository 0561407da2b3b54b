//! The router in front of a link: its errors for packets that are too long.

use bytes::Bytes;
use whimbrel_wire::{
    Address, Family, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header, Ipv6Header, Protocol,
};

/// The error for a packet that exceeds `mtu`, to its sender (RFC 1191 4, RFC 4443 3.2). Returns
/// `None` if a router would be silent: the packet is not IP, or may be fragmented, which no TCP of
/// today sends.
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
    let (src, dst) = ([10, 0, 0, 254].into(), to.v4_bytes().into());
    let header = Ipv4Header {
        dont_fragment: false,
        ..Ipv4Header::new(src, dst, Protocol::ICMP, error.wire_len())
    };
    header.emit(&mut packet);
    error.emit(&mut packet[Ipv4Header::LEN..]);
    Bytes::from(packet)
}

fn v6(to: &Address, error: &Icmpv6Message<'_>) -> Bytes {
    let mut packet = vec![0; Ipv6Header::LEN + error.wire_len()];
    let src = std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);
    let dst = std::net::Ipv6Addr::from(*to.as_bytes());
    Ipv6Header::new(src, dst, Protocol::ICMPV6, error.wire_len()).emit(&mut packet);
    error.emit(src, dst, &mut packet[Ipv6Header::LEN..]);
    Bytes::from(packet)
}

/// RFC 792: "Internet Header + 64 bits of Original Data Datagram".
const V4_QUOTED: usize = 28;
/// With its own 48 bytes of headers an error fits the least MTU, 1,280.
const V6_QUOTED: usize = 1_232;

#[cfg(test)]
mod tests;
