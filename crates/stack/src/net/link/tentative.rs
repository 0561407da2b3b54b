//! Addresses that a host may get while it runs, asked for before it has them (RFC 5227 2.1, RFC 4862 5.4).
//!
//! As at the start (`dad.rs`): three questions, and as long for the last answer. What goes on meanwhile is
//! not disturbed, and the address is not used here until it is added: RFC 4862 5.4: "An address on which the
//! Duplicate Address Detection procedure is applied is said to be tentative until the procedure has
//! completed successfully. A tentative address is not considered \"assigned to an interface\" in the
//! traditional sense."

use alloc::collections::{BTreeMap, VecDeque};

use whimbrel_base::Instant;
use whimbrel_wire::{Address, MacAddress};

use super::dad::{PAUSE, PROBES, claimed_by_arp};
use super::{AddressConflict, Link, LinkControl, LinkMessage, is_station};

/// The result of the check of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckedAddress {
    /// The address that was asked for.
    pub addr: Address,
    /// The station that has it; `None`: no station answered.
    pub conflict: Option<AddressConflict>,
}

/// As many are asked for as may be at a time.
#[derive(Debug)]
pub(crate) struct TooManyChecks {
    pub(crate) limit: usize,
}

/// The addresses that are asked for, and those of which is known what came of it.
#[derive(Default, Debug)]
pub(super) struct Tentatives {
    asking: BTreeMap<Address, Asking>,
    checked: VecDeque<CheckedAddress>,
}

#[derive(Debug)]
struct Asking {
    asked: u8,
    next: Instant,
}

impl Tentatives {
    /// One burst of questions.
    const MOST: usize = 64;

    pub(super) fn is_asking(&self) -> bool {
        !self.asking.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.asking.values().map(|asking| asking.next).min()
    }
}

impl Link {
    /// Begins to ask for an address, unless that has begun.
    pub(crate) fn check_tentative(
        &mut self,
        addr: Address,
        now: Instant,
    ) -> Result<(), TooManyChecks> {
        let Tentatives { asking, checked } = &mut self.tentative;
        if asking.contains_key(&addr) {
            return Ok(());
        }
        // A check whose end was not polled takes room, too.
        let limit = Tentatives::MOST;
        if asking.len() + checked.len() >= limit {
            return Err(TooManyChecks { limit });
        }
        asking.insert(addr, Asking { asked: 0, next: now });
        Ok(())
    }

    /// The next address whose check has ended.
    pub(crate) fn pop_checked(&mut self) -> Option<CheckedAddress> {
        self.tentative.checked.pop_front()
    }

    /// Asks once more for those that are due, or is done with them.
    pub(super) fn advance_tentative(&mut self, now: Instant) {
        let Tentatives { asking, checked } = &mut self.tentative;
        let outbox = &mut self.outbox;
        asking.retain(|addr, it| {
            if now < it.next {
                return true;
            }
            if it.asked >= PROBES {
                checked.push_back(CheckedAddress { addr: *addr, conflict: None });
                return false;
            }
            (it.asked, it.next) = (it.asked + 1, now + PAUSE);
            outbox.push(LinkMessage::Probe { target: *addr });
            true
        });
    }

    /// A neighbour spoke: perhaps of an address that is asked for.
    pub(super) fn note_claim(&mut self, heard: &LinkControl) {
        let (addr, station) = match heard {
            LinkControl::Arp(packet, _) => claimed_by_arp(packet),
            LinkControl::Ndp(said) if said.claims_target() => {
                (said.target().into(), said.station())
            }
            LinkControl::Ndp(_) => return,
        };
        if is_another(station, self.mac) && self.tentative.asking.remove(&addr).is_some() {
            self.counters.conflicts += 1;
            let conflict = Some(AddressConflict { addr, station });
            self.tentative.checked.push_back(CheckedAddress { addr, conflict });
        }
    }
}

fn is_another(station: MacAddress, own: MacAddress) -> bool {
    is_station(station) && station != own
}
