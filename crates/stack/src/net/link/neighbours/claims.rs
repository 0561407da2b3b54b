//! Claims of neighbours and strangers about themselves, and whether they are believed.

use whimbrel_base::Instant;
use whimbrel_tcp::tunables::NeighbourClaims;
use whimbrel_wire::{Address, MacAddress};

use super::{CLAIM_PAUSE, NeighbourState, Neighbours, ProbeContext};

/// An advertisement of a neighbour, which needs no answer.
#[derive(Clone, Copy, Debug)]
pub(in crate::net::link) struct Advertised {
    /// Its station; none if that is what it was.
    pub(in crate::net::link) mac: Option<MacAddress>,
    /// It answers a question of ours: it hears us.
    pub(in crate::net::link) solicited: bool,
    /// True if it replaces what is known of its station.
    pub(in crate::net::link) overrides: bool,
}

impl Neighbours {
    /// It asked for one of our addresses and said where it is: an answer will be used soon, so it
    /// becomes known if it was not (RFC 826; RFC 4861 7.2.3).
    pub(in crate::net::link) fn on_asked(
        &mut self,
        addr: Address,
        mac: MacAddress,
        now: Instant,
        cx: &mut ProbeContext,
    ) {
        let index = match self.find(&addr) {
            Some(index) => index,
            None => self.insert(addr, mac, now, cx.counters),
        };
        let is_defended = self.is_defended(index);
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        // RFC 4861 7.2.3: "If an entry already exists, and the cached link-layer address differs
        // from the one in the received Source Link-Layer option, the cached address should be
        // replaced by the received address, and the entry's reachability state MUST be set to
        // STALE."
        if neighbour.mac != mac || neighbour.state == NeighbourState::Incomplete {
            if is_defended {
                return self.on_claim(index, mac, now, cx);
            }
            neighbour.move_to(mac);
            self.enter(index, NeighbourState::Stale, now);
        }
    }

    /// It said where it is. Who is not known is not made known by that (RFC 4861 7.2.5; Linux'
    /// `arp_accept` is off by default for the same reason).
    pub(in crate::net::link) fn on_told(
        &mut self,
        addr: &Address,
        told: Advertised,
        now: Instant,
        cx: &mut ProbeContext,
    ) {
        let Some(index) = self.find(addr) else { return };
        let is_defended = self.is_defended(index);
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        let differs = told.mac.is_some_and(|mac| mac != neighbour.mac);
        let next = match neighbour.state {
            NeighbourState::Incomplete => match told.mac {
                Some(_) if told.solicited => NeighbourState::Reachable,
                Some(_) => NeighbourState::Stale,
                // RFC 4861 7.2.5: "the receiving node SHOULD silently discard the received
                // advertisement."
                None => return,
            },
            // "If the state of the entry is REACHABLE, set it to STALE, but do not update the entry
            // in any other way. [Else] the received advertisement should be ignored".
            NeighbourState::Reachable if differs && !told.overrides => {
                return self.enter(index, NeighbourState::Stale, now);
            }
            _ if differs && !told.overrides => return,
            _ if differs && is_defended => {
                let mac = told.mac.unwrap_or_default();
                return self.on_claim(index, mac, now, cx);
            }
            _ if told.solicited => NeighbourState::Reachable,
            _ if differs => NeighbourState::Stale,
            _ => return,
        };
        if let Some(mac) = told.mac {
            neighbour.move_to(mac);
        }
        self.enter(index, next, now);
    }

    /// True if this neighbour answered before, and is asked before another station takes its place.
    fn is_defended(&self, index: u32) -> bool {
        let confirmed = self.slots.0.get(index).is_some_and(|neighbour| neighbour.confirmed);
        confirmed && self.claims == NeighbourClaims::Verify
    }

    /// The station `mac` says that it is this neighbour, which another was confirmed to be.
    fn on_claim(&mut self, index: u32, mac: MacAddress, now: Instant, cx: &mut ProbeContext) {
        cx.counters.claims += 1;
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        match neighbour.state {
            NeighbourState::Probe => neighbour.rival = Some(mac),
            NeighbourState::Reachable
                if neighbour.reachable_until > now + self.reachable.saturating_sub(CLAIM_PAUSE) => {
            }
            _ => {
                self.enter(index, NeighbourState::Probe, now);
                if let Some(neighbour) = self.slots.0.get_mut(index) {
                    neighbour.rival = Some(mac);
                }
                self.ask(index, now, cx.outbox, cx.counters);
            }
        }
    }
}
