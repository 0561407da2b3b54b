//! Start of a load: at once, or when one of several addresses has answered.

use alloc::vec;

use whimbrel_base::Instant;

use super::arrivals::Arrivals;
use super::{Ending, Load, LoadPhase};
use crate::race::{Race, Winner};
use crate::record::Phase;
use crate::transport::{ConnectOptions, Transport};

impl<T: Transport> Load<T> {
    pub(super) fn begin_running(&mut self, now: Instant) {
        self.state = LoadPhase::Running;
        let at = self.watch.at(now);
        self.arrivals = Arrivals::new(self.plan.rate, at + self.plan.offset);
        // Measurements before the end of the warm-up do not count.
        self.record.begin(at + self.plan.warmup);
    }

    pub(super) fn begin_seeking(&mut self) {
        self.state = LoadPhase::Seeking;
        self.race = Some(Race::new(&self.plan.destinations, self.plan.connect_timeout));
    }

    /// Tries the addresses of the target. Returns true if more may be done at once.
    pub(super) fn seek(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        let options = ConnectOptions { fast: false, ..self.next_opening() };
        let Some(mut race) = self.race.take() else { return false };
        for _ in 0..budget {
            let Some(event) = net.poll_event() else { break };
            if let Some(winner) = race.on_event(net, &event, now) {
                self.record.unreached = race.into_failed();
                self.on_found(net, &winner, now);
                return true;
            }
        }
        if race.go_on(net, &options, now) {
            self.on_nothing_found(race, now);
        } else {
            self.race = Some(race);
        }
        false
    }

    /// Uses the server that answered for all connections.
    fn on_found(&mut self, net: &mut T, winner: &Winner<T::Id>, now: Instant) {
        self.plan.target = winner.to.at;
        self.plan.destinations = vec![winner.to];
        self.begin_running(now);
        let place = self.free.front().copied().filter(|_| self.plan.ending == Ending::KeepAlive);
        let slot = place.and_then(|place| self.slots.get_mut(place as usize));
        let (Some(slot), Some(place)) = (slot, place) else {
            // Each exchange opens and measures a connection of its own.
            return net.close(winner.id);
        };
        slot.id = Some(winner.id);
        self.kept += 1;
        self.record.opened += 1;
        if self.plan.warmup.is_zero() {
            self.record.phase_took(Phase::Connect, winner.took);
        }
        self.remember(T::place(winner.id), place);
    }

    /// Ends the load: no server answers anywhere.
    fn on_nothing_found(&mut self, race: Race<T::Id>, now: Instant) {
        self.begin_running(now);
        self.record.unreached = race.into_failed();
        for place in 0..self.record.unreached.len() {
            if let Some((_, conn_error)) = self.record.unreached.get(place).copied() {
                self.record.fail(self.record.began, conn_error);
                self.over += 1;
            }
        }
        self.state = LoadPhase::Over;
    }
}
