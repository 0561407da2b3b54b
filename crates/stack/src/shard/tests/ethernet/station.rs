//! One host on an Ethernet, and a test that plays everybody else on it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::Tunables;
use whimbrel_wire::ethernet::{EtherType, EthernetHeader};
use whimbrel_wire::ndp::{NdpMessage, NeighborFlags, solicited_node};
use whimbrel_wire::{
    Address, ArpOperation, ArpPacket, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header, Ipv6Header,
    MacAddress, Protocol,
};

use super::super::hosts::{Over, config, server_addr};
use crate::link::neighbours::NeighbourState;
use crate::{Medium, Route, RxFrame, Shard, ShardConfig, TxBatch};

/// The host's own station.
pub(super) const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The station of the neighbour numbered `number`.
pub(super) fn station(number: u16) -> MacAddress {
    let [high, low] = number.to_be_bytes();
    MacAddress([6, 0, 0, 0, high, low])
}

/// The address of the neighbour numbered `number`; the host is number 2.
pub(super) fn address(over: Over, number: u16) -> Address {
    let [high, low] = number.to_be_bytes();
    match over {
        Over::V4 => Address::from_v4_bytes([10, 0, high, low]),
        Over::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number).into(),
    }
}

/// A frame that the host sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The question for the station of an address, to all or to one.
    Ask(Address, Option<MacAddress>),
    /// The question for another station with our own address, to all, from no address.
    Probe(Address),
    /// "I have it", to one that asked.
    Answer(MacAddress),
    /// "I have it", to all.
    Announce(Address),
    /// An answer to a ping, with its sequence number, to this station.
    Echo(u16, MacAddress),
}

/// The host, and the time.
pub(super) struct Host {
    pub(super) shard: Shard,
    pub(super) now: Instant,
    pings: u16,
}

pub(super) fn configuration() -> ShardConfig {
    let mut config = config(server_addr, 2, &Tunables::default());
    config.capabilities.medium = Medium::Ethernet { mac: OURS };
    config.addresses[0].prefix_len = 16;
    config
}

impl Host {
    /// A host that has announced itself.
    pub(super) fn new() -> Self {
        Self::with_routes(Vec::new())
    }

    pub(super) fn with_routes(routes: Vec<Route>) -> Self {
        let shard = Shard::new(ShardConfig { routes, ..configuration() }).expect("valid");
        let mut host = Self { shard, now: Instant::ZERO, pings: 0 };
        host.sent();
        host
    }

    /// A frame arrives; returns what the host sends then.
    pub(super) fn take(&mut self, frame: &[u8]) -> Vec<Sent> {
        self.shard.rx(self.now, &[RxFrame::new(frame, SegMeta::SINGLE)]);
        self.sent()
    }

    /// Time passes, deadline by deadline; returns what the host sends meanwhile.
    pub(super) fn run(&mut self, time: Duration) -> Vec<Sent> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some(next) = self.shard.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            while self.shard.advance(self.now, 16) {}
            sent.extend(self.sent());
        }
        self.now = end;
        sent
    }

    pub(super) fn run_seconds(&mut self, seconds: u64) -> Vec<Sent> {
        self.run(Duration::from_secs(seconds))
    }

    pub(super) fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut batch = TxBatch::new(8);
        let mut frames = Vec::new();
        loop {
            let more = self.shard.tx(&mut batch);
            batch.drain(|segment| frames.push(segment.to_vec()));
            if !more {
                return frames;
            }
        }
    }

    pub(super) fn sent(&mut self) -> Vec<Sent> {
        self.frames().iter().map(|frame| read(frame)).collect()
    }

    /// Makes the host send to a neighbour: it is pinged from there, by a frame that says nothing of
    /// where the neighbour is.
    pub(super) fn ping(&mut self, over: Over, from: u16) -> Vec<Sent> {
        self.pings += 1;
        let frame = ping(address(over, from), self.pings);
        self.take(&frame)
    }

    pub(super) fn state(&self, over: Over, number: u16) -> Option<NeighbourState> {
        let neighbours = self.shard.link().expect("an Ethernet").neighbours();
        neighbours.get(&address(over, number)).map(|(state, _)| state)
    }

    pub(super) fn counters(&self) -> crate::link::LinkCounters {
        *self.shard.link().expect("an Ethernet").counters()
    }

    pub(super) fn neighbours(&self) -> &crate::link::neighbours::Neighbours {
        self.shard.link().expect("an Ethernet").neighbours()
    }
}

pub(super) fn frame(to: MacAddress, from: MacAddress, kind: EtherType, packet: &[u8]) -> Vec<u8> {
    let mut frame = EthernetHeader { dst: to, src: from, ether_type: kind }.emit().to_vec();
    frame.extend_from_slice(packet);
    frame
}

/// The neighbour asks for the host's address.
pub(super) fn asks(over: Over, number: u16, mac: MacAddress) -> Vec<u8> {
    match over {
        Over::V4 => arp(ArpOperation::Request, MacAddress::BROADCAST, number, mac, 2),
        Over::V6 => {
            let target = v6(address(over, 2));
            let message = NdpMessage::NeighborSolicitation { target, source_link_layer: Some(mac) };
            ndp(v6(address(over, number)), solicited_node(target), mac, &message)
        }
    }
}

/// The neighbour tells the host where it is, as an answer.
pub(super) fn answers(over: Over, number: u16, mac: MacAddress) -> Vec<u8> {
    match over {
        Over::V4 => arp(ArpOperation::Reply, OURS, number, mac, 2),
        Over::V6 => {
            let flags = NeighborFlags { router: false, solicited: true, overrides: true };
            advertises(number, Some(mac), flags)
        }
    }
}

/// The neighbour tells everybody where it is.
pub(super) fn announces(over: Over, number: u16, mac: MacAddress) -> Vec<u8> {
    match over {
        Over::V4 => arp(ArpOperation::Request, MacAddress::BROADCAST, number, mac, number),
        Over::V6 => {
            let flags = NeighborFlags { router: false, solicited: false, overrides: true };
            advertises(number, Some(mac), flags)
        }
    }
}

pub(super) fn advertises(number: u16, mac: Option<MacAddress>, flags: NeighborFlags) -> Vec<u8> {
    let src = v6(address(Over::V6, number));
    let dst = if flags.solicited { v6(address(Over::V6, 2)) } else { ALL_NODES };
    let message = NdpMessage::NeighborAdvertisement { target: src, flags, target_link_layer: mac };
    ndp(src, dst, station(number), &message)
}

pub(super) fn arp(
    operation: ArpOperation,
    to: MacAddress,
    number: u16,
    mac: MacAddress,
    target: u16,
) -> Vec<u8> {
    let v4 = |number| Ipv4Addr::from(address(Over::V4, number).v4_bytes());
    let sender_ip = if number == 0 { Ipv4Addr::UNSPECIFIED } else { v4(number) };
    let packet = ArpPacket {
        operation,
        sender_mac: mac,
        sender_ip,
        target_mac: MacAddress::default(),
        target_ip: v4(target),
    };
    frame(to, mac, EtherType::ARP, &packet.emit())
}

pub(super) fn ndp(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    from: MacAddress,
    message: &NdpMessage<'_>,
) -> Vec<u8> {
    let mut icmp = vec![0; message.wire_len()];
    message.emit(src, dst, &mut icmp);
    let to = if dst.is_multicast() { MacAddress::of_ipv6_multicast(dst) } else { OURS };
    frame(to, from, EtherType::IPV6, &packet_v6(src, dst, 255, &icmp))
}

pub(super) fn packet_v6(src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8, icmp: &[u8]) -> Vec<u8> {
    let header =
        Ipv6Header { hop_limit, ..Ipv6Header::new(src, dst, Protocol::ICMPV6, icmp.len()) };
    let mut packet = vec![0; 40];
    header.emit(&mut packet);
    packet.extend_from_slice(icmp);
    packet
}

/// An echo request to the host, from a station that no other asks for.
pub(super) fn ping(from: Address, sequence: u16) -> Vec<u8> {
    let mut icmp = [0; 16];
    let data = &[7; 8];
    let dst = server_addr(if from.is_v4() { Over::V4 } else { Over::V6 });
    if from.is_v4() {
        IcmpMessage::EchoRequest { identifier: 1, sequence, data }.emit(&mut icmp);
        let header =
            Ipv4Header::new(from.v4_bytes().into(), dst.v4_bytes().into(), Protocol::ICMP, 16);
        let mut packet = [0; 36];
        header.emit(&mut packet);
        packet[20..].copy_from_slice(&icmp);
        return frame(OURS, station(0xffff), EtherType::IPV4, &packet);
    }
    let (src, dst) = (v6(from), v6(dst));
    Icmpv6Message::EchoRequest { identifier: 1, sequence, data }.emit(src, dst, &mut icmp);
    frame(OURS, station(0xffff), EtherType::IPV6, &packet_v6(src, dst, 64, &icmp))
}

/// Reads a frame of the host's. Everything in it must fit together.
pub(super) fn read(frame: &[u8]) -> Sent {
    let (header, packet) = EthernetHeader::parse(frame).expect("an Ethernet header");
    assert_eq!(header.src, OURS);
    let to = (!header.dst.is_multicast()).then_some(header.dst);
    if header.ether_type == EtherType::ARP {
        let arp = ArpPacket::parse(packet).expect("an ARP packet");
        if arp.sender_ip.is_unspecified() {
            assert_eq!((arp.sender_mac, to), (OURS, None));
            return Sent::Probe(arp.target_ip.into());
        }
        // Its own, or the one that comes and goes in `changing.rs`.
        let own = [server_addr(Over::V4), address(Over::V4, 3)];
        assert!(arp.sender_mac == OURS && own.contains(&arp.sender_ip.into()), "{arp:?}");
        return match (arp.operation, to) {
            (ArpOperation::Reply, to) => Sent::Answer(to.expect("an answer to one")),
            (_, None) if arp.sender_ip == arp.target_ip => Sent::Announce(arp.sender_ip.into()),
            (_, to) => Sent::Ask(arp.target_ip.into(), to),
        };
    }
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    if ip.src.is_v4() {
        return match IcmpMessage::parse(payload) {
            Ok(IcmpMessage::EchoReply { sequence, .. }) => Sent::Echo(sequence, header.dst),
            other => panic!("{other:?}"),
        };
    }
    match Icmpv6Message::parse(v6(ip.src), v6(ip.dst), payload).expect("a right checksum") {
        Icmpv6Message::EchoReply { sequence, .. } => Sent::Echo(sequence, header.dst),
        Icmpv6Message::NeighborDiscovery { message } => read_ndp(&ip, message, header.dst),
        other => panic!("{other:?}"),
    }
}

fn read_ndp(ip: &IpHeader, message: &[u8], to: MacAddress) -> Sent {
    let (src, dst) = (v6(ip.src), v6(ip.dst));
    if dst.is_multicast() {
        assert_eq!(to, MacAddress::of_ipv6_multicast(dst));
    }
    match NdpMessage::parse(src, dst, ip.hop_limit, message).expect("a valid message") {
        NdpMessage::NeighborSolicitation { target, source_link_layer: None } => {
            assert_eq!((src, dst), (Ipv6Addr::UNSPECIFIED, solicited_node(target)));
            Sent::Probe(target.into())
        }
        NdpMessage::NeighborSolicitation { target, source_link_layer } => {
            assert_eq!(source_link_layer, Some(OURS));
            let one = (!to.is_multicast()).then_some(to);
            assert_eq!(dst, if one.is_some() { target } else { solicited_node(target) });
            Sent::Ask(target.into(), one)
        }
        NdpMessage::NeighborAdvertisement { target, flags, target_link_layer } => {
            assert_eq!((src, target_link_layer), (target, Some(OURS)));
            assert_eq!((flags.solicited, flags.overrides), (dst != ALL_NODES, true));
            if flags.solicited { Sent::Answer(to) } else { Sent::Announce(target.into()) }
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn v6(addr: Address) -> Ipv6Addr {
    Ipv6Addr::from(*addr.as_bytes())
}
