//! Messages of a host about addresses: ARP for IPv4, Neighbour Discovery for IPv6.

use core::net::{Ipv4Addr, Ipv6Addr};

use whimbrel_base::packet::TxSegment;
use whimbrel_wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use whimbrel_wire::ndp::{NdpMessage, NeighborFlags, solicited_node};
use whimbrel_wire::{Address, ArpOperation, ArpPacket, Family, Ipv6Header, Protocol};

use crate::ip::Addresses;

/// A message that waits to be sent; it is made when it is its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkMessage {
    /// The question for the station of `target`, to the station that had it, or to all.
    Ask { target: Address, of: Option<MacAddress> },
    /// We have our address number `local`: told to the station and address that asked. An
    /// unspecified asker is about to take an address and must learn that it is taken.
    Answer { local: u16, to: MacAddress, asker: Address },
    /// We have our address number `local`: told to all.
    Announce { local: u16 },
    /// The question for another station with `target`, which is ours or is to be; to all, from no address (RFC 5227 1.1,
    /// RFC 4862 5.4.2).
    Probe { target: Address },
}

/// An ARP packet or Neighbour Discovery message, and where it goes.
struct LinkPacket {
    to: MacAddress,
    text: LinkBody,
}

enum LinkBody {
    Arp(ArpPacket),
    Ndp { src: Ipv6Addr, dst: Ipv6Addr, message: NdpMessage<'static> },
}

impl LinkMessage {
    /// The number of the address of ours that it speaks of.
    pub(super) const fn local(&self) -> Option<u16> {
        match self {
            Self::Answer { local, .. } | Self::Announce { local } => Some(*local),
            Self::Ask { .. } | Self::Probe { .. } => None,
        }
    }

    /// Writes the whole frame. `false` if this host has no address to speak from.
    pub(super) fn write(&self, mac: MacAddress, addresses: &Addresses, tx: &mut TxSegment) -> bool {
        let letter = match *self {
            Self::Ask { target, of } => {
                let source = addresses.source_for(&target).and_then(|index| addresses.get(index));
                source.map(|source| ask(mac, source, &target, of))
            }
            Self::Answer { local, to, asker } => {
                addresses.get(local).map(|local| answer(mac, local, to, &asker))
            }
            Self::Announce { local } => addresses.get(local).map(|local| announce(mac, local)),
            Self::Probe { target } => Some(probe(mac, &target)),
        };
        let Some(LinkPacket { to, text }) = letter else { return false };
        let len = match text {
            LinkBody::Arp(packet) => write_arp(&packet, tx),
            LinkBody::Ndp { src, dst, message } => write_ndp(src, dst, &message, tx),
        };
        let ether_type = match text {
            LinkBody::Arp(_) => EtherType::ARP,
            LinkBody::Ndp { .. } => EtherType::IPV6,
        };
        let header = EthernetHeader { dst: to, src: mac, ether_type };
        tx.header_room()[..EthernetHeader::LEN].copy_from_slice(&header.emit());
        tx.set_header_len(len);
        true
    }
}

fn ask(mac: MacAddress, source: &Address, target: &Address, of: Option<MacAddress>) -> LinkPacket {
    match target.family() {
        Family::V4 => LinkPacket {
            to: of.unwrap_or(MacAddress::BROADCAST),
            text: LinkBody::Arp(ArpPacket {
                operation: ArpOperation::Request,
                sender_mac: mac,
                sender_ip: v4(source),
                target_mac: MacAddress::default(),
                target_ip: v4(target),
            }),
        },
        Family::V6 => {
            let target = v6(target);
            let group = solicited_node(target);
            let dst = if of.is_some() { target } else { group };
            // RFC 4861 4.3: the source link-layer address "MUST be included in multicast
            // solicitations and SHOULD be included in unicast solicitations".
            let message = NdpMessage::NeighborSolicitation { target, source_link_layer: Some(mac) };
            let to = of.unwrap_or(MacAddress::of_ipv6_multicast(group));
            LinkPacket { to, text: LinkBody::Ndp { src: v6(source), dst, message } }
        }
    }
}

fn probe(mac: MacAddress, local: &Address) -> LinkPacket {
    match local.family() {
        Family::V4 => ask(mac, &Ipv4Addr::UNSPECIFIED.into(), local, None),
        Family::V6 => {
            let target = v6(local);
            let dst = solicited_node(target);
            // RFC 4861 4.3: the option "MUST NOT be included when the source IP address is the
            // unspecified address."
            let message = NdpMessage::NeighborSolicitation { target, source_link_layer: None };
            let text = LinkBody::Ndp { src: Ipv6Addr::UNSPECIFIED, dst, message };
            LinkPacket { to: MacAddress::of_ipv6_multicast(dst), text }
        }
    }
}

fn answer(mac: MacAddress, local: &Address, to: MacAddress, asker: &Address) -> LinkPacket {
    match local.family() {
        Family::V4 => LinkPacket {
            to,
            text: LinkBody::Arp(ArpPacket {
                operation: ArpOperation::Reply,
                sender_mac: mac,
                sender_ip: v4(local),
                target_mac: to,
                target_ip: v4(asker),
            }),
        },
        // RFC 4861 7.2.4: "If the source of the solicitation is the unspecified address, the node
        // MUST set the Solicited flag to zero and multicast the advertisement to the all-nodes
        // address."
        Family::V6 if asker.is_unspecified() => announce(mac, local),
        Family::V6 => {
            let flags = NeighborFlags { router: false, solicited: true, overrides: true };
            LinkPacket { to, text: advertise(mac, local, v6(asker), flags) }
        }
    }
}

/// RFC 5227 2.3 and RFC 4861 7.2.6.
fn announce(mac: MacAddress, local: &Address) -> LinkPacket {
    match local.family() {
        Family::V4 => LinkPacket {
            to: MacAddress::BROADCAST,
            text: LinkBody::Arp(ArpPacket {
                operation: ArpOperation::Request,
                sender_mac: mac,
                sender_ip: v4(local),
                target_mac: MacAddress::default(),
                target_ip: v4(local),
            }),
        },
        Family::V6 => {
            let flags = NeighborFlags { router: false, solicited: false, overrides: true };
            let to = MacAddress::of_ipv6_multicast(ALL_NODES);
            LinkPacket { to, text: advertise(mac, local, ALL_NODES, flags) }
        }
    }
}

fn advertise(mac: MacAddress, local: &Address, dst: Ipv6Addr, flags: NeighborFlags) -> LinkBody {
    let target = v6(local);
    let message = NdpMessage::NeighborAdvertisement { target, flags, target_link_layer: Some(mac) };
    LinkBody::Ndp { src: target, dst, message }
}

/// Writes the packet behind its link header; returns the bytes of both.
fn write_arp(packet: &ArpPacket, tx: &mut TxSegment) -> usize {
    let end = EthernetHeader::LEN + ArpPacket::LEN;
    tx.header_room()[EthernetHeader::LEN..end].copy_from_slice(&packet.emit());
    end
}

/// Writes IP header and message behind their link header; returns the bytes of all.
fn write_ndp(src: Ipv6Addr, dst: Ipv6Addr, message: &NdpMessage<'_>, tx: &mut TxSegment) -> usize {
    let header = Ipv6Header {
        hop_limit: NdpMessage::HOP_LIMIT,
        ..Ipv6Header::new(src, dst, Protocol::ICMPV6, message.wire_len())
    };
    header.emit(&mut tx.header_room()[EthernetHeader::LEN..]);
    let at = EthernetHeader::LEN + Ipv6Header::LEN;
    tx.transport_offset = at as u8;
    at + message.emit(src, dst, &mut tx.header_room()[at..])
}

fn v4(addr: &Address) -> Ipv4Addr {
    addr.v4_bytes().into()
}

fn v6(addr: &Address) -> Ipv6Addr {
    (*addr.as_bytes()).into()
}

/// Every node of the link (RFC 4291 2.7.1).
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
