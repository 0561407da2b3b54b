//! Exchanges and connections that a load leaves at its end.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;

use super::connection::{ExchangeState, LoadConnection};
use super::{Correction, Load, LoadPhase, StopCondition};
use crate::Record;
use crate::record::Ages;
use crate::transport::Transport;

/// Exchanges and connections not finished when a load ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unfinished {
    /// Exchanges under way, given up.
    pub in_flight: u64,
    /// Number of them whose connection was not open yet.
    pub opening: u64,
    /// Ages of opening attempts: no histogram has them.
    pub opening_for: Ages,
    /// Waits of exchanges without a response that no histogram has: those of a load without a rate,
    /// or without correction.
    pub unanswered_for: Ages,
    /// Exchanges that fell due but never began, because every connection was busy.
    pub never_begun: u64,
}

whimbrel_base::sums! {
    /// Adds the counts of another part of the load.
    Unfinished { in_flight, opening, opening_for, unanswered_for, never_begun }
}

impl<T: Transport> Load<T> {
    /// Ends the load now: exchanges are given up, idle connections closed.
    pub fn end(&mut self, net: &mut T, now: Instant) {
        if let Some(mut race) = self.race.take() {
            race.give_up(net);
        }
        if self.state != LoadPhase::Running {
            self.state = LoadPhase::Over;
            return;
        }
        self.state = LoadPhase::Over;
        let at = self.watch.at(now);
        self.record.paused = self.watch.paused(now);
        self.record.until = match self.plan.until {
            StopCondition::Elapsed(time) => at.min(self.record.began + time),
            StopCondition::Exchanges(_) => at,
        };
        self.record.intervals.close(self.record.elapsed());
        self.close.never_begun = self.arrivals.missed(self.record.until);
        self.count_unanswered();
        while let Some(place) = self.starved.pop_front() {
            self.close.in_flight += 1;
            self.count_wait(place, now);
        }
        while let Some((place, _)) = self.opening.oldest() {
            self.opening.remove(place);
            self.count_attempt(net, place, now);
        }
        for slot in &mut self.slots {
            let Some(id) = slot.id.take() else { continue };
            match slot.state {
                ExchangeState::Idle => net.close(id),
                ExchangeState::Closing => net.abort(id),
                ExchangeState::Opening | ExchangeState::Exchange => {
                    self.close.in_flight += 1;
                    if slot.state == ExchangeState::Opening {
                        self.close.opening += 1;
                        self.close.opening_for.count(now.since(slot.times.opened));
                    }
                    net.abort(id);
                }
            }
        }
    }

    /// Counts exchanges without a response as having waited this long at least: a server that
    /// stalls to the end must not look better than one that recovers. A wait shorter than any
    /// response's is left out: the end cut it short, and it would make the server look faster than
    /// it was.
    fn count_unanswered(&mut self) {
        let Record { began, until, paused, .. } = self.record;
        let fastest = Duration::from_nanos(self.record.corrected.min());
        // Exchanges under way have waited in a pause, too.
        let end = until + paused;
        let waits = self.waiting().map(|slot| end.since(slot.times.due));
        let waits: Vec<_> = waits.filter(|waited| *waited >= fastest).collect();
        if self.plan.rate.is_none() || self.plan.correction == Correction::Off {
            waits.into_iter().for_each(|waited| self.close.unanswered_for.count(waited));
            return;
        }
        for (due, count) in self.arrivals.missed_by_time(until) {
            if due >= began && until.since(due) >= fastest {
                self.record.leave_unanswered(until.since(due), count);
            }
        }
        waits.into_iter().for_each(|waited| self.record.leave_unanswered(waited, 1));
    }

    /// Measured exchanges that wait for a port, a connection or a response.
    fn waiting(&self) -> impl Iterator<Item = &LoadConnection<T::Id>> {
        let starved = self.starved.iter().filter_map(|place| self.slots.get(*place as usize));
        let under_way = self.slots.iter().filter(|slot| {
            slot.id.is_some()
                && matches!(slot.state, ExchangeState::Opening | ExchangeState::Exchange)
        });
        starved.chain(under_way).filter(|slot| slot.times.measured)
    }
}
