//! Neighbour Discovery messages that arrive (RFC 4861 7.2). What routers say is not asked for and not
//! listened to: a host's routes are its configuration.

use core::net::Ipv6Addr;

use whimbrel_base::Instant;
use whimbrel_wire::ndp::{NdpMessage, NeighborFlags, solicited_node};
use whimbrel_wire::{Address, Icmpv6Message, Ipv6Header, MacAddress, ParseError, Protocol};

use super::message::{ALL_NODES, LinkMessage};
use super::neighbours::Advertised;
use super::{Link, is_station};
use crate::ip::{Addresses, FrameDrop};

/// A valid message of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighbourDiscovery {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    /// The station that sent the frame.
    station: MacAddress,
    target: Ipv6Addr,
    kind: DiscoveryKind,
}

#[derive(Clone, Copy, Debug)]
enum DiscoveryKind {
    Asks(Option<MacAddress>),
    Has(Option<MacAddress>, NeighborFlags),
}

impl NeighbourDiscovery {
    /// True if it says that its sender has the target, or is about to take it.
    pub(super) fn claims_target(&self) -> bool {
        matches!(self.kind, DiscoveryKind::Has(..)) || self.src.is_unspecified()
    }

    pub(super) fn target(&self) -> Ipv6Addr {
        self.target
    }

    /// The station that speaks of itself.
    pub(super) fn station(&self) -> MacAddress {
        match self.kind {
            DiscoveryKind::Has(Some(mac), _) => mac,
            _ => self.station,
        }
    }
}

/// True if an IPv6 packet is a Neighbour Discovery message. One behind extension headers is not
/// recognised and dropped later: RFC 6980 forbids fragments, and no host sends the others.
pub(super) fn is_discovery(packet: &[u8]) -> bool {
    let is = |at: usize, test: fn(u8) -> bool| packet.get(at).is_some_and(|byte| test(*byte));
    is(0, |version| version >> 4 == 6)
        && is(6, |next| next == Protocol::ICMPV6.0)
        && is(Ipv6Header::LEN, |kind| (133..=137).contains(&kind))
}

/// Reads it, from a frame of `station`.
pub(super) fn read(packet: &[u8], station: MacAddress) -> Result<NeighbourDiscovery, FrameDrop> {
    let (ip, payload) = Ipv6Header::parse(packet).map_err(|_| FrameDrop::Header)?;
    let Icmpv6Message::NeighborDiscovery { message } =
        Icmpv6Message::parse(ip.src, ip.dst, payload).map_err(|_| FrameDrop::IcmpHeader)?
    else {
        return Err(FrameDrop::IcmpType);
    };
    let (target, kind) = match NdpMessage::parse(ip.src, ip.dst, ip.hop_limit, message) {
        Ok(NdpMessage::NeighborSolicitation { target, source_link_layer }) => {
            (target, DiscoveryKind::Asks(source_link_layer))
        }
        Ok(NdpMessage::NeighborAdvertisement { target, flags, target_link_layer }) => {
            (target, DiscoveryKind::Has(target_link_layer, flags))
        }
        Ok(_) | Err(ParseError::UnknownType) => return Err(FrameDrop::IcmpType),
        Err(_) => return Err(FrameDrop::Discovery),
    };
    let mac = match kind {
        DiscoveryKind::Asks(mac) | DiscoveryKind::Has(mac, _) => mac,
    };
    if mac.is_some_and(|mac| !is_station(mac)) || ip.src.is_multicast() {
        return Err(FrameDrop::Discovery);
    }
    Ok(NeighbourDiscovery { src: ip.src, dst: ip.dst, station, target, kind })
}

impl Link {
    /// Processes a Neighbor Discovery message that was found valid.
    pub(super) fn process_ndp(
        &mut self,
        addresses: &Addresses,
        heard: &NeighbourDiscovery,
        now: Instant,
    ) -> Result<(), FrameDrop> {
        let ours = addresses.index_of(&heard.dst.into()).is_some();
        let target = addresses.index_of(&heard.target.into());
        let group = heard.dst == ALL_NODES
            || (target.is_some() && heard.dst == solicited_node(heard.target));
        if !ours && !group {
            return Err(FrameDrop::OtherHost);
        }
        // It speaks from an address of ours: a rival for it, or our own frame, reflected.
        if let Some(local) = addresses.index_of(&heard.src.into()) {
            match heard.kind {
                DiscoveryKind::Has(..) => {
                    self.on_conflict(local, heard.src.into(), heard.station(), now);
                }
                DiscoveryKind::Asks(_) => self.counters.conflicts += 1,
            }
            return Err(FrameDrop::Martian);
        }
        match (heard.kind, target) {
            (DiscoveryKind::Asks(mac), Some(local)) => {
                self.on_solicitation(heard, mac, local, now);
                Ok(())
            }
            (DiscoveryKind::Asks(_), None) => Err(FrameDrop::OtherHost),
            // Another station claims an address of ours.
            (DiscoveryKind::Has(..), Some(local)) => {
                self.on_conflict(local, heard.target.into(), heard.station(), now);
                Err(FrameDrop::Martian)
            }
            (DiscoveryKind::Has(mac, flags), None) => {
                let told =
                    Advertised { mac, solicited: flags.solicited, overrides: flags.overrides };
                self.on_told(&Address::from(heard.target), told, now);
                Ok(())
            }
        }
    }

    /// RFC 4861 7.2.3 and 7.2.4. The answer goes to the station that is named, or else to the one
    /// that sent the frame: RFC 4861 would have it sought first, which the next packet does.
    fn on_solicitation(
        &mut self,
        heard: &NeighbourDiscovery,
        mac: Option<MacAddress>,
        local: u16,
        now: Instant,
    ) {
        let asker = Address::from(heard.src);
        if let Some(mac) = mac {
            self.on_asked(asker, mac, now);
        }
        self.answer(LinkMessage::Answer { local, to: mac.unwrap_or(heard.station), asker });
    }
}
