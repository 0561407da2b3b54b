//! Streams from anybody on the link: who is where, asked and told by stations that do not exist.

use std::net::{Ipv4Addr, Ipv6Addr};

use whimbrel_base::Instant;
use whimbrel_stack::{InterfaceAddress, Medium};
use whimbrel_tcp::Tunables;
use whimbrel_wire::ndp::{NeighborFlags, solicited_node};
use whimbrel_wire::{
    Address, ArpOperation, ArpPacket, EtherType, EthernetHeader, IcmpMessage, Ipv6Header,
    MacAddress, NdpMessage, Protocol,
};

use super::{Pace, Victim, message_from, numbers, shard};
use crate::Failure;
use crate::churn::{CLIENTS, SERVER, address};

impl Victim {
    /// A host on an Ethernet, with an address of each family.
    pub(super) fn on_ethernet() -> Result<Self, Failure> {
        let addresses = vec![
            InterfaceAddress { addr: address(SERVER), prefix_len: 8 },
            InterfaceAddress { addr: Address::from(v6(SERVER)), prefix_len: 64 },
        ];
        let shard = shard(Tunables::default(), Medium::Ethernet { mac: OURS }, addresses)?;
        let mut victim = Self::of(shard, Pace::Bursts);
        // The first question of a neighbour's, and the answer.
        victim.suffer(&[arp(ArpOperation::Request, 0, 0)]);
        if victim.shard.link().is_none_or(|link| link.neighbours().is_empty()) {
            return Err("no neighbour was found".into());
        }
        victim.now = Instant::from_millis(2);
        Ok(victim)
    }
}

/// ARP requests for the host's address, each from another station.
pub(super) fn arp_requests(_: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| arp(ArpOperation::Request, it, it)).collect()
}

/// Unrequested ARP replies.
pub(super) fn arp_replies(_: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| arp(ArpOperation::Reply, it, it)).collect()
}

/// Ever other stations claim the address of the neighbour that is known.
pub(super) fn arp_rivals(_: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| arp(ArpOperation::Request, 0, 1 + it)).collect()
}

pub(super) fn solicitations(_: &Victim) -> Vec<Vec<u8>> {
    let target = v6(SERVER);
    let of = |it: u32| {
        let source_link_layer = Some(station(it));
        let ask = NdpMessage::NeighborSolicitation { target, source_link_layer };
        ndp(it, solicited_node(target), &ask)
    };
    numbers().map(of).collect()
}

pub(super) fn advertisements(_: &Victim) -> Vec<Vec<u8>> {
    let flags = NeighborFlags { router: false, solicited: true, overrides: true };
    let of = |it: u32| {
        let (target, target_link_layer) = (v6(CLIENTS + it), Some(station(it)));
        let tell = NdpMessage::NeighborAdvertisement { target, flags, target_link_layer };
        ndp(it, v6(SERVER), &tell)
    };
    numbers().map(of).collect()
}

/// Echo requests in the names of ever other neighbours, whom the host has to seek before it answers.
pub(super) fn made_up(_: &Victim) -> Vec<Vec<u8>> {
    let of = |it: u32| {
        let data = [7; 56];
        let ask = IcmpMessage::EchoRequest { identifier: 1, sequence: it as u16, data: &data };
        around(OURS, 0, EtherType::IPV4, &message_from(1 + it, &ask))
    };
    numbers().map(of).collect()
}

/// An ARP packet of the first number's client, from the second's station.
fn arp(operation: ArpOperation, client: u32, at: u32) -> Vec<u8> {
    let packet = ArpPacket {
        operation,
        sender_mac: station(at),
        sender_ip: Ipv4Addr::from(address(CLIENTS + client).v4_bytes()),
        target_mac: OURS,
        target_ip: Ipv4Addr::from(address(SERVER).v4_bytes()),
    };
    let dst = if operation == ArpOperation::Request { MacAddress([0xff; 6]) } else { OURS };
    around(dst, at, EtherType::ARP, &packet.emit())
}

fn ndp(client: u32, dst: Ipv6Addr, message: &NdpMessage<'_>) -> Vec<u8> {
    let (src, mut bytes) = (v6(CLIENTS + client), vec![0; message.wire_len()]);
    message.emit(src, dst, &mut bytes);
    let mut packet = vec![0; Ipv6Header::LEN];
    let header = Ipv6Header::new(src, dst, Protocol::ICMPV6, bytes.len());
    Ipv6Header { hop_limit: NdpMessage::HOP_LIMIT, ..header }.emit(&mut packet);
    packet.extend(bytes);
    let mac = if dst.is_multicast() { MacAddress::of_ipv6_multicast(dst) } else { OURS };
    around(mac, client, EtherType::IPV6, &packet)
}

fn around(dst: MacAddress, from: u32, ether_type: EtherType, packet: &[u8]) -> Vec<u8> {
    let header = EthernetHeader { dst, src: station(from), ether_type };
    [&header.emit()[..], packet].concat()
}

fn station(number: u32) -> MacAddress {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddress([6, 0, a, b, c, d])
}

fn v6(host: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(host))
}

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
