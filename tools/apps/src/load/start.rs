//! Begins exchanges, and gives up late ones.

use core::time::Duration;

use whimbrel_base::Instant;

use super::connection::{AnswerReader, ExchangeState};
use super::open::REST;
use super::{Load, StopCondition};
use crate::transport::{ConnError, Transport};

impl<T: Transport> Load<T> {
    /// Begins exchanges that are due while connections are free. Returns true if there may be more.
    pub(super) fn start(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        if self.watch.is_stopped() {
            return false;
        }
        let at = self.watch.at(now);
        for _ in 0..budget {
            if !self.has_more_to_begin() || self.free.is_empty() {
                return false;
            }
            let Some(due) = self.arrivals.take(at) else { return false };
            let Some(place) = self.free.pop_front() else { return false };
            self.begin(net, place, due, now);
        }
        true
    }

    fn begin(&mut self, net: &mut T, place: u32, due: Instant, now: Instant) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        let measured = due >= self.record.began;
        slot.times.due = self.watch.when(due);
        slot.times.measured = measured;
        slot.times.began = now;
        slot.reader = AnswerReader::new(self.plan.exchange.answer);
        (slot.kept, slot.cut) = (slot.id.is_some(), false);
        if slot.kept {
            self.kept -= 1;
            return self.ask(net, place, now);
        }
        self.open_or_wait(net, place, now);
    }

    /// Fails the connections that waited too long, and frees the slots that rested long enough.
    pub(super) fn expire(&mut self, net: &mut T, now: Instant) {
        while let Some(place) = expired(self.opening.oldest(), self.plan.connect_timeout, now) {
            self.count_attempt(net, place, now);
            self.fail(net, place, ConnError::ConnectTimeout, now);
        }
        while let Some(place) = expired(self.waiting.oldest(), self.plan.timeout, now) {
            self.fail(net, place, ConnError::ResponseTimeout, now);
        }
        while let Some(place) = expired(self.closing.oldest(), self.plan.timeout, now) {
            self.give_up_closing(net, place, now);
        }
        while let Some(place) = expired(self.resting.oldest(), REST, now) {
            self.resting.remove(place);
            self.free.push_back(place);
        }
    }

    /// Gives up the end of a connection after its response.
    fn give_up_closing(&mut self, net: &mut T, place: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        if let Some(id) = slot.id.take() {
            net.abort(id);
        }
        slot.state = ExchangeState::Idle;
        self.record.unclosed += 1;
        self.closing.remove(place);
        self.resting.touch(place, now);
    }

    pub(super) fn has_more_to_begin(&self) -> bool {
        match self.plan.until {
            StopCondition::Exchanges(count) => self.arrivals.taken() < count,
            StopCondition::Elapsed(_) => true,
        }
    }

    /// True if it is complete, or fails altogether.
    pub(super) fn is_due_to_end(&self, now: Instant) -> bool {
        let over = match self.plan.until {
            // The last connections end as all others did.
            StopCondition::Exchanges(count) => self.over >= count && self.closing.is_empty(),
            StopCondition::Elapsed(time) => self.watch.at(now) >= self.record.began + time,
        };
        over || self.is_hopeless()
    }

    /// True if every connection failed at least once, and no exchange was answered.
    fn is_hopeless(&self) -> bool {
        let failed = self.failed_warm + self.record.failed();
        failed == self.over && failed >= u64::from(self.plan.connections.max(LEAST_FAILURES))
    }
}

fn expired(oldest: Option<(u32, Instant)>, after: Duration, now: Instant) -> Option<u32> {
    oldest.filter(|(_, since)| *since + after <= now).map(|(place, _)| place)
}

/// Failures after which a load with no success ends.
const LEAST_FAILURES: u32 = 3;
