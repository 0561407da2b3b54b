//! The link layer of a host on Ethernet: the header of each frame, and which station has which
//! address.
//!
//! What arrives is opened: the header goes, frames for other stations are dropped,
//! and what neighbours say of themselves (`arp`, `ndp`) is heard before the internet layer sees
//! it. What leaves is addressed: its destination leads to a next hop and that to a
//! neighbour; if the neighbour's station is not known yet, the packet waits with it.
//!
//! Not here: routers' advertisements, redirects and prefixes (a host's routes are its
//! configuration), MLD (a switch that snoops must flood what no host reported), and confirmation by the layers above (RFC 4861 7.3.1): a neighbour in use costs one probe each
//! half minute. If a neighbour does not answer, connections whose segments waited for it learn of it
//! by a soft error, as from a router (RFC 4861 7.2.2); what ends them is their own time-outs.

mod arp;
mod counters;
mod dad;
mod gateways;
mod message;
mod ndp;
pub mod neighbours;
mod next_hops;
mod resolution;
mod tentative;

use alloc::collections::VecDeque;

use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::Tunables;
use whimbrel_wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use whimbrel_wire::{Address, ArpPacket};

use crate::error::ConfigError;
use crate::ip::{Addresses, FrameDrop, Routes};
use crate::{Medium, TxBatch};

pub use counters::LinkCounters;
use dad::Probing;
pub use dad::{AddressCheck, AddressConflict};
use gateways::Gateways;
use message::LinkMessage;
pub(crate) use ndp::NeighbourDiscovery;
use neighbours::Neighbours;
use next_hops::NextHopCache;
pub use tentative::CheckedAddress;
use tentative::Tentatives;
pub(crate) use tentative::TooManyChecks;

/// A host's place on an Ethernet.
#[derive(Debug)]
pub struct Link {
    mac: MacAddress,
    neighbours: Neighbours,
    hops: NextHopCache,
    gateways: Gateways,
    /// Messages of our own that wait to be sent.
    outbox: Outbox,
    /// The check of our addresses, during which they are not used.
    probing: Option<Probing>,
    /// Addresses that it may get, and that are asked for.
    tentative: Tentatives,
    /// When an address was last defended against another that has it.
    defended: Option<Instant>,
    /// The conflict of an address, until it is reported.
    conflict: Option<AddressConflict>,
    counters: LinkCounters,
}

/// The contents of a frame.
#[derive(Debug)]
pub(crate) enum FrameContents<'a> {
    /// An IP packet, sent to this station.
    Packet(&'a [u8]),
    /// A neighbour speaks of itself.
    LinkControl(LinkControl),
}

/// A message of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkControl {
    Arp(ArpPacket, FrameTarget),
    Ndp(NeighbourDiscovery),
}

/// To whom a frame was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameTarget {
    /// To this station's own address.
    Own,
    /// To a group of stations.
    Group,
}

impl Link {
    /// The link of a device of this medium; none where frames begin with their IP header.
    pub(crate) fn new(medium: Medium, addresses: &Addresses) -> Result<Option<Self>, ConfigError> {
        let Medium::Ethernet { mac } = medium else { return Ok(None) };
        if !is_station(mac) {
            return Err(ConfigError::Station(mac));
        }
        let mut outbox = Outbox::default();
        for (local, _) in addresses.numbered().take(ANNOUNCED) {
            outbox.push(LinkMessage::Announce { local });
        }
        Ok(Some(Self {
            mac,
            neighbours: Neighbours::new(mac),
            hops: NextHopCache::default(),
            gateways: Gateways::default(),
            outbox,
            probing: None,
            tentative: Tentatives::default(),
            defended: None,
            conflict: None,
            counters: LinkCounters::default(),
        }))
    }

    /// The Ethernet address of this host.
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// The neighbours and their Ethernet addresses, as far as they are known.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Counters of the link.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Takes the header off a frame.
    #[inline(never)]
    pub(crate) fn open<'a>(&self, frame: &'a [u8]) -> Result<FrameContents<'a>, FrameDrop> {
        let (header, packet) = EthernetHeader::parse(frame).map_err(|_| FrameDrop::Header)?;
        let cast = if header.dst == self.mac {
            FrameTarget::Own
        } else if header.dst.is_multicast() {
            FrameTarget::Group
        } else {
            return Err(FrameDrop::OtherStation);
        };
        // What bears our own address is an echo, or a forgery: an answer would go to ourselves.
        if !is_station(header.src) || header.src == self.mac {
            return Err(FrameDrop::LinkSource);
        }
        let version = match header.ether_type {
            EtherType::ARP => {
                let arp = ArpPacket::parse(packet).map_err(|_| FrameDrop::Arp)?;
                return Ok(FrameContents::LinkControl(LinkControl::Arp(arp, cast)));
            }
            EtherType::IPV4 => 4,
            EtherType::IPV6 => 6,
            _ => return Err(FrameDrop::EtherType),
        };
        // EtherType and version must agree: what follows reads the packet by its version alone.
        if packet.first().is_none_or(|first| first >> 4 != version) {
            return Err(FrameDrop::Header);
        }
        if ndp::is_discovery(packet) {
            return ndp::read(packet, header.src)
                .map(|said| FrameContents::LinkControl(LinkControl::Ndp(said)));
        }
        // RFC 5227 2.1: an address is not used before it is known that no other station has it.
        if self.probing.is_some() {
            return Err(FrameDrop::Tentative);
        }
        // RFC 1122 3.3.6: "A host SHOULD silently discard a datagram that is received via a link-layer
        // broadcast (see Section 2.4) but does not specify an IP multicast or broadcast destination
        // address." Those that do are not for this host.
        if cast == FrameTarget::Group {
            Err(FrameDrop::LinkGroup)
        } else {
            Ok(FrameContents::Packet(packet))
        }
    }

    /// Puts the header in front of a packet whose first [`EthernetHeader::LEN`] bytes were left
    /// free. `false` if it waits for its neighbour, or was dropped.
    // Of the functions that an IP link does not need, none is to stand among what it needs.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, routes: &Routes, tx: &mut TxSegment, now: Instant) -> bool {
        let Some((dst, ether_type)) = destination(tx) else { return false };
        // Before the station is known: a packet that waits for it needs only six bytes then.
        let header = EthernetHeader { dst: MacAddress::default(), src: self.mac, ether_type };
        tx.header_room()[..EthernetHeader::LEN].copy_from_slice(&header.emit());
        let Some(index) = self.next_hop(routes, &dst, now) else { return false };
        match self.neighbours.station(index, now) {
            Some(mac) => {
                readdress(tx, mac);
                true
            }
            None => {
                self.neighbours.park(index, core::mem::take(tx), &mut self.counters);
                false
            }
        }
    }

    /// The way to `dst` does not seem to work: its neighbour has to confirm that it is there.
    pub(crate) fn suspect(&mut self, routes: &Routes, dst: &Address, now: Instant) {
        let way = self.gateways.choose(routes.routes_to(dst));
        let hop = way.and_then(|way| way.gateway).unwrap_or(*dst);
        if let Some(index) = self.neighbours.find(&hop) {
            self.neighbours.suspect(index, now);
        }
    }

    /// The neighbour that takes packets to `dst`; sought if it is not known. If there is none, that is counted.
    fn next_hop(&mut self, routes: &Routes, dst: &Address, now: Instant) -> Option<u32> {
        // The cache would keep traffic with a gateway whose better is to be tried again.
        if self.gateways.may_probe(now) {
            self.hops = NextHopCache::default();
        }
        if let Some(index) = self.hops.find(dst, |index, hop| self.neighbours.is_at(index, hop)) {
            return Some(index);
        }
        // No socket sends to a group, and seeking it as a neighbour would ask every station.
        if dst.is_multicast_or_broadcast() {
            self.counters.out_no_route += 1;
            return None;
        }
        let candidates = routes.routes_to(dst);
        // A dead gateway is sought while the way that works is used, so that no packet waits for its answer.
        if let Some(better) = self.gateways.pop_due(candidates, now) {
            self.find_or_seek(better, now);
        }
        let Some(way) = self.gateways.choose(candidates) else {
            self.counters.out_no_route += 1;
            return None;
        };
        let hop = way.gateway.unwrap_or(*dst);
        let index = self.find_or_seek(hop, now)?;
        self.hops.put(*dst, hop, index);
        Some(index)
    }

    fn find_or_seek(&mut self, hop: Address, now: Instant) -> Option<u32> {
        let known = self.neighbours.find(&hop);
        known.or_else(|| self.neighbours.seek(hop, now, &mut self.outbox, &mut self.counters))
    }

    /// Gateways did not answer: what waited for them takes another way, where there is one.
    fn pass_over_silent(&mut self, routes: &Routes, now: Instant) {
        let mut one_died = false;
        while let Some(addr) = self.neighbours.pop_silent() {
            // A silent host is its own affair; a silent gateway is many hosts'.
            if routes.is_gateway(&addr) {
                self.gateways.on_silence(addr, now);
                self.counters.gateways_failed += 1;
                one_died = true;
            }
        }
        // Once for all that died: each pass looks at every packet that waited.
        if one_died {
            self.redirect_failed(routes, now);
        }
    }

    fn redirect_failed(&mut self, routes: &Routes, now: Instant) {
        for mut packet in self.neighbours.take_failed() {
            let way = destination(&packet)
                .and_then(|(dst, _)| self.gateways.choose(routes.routes_to(&dst)))
                .filter(|way| way.gateway.is_some() && !self.gateways.is_dead(way));
            if way.is_none() {
                self.neighbours.give_up(packet);
            } else if self.transmit(routes, &mut packet, now) {
                self.neighbours.make_ready(packet);
            }
        }
    }

    /// A neighbour spoke: if it is a gateway that did not answer, traffic goes back to it.
    fn welcome_back(&mut self) {
        let neighbours = &self.neighbours;
        let known = |addr: &Address| neighbours.get(addr).is_some_and(|(_, mac)| mac.is_some());
        if !self.gateways.is_empty() && self.gateways.revive(known) {
            self.hops = NextHopCache::default();
        }
    }
}

/// Calls of its host.
impl Link {
    /// From now on it goes by these rules.
    pub(crate) fn set_rules(&mut self, tunables: &Tunables) {
        self.neighbours.set_claims(tunables.neighbour_claims);
    }

    /// This host has an address more, which is announced; while its addresses are asked for, it is asked
    /// for with them.
    pub(crate) fn on_address_added(&mut self, local: u16) {
        self.forget_ways();
        if self.probing.is_none() {
            self.outbox.push(LinkMessage::Announce { local });
        }
    }

    /// It has one less: what was to be said of it is not said.
    pub(crate) fn on_address_removed(&mut self, local: u16) {
        self.forget_ways();
        self.outbox.0.retain(|message| message.local() != Some(local));
    }

    /// Addresses or routes are others than they were: each next hop is chosen anew.
    pub(crate) fn forget_ways(&mut self) {
        self.hops = NextHopCache::default();
    }

    /// Another station that turned out to have an address of ours, once.
    pub(crate) fn take_conflict(&mut self) -> Option<AddressConflict> {
        self.conflict.take()
    }

    /// Acts upon what a neighbour said.
    pub(crate) fn process_control(
        &mut self,
        addresses: &Addresses,
        heard: LinkControl,
        now: Instant,
    ) -> Result<(), FrameDrop> {
        if self.tentative.is_asking() {
            self.note_claim(&heard);
        }
        if self.probing.is_some() {
            match heard {
                LinkControl::Arp(packet, _) => self.check_arp(addresses, &packet),
                LinkControl::Ndp(said) => self.check_ndp(addresses, &said),
            }
            return Err(FrameDrop::Tentative);
        }
        let heard = match heard {
            LinkControl::Arp(packet, cast) => self.process_arp(addresses, &packet, cast, now),
            LinkControl::Ndp(said) => self.process_ndp(addresses, &said, now),
        };
        self.welcome_back();
        heard
    }

    /// Fills `batch` with what the link itself has to send: packets whose neighbour was found, then
    /// questions and answers.
    #[inline(never)]
    pub(crate) fn tx(&mut self, addresses: &Addresses, batch: &mut TxBatch) {
        while !batch.is_full() {
            // Packets before questions: they waited already, and the questions may be many.
            let Some(packet) = self.neighbours.pop_ready() else { break };
            batch.fill(|tx| {
                *tx = packet;
                true
            });
        }
        while !batch.is_full() {
            let Some(message) = self.outbox.0.pop_front() else { break };
            batch.fill(|tx| message.write(self.mac, addresses, tx));
        }
    }

    /// True if [`Link::tx`] has something to send.
    pub(crate) fn waits(&self) -> bool {
        self.neighbours.has_ready() || !self.outbox.0.is_empty()
    }

    /// Does up to `left` of what is due, and takes it from `left`.
    #[inline(never)]
    pub(crate) fn advance(
        &mut self,
        addresses: &Addresses,
        routes: &Routes,
        now: Instant,
        left: &mut usize,
    ) {
        self.advance_check(addresses, now);
        self.advance_tentative(now);
        self.neighbours.advance(now, left, &mut self.outbox, &mut self.counters);
        self.pass_over_silent(routes, now);
    }

    /// The next packet that could not leave because its neighbour did not answer.
    #[inline(never)]
    pub(crate) fn pop_failed(&mut self) -> Option<TxSegment> {
        let packet = self.neighbours.pop_failed()?;
        self.counters.out_neighbour_failed += 1;
        Some(packet)
    }

    /// When [`Link::advance`] must be called at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let checks = [self.check_deadline(), self.tentative.next_deadline()];
        checks.into_iter().chain([self.neighbours.next_deadline()]).flatten().min()
    }
}

/// A bounded queue: who provokes more answers between two bursts out gets none.
#[derive(Debug, Default)]
struct Outbox(VecDeque<LinkMessage>);

impl Outbox {
    /// As many messages as four bursts have frames.
    const MOST: usize = 256;

    /// Queues it; returns whether there was room.
    fn push(&mut self, message: LinkMessage) -> bool {
        let room = self.0.len() < Self::MOST;
        if room {
            self.0.push_back(message);
        }
        room
    }
}

/// True if this can be one station's address.
fn is_station(mac: MacAddress) -> bool {
    !mac.is_multicast() && mac != MacAddress::default()
}

/// Writes the receiving station into a frame.
fn readdress(tx: &mut TxSegment, mac: MacAddress) {
    tx.header_room()[..6].copy_from_slice(&mac.0);
}

/// Returns the destination and the type of a packet behind the room for its link header.
fn destination(tx: &TxSegment) -> Option<(Address, EtherType)> {
    let packet = tx.header().get(EthernetHeader::LEN..)?;
    let is_v4 = packet.first()? >> 4 == 4;
    Some((destination_of(packet)?, if is_v4 { EtherType::IPV4 } else { EtherType::IPV6 }))
}

/// Returns the destination of an IP packet, of which at least the header is there.
pub(crate) fn destination_of(packet: &[u8]) -> Option<Address> {
    match packet.first()? >> 4 {
        4 => Some(Address::from_v4_bytes(*packet.get(16..)?.first_chunk::<4>()?)),
        6 => Some(Address::from_bytes(*packet.get(24..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Addresses announced at the start: one burst. A host with more of them is found by
/// asking, as any other.
const ANNOUNCED: usize = 64;
