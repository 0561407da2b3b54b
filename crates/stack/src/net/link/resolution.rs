//! Address resolution, as ARP and Neighbour Discovery have it in common: what neighbours say of themselves, answers
//! to them, and conflicts about an address of ours.

use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::{Address, MacAddress};

use super::message::LinkMessage;
use super::neighbours::{Advertised, ProbeContext};
use super::{AddressConflict, Link};

impl Link {
    /// A neighbour said where it is.
    pub(super) fn on_told(&mut self, addr: &Address, told: Advertised, now: Instant) {
        let cx = &mut ProbeContext { outbox: &mut self.outbox, counters: &mut self.counters };
        self.neighbours.on_told(addr, told, now, cx);
    }

    /// A neighbour asked for one of our addresses, and said where it is.
    pub(super) fn on_asked(&mut self, sender: Address, mac: MacAddress, now: Instant) {
        let cx = &mut ProbeContext { outbox: &mut self.outbox, counters: &mut self.counters };
        self.neighbours.on_asked(sender, mac, now, cx);
    }

    /// Queues an answer to a neighbour.
    pub(super) fn answer(&mut self, answer: LinkMessage) {
        // Beyond the bound nothing is sent and nothing kept: a station that asks without end gets no answer.
        if self.outbox.push(answer) {
            self.counters.answered += 1;
        } else {
            self.counters.answer_limited += 1;
        }
    }

    /// Another station has our address `addr`. It gets an announcement at once, and again only after
    /// [`DEFEND_INTERVAL`] (RFC 5227 2.4 b: "the host can elect to attempt to defend its address by
    /// [...] broadcasting one single ARP Announcement"); the address is kept in any case, as a
    /// server's must be (2.4 c).
    pub(super) fn on_conflict(
        &mut self,
        local: u16,
        addr: Address,
        station: MacAddress,
        now: Instant,
    ) {
        self.counters.conflicts += 1;
        if self.defended.is_none_or(|last| now.since(last) >= DEFEND_INTERVAL) {
            self.defended = Some(now);
            self.conflict = Some(AddressConflict { addr, station });
            self.outbox.push(LinkMessage::Announce { local });
        }
    }
}

/// The time for which an address that was defended is not defended again (RFC 5227 1.1).
const DEFEND_INTERVAL: Duration = Duration::from_secs(10);
