//! Packets that no shard sends: of other protocols, in fragments, errors of routers.

use std::net::Ipv6Addr;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_wire::tcp::{OptionOrder, TcpHeader};
use whimbrel_wire::{
    Address, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header, Ipv6Header, Protocol,
};

use super::hosts::{Over, client_addr, server_addr};
use crate::{RxFrame, Shard, TxBatch};

/// A packet from the client to the server.
pub(super) fn packet(over: Over, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    packet_from(client_addr(over), server_addr(over), protocol, payload)
}

/// A packet of either family.
pub(super) fn packet_from(
    src: Address,
    dst: Address,
    protocol: Protocol,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = if src.is_v4() {
        let mut bytes = vec![0; Ipv4Header::LEN];
        let header = Ipv4Header {
            dont_fragment: false,
            ..Ipv4Header::new(src.v4_bytes().into(), dst.v4_bytes().into(), protocol, payload.len())
        };
        header.emit(&mut bytes);
        bytes
    } else {
        let mut bytes = vec![0; Ipv6Header::LEN];
        let header = Ipv6Header::new(v6(&src), v6(&dst), protocol, payload.len());
        header.emit(&mut bytes);
        bytes
    };
    packet.extend_from_slice(payload);
    packet
}

/// One fragment of `packet`: the bytes of its payload in `range`.
pub(super) fn fragment(packet: &[u8], id: u32, range: core::ops::Range<usize>) -> Vec<u8> {
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    let more = range.end < payload.len();
    let place = range.start as u16 | u16::from(more);
    let bytes = &payload[range];
    if ip.src.is_v4() {
        let mut piece = packet_from(ip.src, ip.dst, ip.protocol, bytes);
        piece[4..6].copy_from_slice(&(id as u16).to_be_bytes());
        piece[6..8].copy_from_slice(&(place >> 3 | (place & 1) << 13).to_be_bytes());
        fix_checksum(&mut piece);
        piece
    } else {
        let mut body = vec![ip.protocol.0, 0];
        body.extend(place.to_be_bytes());
        body.extend(id.to_be_bytes());
        body.extend_from_slice(bytes);
        packet_from(ip.src, ip.dst, Protocol::FRAGMENT, &body)
    }
}

/// The fragments of `packet` that fit `size` bytes each.
pub(super) fn fragments(packet: &[u8], id: u32, size: usize) -> Vec<Vec<u8>> {
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    let headers = if ip.src.is_v4() { 20 } else { 48 };
    let step = (size - headers) / 8 * 8;
    let starts = (0..payload.len()).step_by(step);
    starts.map(|at| fragment(packet, id, at..(at + step).min(payload.len()))).collect()
}

/// Sets the checksum of an IPv4 header without options.
pub(super) fn fix_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = whimbrel_wire::Sum::new().add_bytes(&packet[..20]).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn router(over: Over) -> Address {
    match over {
        Over::V4 => Address::from_v4_bytes([10, 0, 0, 254]),
        Over::V6 => Address::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe)),
    }
}

pub(super) fn v6(addr: &Address) -> Ipv6Addr {
    Ipv6Addr::from(*addr.as_bytes())
}

/// Returns the error that a router sends to the sender of `about`, an IPv4 packet.
pub(super) fn icmp(about: &[u8], message: &IcmpMessage<'_>) -> Vec<u8> {
    let (ip, _) = IpHeader::parse(about).expect("an IP packet");
    let mut bytes = vec![0; message.wire_len()];
    message.emit(&mut bytes);
    packet_from(router(Over::V4), ip.src, Protocol::ICMP, &bytes)
}

/// Returns the error that a router sends to the sender of `about`, an IPv6 packet.
pub(super) fn icmpv6(about: &[u8], message: &Icmpv6Message<'_>) -> Vec<u8> {
    let (ip, _) = IpHeader::parse(about).expect("an IP packet");
    let mut bytes = vec![0; message.wire_len()];
    message.emit(v6(&router(Over::V6)), v6(&ip.src), &mut bytes);
    packet_from(router(Over::V6), ip.src, Protocol::ICMPV6, &bytes)
}

/// An error of type destination unreachable.
pub(super) fn unreachable(about: &[u8], code: u8) -> Vec<u8> {
    // An IPv4 router may quote no more than this.
    let quoted = &about[..about.len().min(28)];
    if about[0] >> 4 == 4 {
        icmp(about, &IcmpMessage::DestinationUnreachable { code, quoted })
    } else {
        icmpv6(about, &Icmpv6Message::DestinationUnreachable { code, quoted: about })
    }
}

/// The packet is too big for a link of `mtu`.
pub(super) fn too_big(about: &[u8], mtu: u16) -> Vec<u8> {
    if about[0] >> 4 == 4 {
        let quoted = &about[..28];
        icmp(about, &IcmpMessage::FragmentationNeeded { next_hop_mtu: mtu, quoted })
    } else {
        let quoted = &about[..about.len().min(1_232)];
        icmpv6(about, &Icmpv6Message::PacketTooBig { mtu: u32::from(mtu), quoted })
    }
}

/// A segment from `src` reaches the IPv4 server; returns what that answers, headers and texts.
pub(super) fn tell(
    server: &mut Shard,
    now: Instant,
    src: Address,
    header: &TcpHeader,
    text: &[u8],
) -> Vec<(TcpHeader, Vec<u8>)> {
    let mut bytes = [0; 60];
    let len = header.emit(OptionOrder::Linux, &mut bytes);
    let segment = [&bytes[..len], text].concat();
    let packet = packet_from(src, server_addr(Over::V4), Protocol::TCP, &segment);
    let meta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
    server.rx(now, &[RxFrame::new(&packet, meta)]);
    sent(server).iter().map(|packet| tcp(packet)).collect()
}

/// The TCP header of a packet, and its text.
pub(super) fn tcp(packet: &[u8]) -> (TcpHeader, Vec<u8>) {
    let (_, payload) = IpHeader::parse(packet).expect("an IP packet");
    let (header, len) = TcpHeader::parse(payload).expect("a TCP header");
    (header, payload[len..].to_vec())
}

/// Hands a packet to a host at `now`; returns what it sends.
pub(super) fn exchange(shard: &mut Shard, now: Instant, packet: &[u8]) -> Vec<Vec<u8>> {
    shard.rx(now, &[RxFrame::new(packet, SegMeta::SINGLE)]);
    sent(shard)
}

/// Returns what a host sends.
pub(super) fn sent(shard: &mut Shard) -> Vec<Vec<u8>> {
    let mut batch = TxBatch::new(64);
    shard.tx(&mut batch);
    batch.pending().iter().map(whimbrel_base::packet::TxSegment::to_vec).collect()
}
