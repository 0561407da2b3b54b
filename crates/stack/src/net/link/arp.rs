//! ARP packets that arrive (RFC 826, RFC 1122 2.3.2, RFC 5227).

use whimbrel_base::Instant;
use whimbrel_wire::{Address, ArpOperation, ArpPacket};

use super::message::LinkMessage;
use super::neighbours::Advertised;
use super::{FrameTarget, Link, is_station};
use crate::ip::{Addresses, FrameDrop};

impl Link {
    /// A packet arrived. Only a question for one of our addresses makes a neighbour known that was
    /// not sought: whatever else is on the air updates those that are known, and no more, so that
    /// no station fills the table by talking.
    pub(super) fn process_arp(
        &mut self,
        addresses: &Addresses,
        packet: &ArpPacket,
        cast: FrameTarget,
        now: Instant,
    ) -> Result<(), FrameDrop> {
        let sender = Address::from(packet.sender_ip);
        if !is_station(packet.sender_mac) || sender.is_multicast_or_broadcast() {
            return Err(FrameDrop::Arp);
        }
        if let Some(local) = addresses.index_of(&sender) {
            self.on_conflict(local, sender, packet.sender_mac, now);
            return Err(FrameDrop::Martian);
        }
        let target = addresses.index_of(&packet.target_ip.into());
        // RFC 5227 1.1: the sender of a probe has no address yet.
        let known = (!sender.is_unspecified()).then_some(sender);
        match (packet.operation, target) {
            (ArpOperation::Request, Some(local)) => {
                if let Some(sender) = known {
                    self.on_asked(sender, packet.sender_mac, now);
                }
                self.answer(LinkMessage::Answer { local, to: packet.sender_mac, asker: sender });
                Ok(())
            }
            (operation, target) => {
                let reply = operation == ArpOperation::Reply && cast == FrameTarget::Own;
                let solicited = reply && target.is_some();
                let told = Advertised { mac: Some(packet.sender_mac), solicited, overrides: true };
                if let Some(sender) = known {
                    self.on_told(&sender, told, now);
                }
                target.map(|_| ()).ok_or(FrameDrop::OtherHost)
            }
        }
    }
}
