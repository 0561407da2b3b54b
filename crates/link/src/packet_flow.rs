//! Flow of a packet between a device and its shard.

use whimbrel_base::packet::TxSegment;
use whimbrel_stack::Medium;
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, Endpoint, EthernetHeader, Flow, IpHeader, Protocol};

use crate::pcapng::Direction;

/// Flow of an unfragmented TCP packet.
pub(crate) fn flow_of(medium: Medium, direction: Direction, bytes: &[u8]) -> Option<Flow> {
    let packet = match medium {
        Medium::Ip => bytes,
        Medium::Ethernet { .. } => EthernetHeader::parse(bytes).ok()?.1,
    };
    let (ip, segment) = IpHeader::parse(packet).ok()?;
    if ip.protocol != Protocol::TCP || ip.fragment.is_some() {
        return None;
    }
    let (tcp, _) = TcpHeader::parse(segment).ok()?;
    let (src, dst) = (Endpoint::new(ip.src, tcp.src_port), Endpoint::new(ip.dst, tcp.dst_port));
    Some(match direction {
        Direction::In => Flow { local: dst, remote: src },
        Direction::Out => Flow { local: src, remote: dst },
    })
}

/// Flow of a TCP segment, by its headers only.
pub(crate) fn flow_of_segment(medium: Medium, segment: &TxSegment) -> Option<Flow> {
    let header = segment.header();
    let ip = match medium {
        Medium::Ip => header,
        Medium::Ethernet { .. } => EthernetHeader::parse(header).ok()?.1,
    };
    // RFC 791 3.1 and RFC 8200 3: version, protocol, both addresses.
    let v4 = |at: usize| ip.get(at..)?.first_chunk().copied().map(Address::from_v4_bytes);
    let v6 = |at: usize| {
        let bytes: [u8; 16] = *ip.get(at..)?.first_chunk()?;
        Some(Address::from(core::net::Ipv6Addr::from(bytes)))
    };
    let (protocol, src, dst) = match ip.first()? >> 4 {
        4 => (ip.get(9)?, v4(12)?, v4(16)?),
        _ => (ip.get(6)?, v6(8)?, v6(24)?),
    };
    if *protocol != TCP {
        return None;
    }
    let ports: [u8; 4] = *header.get(segment.transport_offset.into()..)?.first_chunk()?;
    let [from, to] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
    Some(Flow { local: Endpoint::new(src, from), remote: Endpoint::new(dst, to) })
}

/// The protocol number of TCP in an IP header (IANA).
const TCP: u8 = 6;
