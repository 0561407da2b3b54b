//! Gateways that do not answer: passed over while a route has another (RFC 1122 3.3.1.4 and 3.3.1.5,
//! RFC 4861 6.3.6).
//!
//! That a gateway is dead is found out by neighbour discovery, which TCP sets off where its segments
//! remain unanswered (RFC 9293 3.8.3, R1). It is not asked continuously (RFC 1122 3.3.1.4 forbids
//! that): traffic for which it would be the better way has it asked again, once in each [`PAUSE`].
//! When it is heard of, traffic goes back to it.

use alloc::collections::BTreeMap;
use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::Address;

use crate::Route;

/// The gateways that do not answer, and until when each is left alone.
#[derive(Debug, Default)]
pub(super) struct Gateways {
    dead: BTreeMap<Address, Instant>,
    /// The earliest of those times.
    next_look: Option<Instant>,
}

impl Gateways {
    /// The way to take of `candidates`, the best first: the first whose gateway is not known to be dead;
    /// if all are, the one that died first, so that each is tried in turn.
    pub(super) fn choose<'a>(&self, candidates: &'a [Route]) -> Option<&'a Route> {
        let died = |way: &&Route| way.gateway.and_then(|gateway| self.dead.get(&gateway));
        let alive = candidates.iter().find(|way| died(way).is_none());
        alive.or_else(|| candidates.iter().min_by_key(died))
    }

    /// True if this is the gateway of `way`, and dead.
    pub(super) fn is_dead(&self, way: &Route) -> bool {
        way.gateway.is_some_and(|gateway| self.dead.contains_key(&gateway))
    }

    /// True if some of them have been left alone for long enough; they are from now on, too.
    pub(super) fn may_probe(&mut self, now: Instant) -> bool {
        let due = self.next_look.is_some_and(|look| look <= now);
        if due {
            self.next_look = Some(now + PAUSE);
        }
        due
    }

    /// The first of `candidates` in front of the one that is taken whose gateway is to be asked again.
    pub(super) fn pop_due(&mut self, candidates: &[Route], now: Instant) -> Option<Address> {
        let better = candidates.iter().take_while(|way| self.is_dead(way));
        let mut gateways = better.filter_map(|way| way.gateway);
        let due = gateways.find(|it| self.dead.get(it).is_some_and(|until| *until <= now))?;
        self.dead.insert(due, now + PAUSE);
        Some(due)
    }

    /// It does not answer.
    pub(super) fn on_silence(&mut self, gateway: Address, now: Instant) {
        let until = now + PAUSE;
        self.dead.insert(gateway, until);
        self.next_look = Some(self.next_look.map_or(until, |look| look.min(until)));
    }

    /// Those of whom `is_known` knows the station are alive. Returns whether there was one.
    pub(super) fn revive(&mut self, is_known: impl Fn(&Address) -> bool) -> bool {
        let before = self.dead.len();
        self.dead.retain(|gateway, _| !is_known(gateway));
        if self.dead.is_empty() {
            self.next_look = None;
        }
        self.dead.len() < before
    }

    /// True if all answer, as far as is known.
    pub(super) fn is_empty(&self) -> bool {
        self.dead.is_empty()
    }
}

/// The time for which a gateway that does not answer is left alone: shorter asks more often for one that may be
/// gone for good, longer stays with the second best (RFC 4861 10: REACHABLE_TIME).
pub(super) const PAUSE: Duration = Duration::from_secs(30);
