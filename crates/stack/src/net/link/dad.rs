//! Detection of other stations with our addresses, before they are used (RFC 5227 2.1, RFC 4862
//! 5.4).
//!
//! Both RFCs wait longer: RFC 5227 four to nine seconds, RFC 4862 up to two. A program that begins to
//! serve is not worth that; on wires that carry Ethernet an answer takes milliseconds. Three questions,
//! [`PAUSE`] apart, and as long for the last answer; all addresses together.

use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::{Address, ArpPacket, MacAddress};

use super::ndp::NeighbourDiscovery;
use super::{ANNOUNCED, Link, LinkMessage, is_station};
use crate::ip::Addresses;

/// The state of the check of a host's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressCheck {
    /// They are in use: no other station had them when they were asked for, or none was asked.
    Done,
    /// They are asked for: nothing else is sent and nothing answered.
    UnderWay,
    /// Another station has one of them: nothing is sent and nothing answered.
    Conflict(AddressConflict),
}

/// Two stations with one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressConflict {
    /// The address, which is the host's, too.
    pub addr: Address,
    /// The other station that says that it has it.
    pub station: MacAddress,
}

/// Asking whether our addresses are free.
#[derive(Debug)]
pub(super) struct Probing {
    asked: u8,
    next: Instant,
    conflict: Option<AddressConflict>,
}

impl Link {
    /// Begins to ask whether our addresses are free; they are not used until that is decided.
    pub(crate) fn begin_check(&mut self, now: Instant) {
        // They are announced when they are known to be ours.
        self.outbox.0.clear();
        self.probing = Some(Probing { asked: 0, next: now, conflict: None });
    }

    pub(crate) fn address_check(&self) -> AddressCheck {
        match &self.probing {
            None => AddressCheck::Done,
            Some(Probing { conflict: None, .. }) => AddressCheck::UnderWay,
            Some(Probing { conflict: Some(conflict), .. }) => AddressCheck::Conflict(*conflict),
        }
    }

    pub(super) fn check_deadline(&self) -> Option<Instant> {
        let probing = self.probing.as_ref()?;
        probing.conflict.is_none().then_some(probing.next)
    }

    /// Asks once more, or is done.
    pub(super) fn advance_check(&mut self, addresses: &Addresses, now: Instant) {
        if self.check_deadline().is_none_or(|next| now < next) {
            return;
        }
        let Some(probing) = &mut self.probing else { return };
        let done = probing.asked >= PROBES;
        probing.asked += 1;
        probing.next = now + PAUSE;
        if done {
            self.probing = None;
        }
        for (local, own) in addresses.numbered().take(ANNOUNCED) {
            self.outbox.push(match done {
                false => LinkMessage::Probe { target: own.addr },
                true => LinkMessage::Announce { local },
            });
        }
    }

    /// RFC 5227 2.1.1: "the host receives any ARP packet (Request *or* Reply) [...] where the packet's
    /// 'sender IP address' is the address being probed for", and "any ARP Probe where the packet's
    /// 'target IP address' is the address being probed for".
    pub(super) fn check_arp(&mut self, addresses: &Addresses, packet: &ArpPacket) {
        let (claimed, station) = claimed_by_arp(packet);
        self.process_claim(addresses, claimed, station);
    }

    /// RFC 4862 5.4.3, 5.4.4: "If the target address is tentative, the tentative address is not unique",
    /// for an advertisement, or a solicitation from the unspecified address.
    pub(super) fn check_ndp(&mut self, addresses: &Addresses, heard: &NeighbourDiscovery) {
        if heard.claims_target() {
            self.process_claim(addresses, heard.target().into(), heard.station());
        }
    }

    fn process_claim(&mut self, addresses: &Addresses, addr: Address, station: MacAddress) {
        let theirs = is_station(station) && station != self.mac;
        if let Some(probing) = &mut self.probing
            && probing.conflict.is_none()
            && theirs
            && addresses.index_of(&addr).is_some()
        {
            self.counters.conflicts += 1;
            probing.conflict = Some(AddressConflict { addr, station });
            self.outbox.0.clear();
        }
    }
}

/// Which address an ARP packet says that its sender has, or is about to take.
pub(super) fn claimed_by_arp(packet: &ArpPacket) -> (Address, MacAddress) {
    let sender = Address::from(packet.sender_ip);
    let claimed = if sender.is_unspecified() { packet.target_ip.into() } else { sender };
    (claimed, packet.sender_mac)
}

/// RFC 5227 1.1: PROBE_NUM. RFC 4862 asks once; a frame may be lost.
pub(super) const PROBES: u8 = 3;
/// Between two questions, and behind the last: 0.9 s in all.
pub(super) const PAUSE: Duration = Duration::from_millis(300);
