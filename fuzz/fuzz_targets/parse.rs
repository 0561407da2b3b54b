//! Parsers never panic, and what they accept survives being emitted: `parse(emit(x)) == x`.
#![no_main]

use std::net::Ipv6Addr;

use libfuzzer_sys::fuzz_target;
use whimbrel_wire::{
    ArpPacket, EtherType, EthernetHeader, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header,
    Ipv6Header, NdpMessage, OptionOrder, QuotedSegment, Sum, TcpHeader, TcpOptions, UdpHeader,
    UdpView,
};

const SRC: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const DST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fuzz_target!(|input: &[u8]| {
    let Some((parser, bytes)) = input.split_first() else { return };
    match parser % 11 {
        0 => ethernet(bytes),
        1 => arp(bytes),
        2 => ipv4(&with_header_checksum(bytes)),
        3 => ipv6(bytes),
        4 => icmp(bytes),
        5 => icmpv6(bytes),
        6 => ndp(bytes),
        7 => tcp(bytes),
        8 => sum(bytes),
        9 => udp(bytes),
        _ => {
            let _ = QuotedSegment::parse(bytes);
            let _ = IpHeader::parse(bytes);
        }
    }
});

fn ethernet(bytes: &[u8]) {
    let Ok((header, payload)) = EthernetHeader::parse(bytes) else { return };
    if header.ether_type != EtherType::VLAN {
        let frame = [&header.emit()[..], payload].concat();
        assert_eq!(EthernetHeader::parse(&frame), Ok((header, payload)));
    }
}

/// The data survive; what lies behind them in the packet does not.
fn udp(bytes: &[u8]) {
    let (src, dst) = (SRC.into(), DST.into());
    let packet = with_udp_checksum(bytes);
    let Ok(view) = UdpView::parse(src, dst, &packet) else { return };
    let mut datagram = vec![0; view.data.len() + UdpHeader::LEN];
    view.header.emit_datagram(src, dst, view.data, &mut datagram);
    let again = UdpView::parse(src, dst, &datagram).expect("what was emitted is parsed");
    assert_eq!((again.header, again.data), (view.header, view.data));
}

/// Mends the checksum of as much as the length field says, unless the fuzzer chose none.
fn with_udp_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut packet = bytes.to_vec();
    let [_, _, _, _, high, low, c0, c1, ..] = *bytes else { return packet };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if (UdpHeader::LEN..=packet.len()).contains(&len) && (c0, c1) != (0, 0) {
        packet[6..8].fill(0);
        let sum = Sum::pseudo_header(SRC.into(), DST.into(), 17, len as u32);
        let checksum = UdpHeader::checksum_of(sum.add_bytes(&packet[..len]));
        UdpHeader::set_checksum(&mut packet, checksum);
    }
    packet
}

fn arp(bytes: &[u8]) {
    let Ok(packet) = ArpPacket::parse(bytes) else { return };
    assert_eq!(ArpPacket::parse(&packet.emit()), Ok(packet));
}

/// A fuzzer does not find checksums: mends the IPv4 header's.
fn with_header_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut packet = bytes.to_vec();
    let header_len = usize::from(bytes.first().unwrap_or(&0) & 15) * 4;
    if (20..=packet.len()).contains(&header_len) {
        packet[10..12].fill(0);
        let checksum = Sum::new().add_bytes(&packet[..header_len]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    packet
}

/// Options are not emitted: the payload moves forward.
fn ipv4(bytes: &[u8]) {
    let Ok((mut header, payload)) = Ipv4Header::parse(bytes) else { return };
    header.total_len -= u16::from(header.header_len) - 20;
    header.header_len = 20;
    let mut packet = [&[0; 20], payload].concat();
    header.emit(&mut packet);
    assert_eq!(Ipv4Header::parse(&packet), Ok((header, payload)));
}

/// Extension headers are not emitted: the payload moves forward.
fn ipv6(bytes: &[u8]) {
    let Ok((mut header, payload)) = Ipv6Header::parse(bytes) else { return };
    if header.fragment.is_some() {
        return;
    }
    (header.header_len, header.protocol_pointer) = (40, 6);
    let mut packet = [&[0; 40], payload].concat();
    header.emit(&mut packet);
    assert_eq!(Ipv6Header::parse(&packet), Ok((header, payload)));
}

fn icmp(bytes: &[u8]) {
    let _ = IcmpMessage::parse(bytes);
    let Ok(message) = IcmpMessage::parse_verified(bytes) else { return };
    let mut buf = vec![0; message.wire_len()];
    assert_eq!(message.emit(&mut buf), buf.len());
    assert_eq!(IcmpMessage::parse(&buf), Ok(message));
}

fn icmpv6(bytes: &[u8]) {
    let _ = Icmpv6Message::parse(SRC, DST, bytes);
    let Ok(message) = Icmpv6Message::parse_verified(bytes) else { return };
    let mut buf = vec![0; message.wire_len()];
    assert_eq!(message.emit(SRC, DST, &mut buf), buf.len());
    let again = Icmpv6Message::parse(SRC, DST, &buf).expect("a checksum of our own");
    match message {
        Icmpv6Message::NeighborDiscovery { .. } => {}
        _ => assert_eq!(again, message),
    }
}

fn ndp(bytes: &[u8]) {
    let Ok(message) = NdpMessage::parse(SRC, DST, NdpMessage::HOP_LIMIT, bytes) else { return };
    if let NdpMessage::RouterAdvertisement(advertisement) = message {
        assert!(advertisement.options.into_iter().count() <= bytes.len() / 8);
    }
    let mut buf = vec![0; message.wire_len()];
    assert_eq!(message.emit(SRC, DST, &mut buf), buf.len());
    assert_eq!(NdpMessage::parse(SRC, DST, NdpMessage::HOP_LIMIT, &buf), Ok(message));
    assert!(Icmpv6Message::parse(SRC, DST, &buf).is_ok());
}

/// Options that no longer fit, once aligned, are left out: what is emitted is stable from then on.
fn tcp(bytes: &[u8]) {
    let Ok((header, header_len)) = TcpHeader::parse(bytes) else { return };
    assert!(header_len <= bytes.len());
    for order in [OptionOrder::Linux, OptionOrder::FreeBsd] {
        let emitted = emitted_tcp(&header, order);
        let (parsed, _) = TcpHeader::parse(&emitted).expect("a header of our own");
        assert_eq!(TcpHeader { options: header.options, ..parsed }, header);
        if !rare(&header.options) {
            let options = TcpOptions { authentication: None, malformed: false, ..header.options };
            assert_eq!(parsed.options, options);
        }
        assert_eq!(emitted_tcp(&parsed, order), emitted);
    }
}

/// True if there are options that may have to give way.
fn rare(options: &TcpOptions) -> bool {
    !options.sack.is_empty()
        || options.fast_open.is_some()
        || options.user_timeout.is_some()
        || options.accurate_ecn.is_some()
}

fn emitted_tcp(header: &TcpHeader, order: OptionOrder) -> Vec<u8> {
    let mut buf = vec![0; header.header_len(order)];
    assert_eq!(header.emit(order, &mut buf), buf.len());
    buf
}

/// The first byte cuts the rest in two.
fn sum(bytes: &[u8]) {
    let Some((at, rest)) = bytes.split_first() else { return };
    let (head, tail) = rest.split_at(usize::from(*at).min(rest.len()));
    let whole = Sum::new().add_bytes(rest).fold();
    assert_eq!(Sum::new().add_bytes(head).add_bytes(tail).fold(), whole);
}
