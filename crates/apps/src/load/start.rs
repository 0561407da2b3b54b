//! Beginning exchanges, waiting for ports, and giving up.

use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_tcp::conn::Nagle;

use super::connection::{AnswerReader, ExchangeState, Times};
use super::{FastOpen, Load, Turn, Until};
use crate::transport::{ConnError, ConnectOptions, OpenError, PortShortage, Transport};

impl<T: Transport> Load<T> {
    /// Begins what is due, while there are connections free. Returns whether more may be.
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

    /// The exchange goes on with a connection of its own: the one that was kept cannot be used.
    pub(super) fn ask_anew(&mut self, net: &mut T, place: u32, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        if let Some(id) = slot.id.take() {
            net.close(id);
        }
        slot.reader = AnswerReader::new(self.plan.exchange.answer);
        (slot.kept, slot.cut) = (false, false);
        slot.pending.clear();
        slot.state = ExchangeState::Idle;
        self.record.repeated += u64::from(slot.times.measured);
        self.waiting.remove(place);
        self.open_or_wait(net, place, now);
        Turn::Wait
    }

    /// Begins to open the connection of a slot, now or when there is a port for it.
    fn open_or_wait(&mut self, net: &mut T, place: u32, now: Instant) {
        // Whoever waits for a port already is to have the next one.
        if self.starved.is_empty() {
            match self.open(net, place, now) {
                Ok(()) => return,
                Err(shortage) => self.put_off(shortage, now),
            }
        }
        self.starved.push_back(place);
        let measured = self.slots.get(place as usize).is_some_and(|slot| slot.times.measured);
        self.record.starved += u64::from(measured);
    }

    /// Begins to open the connection of a slot, unless there is no port for it.
    fn open(&mut self, net: &mut T, place: u32, now: Instant) -> Result<(), PortShortage> {
        let mut request = match self.plan.fast_open {
            FastOpen::Off => Bytes::new(),
            FastOpen::On => self.plan.exchange.request.clone(),
        };
        let whole = request.len();
        let mut opened = net.connect(self.plan.target, &self.next_opening(), &mut request);
        for _ in 1..self.plan.local.len() {
            if let Err(OpenError::Ports(_)) = opened {
                opened = net.connect(self.plan.target, &self.next_opening(), &mut request);
            }
        }
        let Some(slot) = self.slots.get_mut(place as usize) else { return Ok(()) };
        match opened {
            Ok(id) => {
                slot.id = Some(id);
                slot.state = ExchangeState::Opening;
                slot.times.opened = now;
                slot.early = request.len() < whole;
                if slot.early {
                    slot.times.asked = now;
                    slot.pending = request;
                }
                self.remember(T::place(id), place);
                self.opening.touch(place, now);
            }
            Err(OpenError::Ports(shortage)) => return Err(shortage),
            Err(OpenError::Other(conn_error)) => {
                self.fail(net, place, conn_error, now);
            }
        }
        Ok(())
    }

    /// No port is free: one is sought again when the next comes free, as far as that is known.
    fn put_off(&mut self, shortage: PortShortage, now: Instant) {
        self.record.shortage = Some(shortage);
        let wait = shortage.next.map_or(REST, |next| next.clamp(LEAST_WAIT, REST));
        self.next_asking = now + wait;
    }

    /// Whoever waits for a port asks again, in turn; whoever waited for as long as a connection may
    /// take to open has failed. Returns whether more may be done at once.
    pub(super) fn feed(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        for _ in 0..budget {
            let Some(&place) = self.starved.front() else { return false };
            let Some(slot) = self.slots.get(place as usize) else { return false };
            let late = slot.times.began + self.plan.connect_timeout <= now;
            if !late && now < self.next_asking {
                return false;
            }
            if let Err(shortage) = self.open(net, place, now) {
                self.put_off(shortage, now);
                if !late {
                    return false;
                }
                self.fail(net, place, ConnError::PortsExhausted, now);
            }
            self.starved.pop_front();
            self.count_wait(place, now);
        }
        !self.starved.is_empty()
    }

    /// A slot waited for a port until now.
    pub(super) fn count_wait(&mut self, place: u32, now: Instant) {
        let Some(slot) = self.slots.get(place as usize) else { return };
        let Times { measured, began, .. } = slot.times;
        if measured {
            self.record.starved_for += now.since(began);
        }
    }

    /// Each connection begins at the next of the addresses, in turn.
    pub(super) fn next_opening(&mut self) -> ConnectOptions {
        let (first, count) = (self.next_local, self.plan.local.len());
        self.next_local = (first + 1).checked_rem(count).unwrap_or(0);
        // What asks is ready to go on with each answer: nothing is to wait for another.
        ConnectOptions {
            local: self.plan.local.get(first).copied(),
            fast: self.plan.fast_open == FastOpen::On,
            nagle: Nagle::Off,
            zone: self.plan.destinations.first().map_or(0, |destination| destination.zone),
            ..ConnectOptions::default()
        }
    }

    pub(super) fn remember(&mut self, of_connection: u32, place: u32) {
        let index = of_connection as usize;
        if self.by_place.len() <= index {
            self.by_place.resize(index + 1, u32::MAX);
        }
        if let Some(entry) = self.by_place.get_mut(index) {
            *entry = place;
        }
    }

    /// An exchange failed; its connection goes, and its slot rests for a moment, so that a server
    /// that refuses is not asked as fast as this machine can.
    pub(super) fn fail(
        &mut self,
        net: &mut T,
        place: u32,
        conn_error: ConnError,
        now: Instant,
    ) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        if let Some(id) = slot.id.take() {
            net.abort(id);
        }
        slot.state = ExchangeState::Idle;
        self.opening.remove(place);
        self.waiting.remove(place);
        self.resting.touch(place, now);
        self.over += 1;
        let at = self.watch.at(now);
        if slot.times.measured {
            self.record.fail(at, conn_error);
        } else {
            self.failed_warm += 1;
        }
        self.record.until = at;
        Turn::Wait
    }

    /// Whoever waited for too long, and whoever rested for long enough.
    pub(super) fn expire(&mut self, net: &mut T, now: Instant) {
        while let Some(place) = expired(self.opening.oldest(), self.plan.connect_timeout, now) {
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

    /// The answer came; the end of its connection did not.
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
            Until::Exchanges(count) => self.arrivals.taken() < count,
            Until::Elapsed(_) => true,
        }
    }

    /// True if it has done what it came for, or nothing at all goes well.
    pub(super) fn is_due_to_end(&self, now: Instant) -> bool {
        let over = match self.plan.until {
            // The last connections are to end as all the others did.
            Until::Exchanges(count) => self.over >= count && self.closing.is_empty(),
            Until::Elapsed(time) => self.watch.at(now) >= self.record.began + time,
        };
        over || self.is_hopeless()
    }

    /// Every connection failed at least once, and not one exchange was answered.
    fn is_hopeless(&self) -> bool {
        let failed = self.failed_warm + self.record.failed();
        failed == self.over && failed >= u64::from(self.plan.connections.max(LEAST_FAILURES))
    }
}

fn expired(oldest: Option<(u32, Instant)>, after: Duration, now: Instant) -> Option<u32> {
    oldest.filter(|(_, since)| *since + after <= now).map(|(place, _)| place)
}

/// How long a slot rests after a failure.
pub(super) const REST: Duration = Duration::from_millis(10);
/// How soon a port is sought again at the soonest.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// How often a load tries before it believes that nothing goes.
const LEAST_FAILURES: u32 = 3;
