//! Opens connections, waits for ports, and handles failures.

use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_tcp::conn::Nagle;

use super::connection::{AnswerReader, ExchangeState, Times};
use super::{FastOpen, Load, StepResult};
use crate::transport::{ConnError, ConnectOptions, OpenError, PortShortage, Transport};

impl<T: Transport> Load<T> {
    /// Continues the exchange on a new connection, because the kept one cannot be used.
    pub(super) fn ask_anew(&mut self, net: &mut T, place: u32, now: Instant) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
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
        StepResult::Wait
    }

    /// Begins to open the connection of a slot, now or when there is a port for it.
    pub(super) fn open_or_wait(&mut self, net: &mut T, place: u32, now: Instant) {
        // Connections that already wait for a port come first.
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

    /// Puts an opening off until the next port comes free, if that time is known.
    fn put_off(&mut self, shortage: PortShortage, now: Instant) {
        self.record.shortage = Some(shortage);
        let wait = shortage.next.map_or(REST, |next| next.clamp(LEAST_WAIT, REST));
        self.next_asking = now + wait;
    }

    /// Retries the connections that wait for a port, in order; one that waited longer than the
    /// time-out to open has failed. Returns true if more may be done at once.
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

    /// Counts the time that a slot waited for a port.
    pub(super) fn count_wait(&mut self, place: u32, now: Instant) {
        let Some(slot) = self.slots.get(place as usize) else { return };
        let Times { measured, began, .. } = slot.times;
        if measured {
            self.record.held.ports += now.since(began);
        }
    }

    /// Counts the time of an attempt until `now` if its first SYN was not enough.
    pub(super) fn count_attempt(&mut self, net: &T, place: u32, now: Instant) {
        let Some(slot) = self.slots.get(place as usize) else { return };
        let syns = slot.id.and_then(|id| net.syns_sent(id));
        if slot.times.measured && syns.is_some_and(|syns| syns > 1) {
            self.record.held.syns += now.since(slot.times.opened);
        }
    }

    /// Options of the next connection; the local addresses are used in turn.
    pub(super) fn next_opening(&mut self) -> ConnectOptions {
        let (first, count) = (self.next_local, self.plan.local.len());
        self.next_local = (first + 1).checked_rem(count).unwrap_or(0);
        // The load reads each response at once, so no segment should be delayed.
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

    /// Ends a failed exchange and its connection. Its slot rests for a moment, so that a server
    /// that refuses is not tried at full speed.
    pub(super) fn fail(
        &mut self,
        net: &mut T,
        place: u32,
        conn_error: ConnError,
        now: Instant,
    ) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
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
        StepResult::Wait
    }
}

/// Delay of a slot after a failure.
pub(super) const REST: Duration = Duration::from_millis(10);
/// Shortest delay before the next search for a port.
const LEAST_WAIT: Duration = Duration::from_millis(1);
