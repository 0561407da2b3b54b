//! A host: its internet layer, and its link below that where the device has one.

use whimbrel_base::Instant;
use whimbrel_tcp::{Tunables, TxSegment};
use whimbrel_wire::{Address, EthernetHeader};

use crate::TxBatch;
use crate::ip::{ErrorReport, FrameDrop, IpLayer};
use crate::link::{AddressCheck, AddressConflict, Link, LinkControl, Unframed};

/// Everything of a host below its protocols.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its addresses, routes and packets.
    pub(crate) ip: IpLayer,
    /// Its Ethernet, if the device has one.
    pub(crate) link: Option<Link>,
}

impl Host {
    /// From now on the link goes by these rules.
    pub(crate) fn set_link_rules(&mut self, tunables: &Tunables) {
        if let Some(link) = &mut self.link {
            link.set_rules(tunables);
        }
    }

    /// What a frame carries.
    #[inline(always)]
    pub(crate) fn open<'a>(&self, frame: &'a [u8]) -> Result<Unframed<'a>, FrameDrop> {
        match &self.link {
            None => Ok(Unframed::Packet(frame)),
            Some(link) => link.open(frame),
        }
    }

    /// Begins to ask whether our addresses are free, where there is somebody to ask.
    pub(crate) fn begin_check(&mut self, now: Instant) {
        if let Some(link) = &mut self.link {
            link.begin_check(now);
        }
    }

    /// Whether our addresses may be used.
    pub(crate) fn address_check(&self) -> AddressCheck {
        self.link.as_ref().map_or(AddressCheck::Done, Link::address_check)
    }

    /// Another station that turned out to have an address of ours, once.
    pub(crate) fn take_conflict(&mut self) -> Option<AddressConflict> {
        self.link.as_mut()?.take_conflict()
    }

    /// Acts upon what a neighbour said.
    pub(crate) fn hear(&mut self, heard: LinkControl, now: Instant) -> Result<(), FrameDrop> {
        let Self { ip, link: Some(link) } = self else { return Err(FrameDrop::EtherType) };
        link.hear(&ip.addresses, heard, now)
    }

    /// Addresses a packet. `false` if it does not leave now.
    pub(crate) fn depart(&mut self, tx: &mut TxSegment, now: Instant) -> bool {
        match &mut self.link {
            None => true,
            Some(link) => link.depart(&self.ip.routes, tx, now),
        }
    }

    /// Nothing comes back from `dst` (RFC 9293 3.8.3, R1).
    pub(crate) fn doubt_path(&mut self, dst: &Address, now: Instant) {
        if let Some(link) = self.link.as_mut() {
            link.doubt(&self.ip.routes, dst, now);
        }
    }

    /// Fills `batch` with what the link itself has to send.
    pub(crate) fn tx_link(&mut self, batch: &mut TxBatch) {
        if let Some(link) = &mut self.link {
            link.tx(&self.ip.addresses, batch);
        }
    }

    /// Whether [`Host::tx_link`] has something to send.
    pub(crate) fn link_waits(&self) -> bool {
        self.link.as_ref().is_some_and(Link::waits)
    }

    /// Does up to `left` of what is due on the link, and takes it from `left`.
    pub(crate) fn advance_link(&mut self, now: Instant, left: &mut usize) {
        if let Some(link) = &mut self.link {
            link.advance(&self.ip.addresses, &self.ip.routes, now, left);
        }
    }

    /// What is to be told of the next packet that could not leave because its neighbour did not
    /// answer.
    pub(crate) fn pop_unreachable(&mut self) -> Option<ErrorReport> {
        loop {
            let packet = self.link.as_mut()?.pop_failed()?;
            let packet = packet.header().get(EthernetHeader::LEN..).unwrap_or_default();
            if let Some(report) = self.ip.report_unsent(packet) {
                return Some(report);
            }
        }
    }

    /// When [`Host::advance_link`] must be called at the latest.
    pub(crate) fn next_link_deadline(&self) -> Option<Instant> {
        self.link.as_ref()?.next_deadline()
    }
}
