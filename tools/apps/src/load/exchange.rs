//! Course of an exchange on one connection.

use whimbrel_base::Instant;

use super::connection::{CompleteAnswer, ExchangeState};
use super::{Correction, Ending, Load, StepResult};
use crate::record::{Answered, Phase};
use crate::transport::{ConnError, Reading, Transport, TransportEvent};

impl<T: Transport> Load<T> {
    pub(super) fn on_event(&mut self, net: &mut T, event: TransportEvent<T>, now: Instant) {
        let (TransportEvent::Connected(id)
        | TransportEvent::Readable(id)
        | TransportEvent::Writable(id)
        | TransportEvent::Closed(id, _)) = event
        else {
            return;
        };
        // An event may be older than the present connection at its place.
        let Some(place) = self.place_of(id) else { return };
        let opening =
            self.slots.get(place as usize).is_some_and(|s| s.state == ExchangeState::Opening);
        match event {
            TransportEvent::Closed(_, conn_error) if opening => {
                self.fail(net, place, conn_error.unwrap_or(ConnError::EndedEarly), now);
            }
            TransportEvent::Connected(_) if opening => self.on_connected(net, place, now),
            _ => self.drive(net, place, now),
        }
    }

    fn on_connected(&mut self, net: &mut T, place: u32, now: Instant) {
        self.count_attempt(net, place, now);
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        self.opening.remove(place);
        self.record.opened += 1;
        if slot.times.measured {
            self.record.phase_took(Phase::Connect, now.since(slot.times.opened));
            if let Some(syns) = slot.id.and_then(|id| net.syns_sent(id)) {
                self.record.syns.get_or_insert_default().count(syns);
            }
        }
        self.ask(net, place, now);
    }

    /// Sends the request. An event reports the response later: a look at once would find nothing,
    /// or, after a delay here, a response that seems to have taken no time.
    pub(super) fn ask(&mut self, net: &mut T, place: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        slot.state = ExchangeState::Exchange;
        // A request with the SYN may have its response already.
        let early = core::mem::take(&mut slot.early);
        if !early {
            slot.pending = self.plan.exchange.request.clone();
            slot.times.asked = now;
        }
        slot.times.first = None;
        self.waiting.touch(place, now);
        let Some(id) = slot.id else { return };
        let sent = slot.pending.is_empty() || net.send(id, &mut slot.pending).is_ok();
        if !sent || early || slot.reader.wants_nothing() {
            self.drive(net, place, now);
        }
    }

    /// Drives a connection until it must wait.
    pub(super) fn drive(&mut self, net: &mut T, place: u32, now: Instant) {
        for _ in 0..STEPS {
            if self.turn(net, place, now) == StepResult::Wait {
                return;
            }
        }
        // Others first: an endless response must not starve them.
        self.again.push_back(place);
    }

    fn turn(&mut self, net: &mut T, place: u32, now: Instant) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
        let Some(id) = slot.id else { return StepResult::Wait };
        match slot.state {
            ExchangeState::Opening => StepResult::Wait,
            ExchangeState::Idle => match net.recv(id) {
                Reading::Pending => StepResult::Wait,
                Reading::Data(bytes) if slot.reader.forgives(&bytes) => StepResult::More,
                // A server may close a connection that was idle for long enough.
                _ => {
                    net.close(id);
                    slot.id = None;
                    self.kept -= 1;
                    StepResult::Wait
                }
            },
            ExchangeState::Exchange => self.turn_exchange(net, place, now),
            ExchangeState::Closing => match net.recv(id) {
                // Read and discarded: unread data would turn our close into a reset.
                Reading::Data(_) => StepResult::More,
                Reading::Pending => StepResult::Wait,
                Reading::End => self.on_closed(net, place, now),
                Reading::Failed(_) => {
                    self.record.unclean += 1;
                    self.on_closed(net, place, now)
                }
            },
        }
    }

    fn turn_exchange(&mut self, net: &mut T, place: u32, now: Instant) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
        let Some(id) = slot.id else { return StepResult::Wait };
        if !slot.pending.is_empty() && net.send(id, &mut slot.pending).is_err() {
            // The response may have come all the same; a read returns it, or the error.
            slot.pending.clear();
            slot.cut = true;
        }
        if slot.reader.wants_nothing() {
            let whole = CompleteAnswer { status: 0, body: 0, persistent: true };
            return self.on_answer(net, place, whole, now);
        }
        let answer = match net.recv(id) {
            Reading::Pending => return StepResult::Wait,
            Reading::End => slot.reader.on_end().map(Some),
            Reading::Failed(conn_error) => Err(conn_error),
            Reading::Data(mut bytes) => {
                slot.times.first.get_or_insert(now);
                slot.reader.read(&mut bytes).map(|whole| {
                    let alone = slot.reader.forgives(&bytes);
                    whole.map(|whole| CompleteAnswer {
                        persistent: whole.persistent && alone,
                        ..whole
                    })
                })
            }
        };
        match answer {
            Ok(Some(whole)) => self.on_answer(net, place, whole, now),
            Ok(None) => StepResult::More,
            Err(conn_error) => self.on_no_answer(net, place, conn_error, now),
        }
    }

    /// Handles a connection on which no response will come.
    fn on_no_answer(
        &mut self,
        net: &mut T,
        place: u32,
        why: ConnError,
        now: Instant,
    ) -> StepResult {
        let Some(slot) = self.slots.get(place as usize) else { return StepResult::Wait };
        // RFC 9112 9.3.1: "a client MAY open a new connection and automatically retransmit an aborted
        // sequence of requests if all of those requests have idempotent methods"
        let is_stale = match why {
            ConnError::EndedEarly | ConnError::Reset => slot.times.first.is_none(),
            // The data was sent before the request: it follows the response before, and the two
            // cannot be told apart.
            ConnError::BadAnswer => slot.reader.is_silent(),
            _ => false,
        };
        if self.repeats && slot.kept && is_stale {
            return self.ask_anew(net, place, now);
        }
        self.record.longest_head = self.record.longest_head.max(slot.reader.refused_head() as u64);
        self.fail(net, place, why, now)
    }

    fn on_answer(
        &mut self,
        net: &mut T,
        place: u32,
        whole: CompleteAnswer,
        now: Instant,
    ) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
        slot.times.answered = now;
        let times = slot.times;
        self.waiting.remove(place);
        self.over += 1;
        let at = self.watch.at(now);
        if times.measured {
            if let Some(first) = times.first {
                self.record.phase_took(Phase::FirstByte, first.since(times.asked));
                self.record.phase_took(Phase::Body, now.since(first));
            }
            let CompleteAnswer { status, body, .. } = whole;
            let due = match self.plan.correction {
                Correction::On => times.due,
                Correction::Off => times.began,
            };
            let (service, corrected) = (now.since(times.began), now.since(due));
            self.record.answer(at, Answered { service, corrected, status, body });
        }
        self.record.until = at;
        self.part(net, place, whole, now)
    }

    /// Ends or reuses the connection after the response.
    fn part(&mut self, net: &mut T, place: u32, whole: CompleteAnswer, now: Instant) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
        let Some(id) = slot.id else { return StepResult::Wait };
        let asked_whole = slot.pending.is_empty() && !slot.cut;
        match self.plan.ending {
            Ending::KeepAlive if whole.persistent && asked_whole => self.kept += 1,
            Ending::Reset => net.abort(slot.id.take().unwrap_or(id)),
            Ending::Server if asked_whole => return self.await_end(place, now),
            Ending::Client if asked_whole => {
                net.shutdown(id);
                return self.await_end(place, now);
            }
            // RFC 9112 9.6: 'A client that receives a "close" connection option MUST cease sending requests
            // on that connection and close the connection after reading the response message containing the
            // "close" connection option'; 9.5, of a response before the request was sent whole: "the client
            // SHOULD immediately cease transmitting the body and close its side of the connection".
            _ => net.close(slot.id.take().unwrap_or(id)),
        }
        slot.pending.clear();
        slot.state = ExchangeState::Idle;
        self.free.push_back(place);
        StepResult::Wait
    }

    /// Waits for the end of the connection before its place is used again.
    fn await_end(&mut self, place: u32, now: Instant) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
        slot.state = ExchangeState::Closing;
        self.closing.touch(place, now);
        StepResult::More
    }

    /// Handles the regular end of a connection.
    fn on_closed(&mut self, net: &mut T, place: u32, now: Instant) -> StepResult {
        let Some(slot) = self.slots.get_mut(place as usize) else { return StepResult::Wait };
        self.closing.remove(place);
        if slot.times.measured {
            self.record.phase_took(Phase::Close, now.since(slot.times.answered));
        }
        if let Some(id) = slot.id.take() {
            net.close(id);
        }
        slot.state = ExchangeState::Idle;
        self.free.push_back(place);
        StepResult::Wait
    }

    /// Slot of a connection.
    fn place_of(&self, id: T::Id) -> Option<u32> {
        let place = *self.by_place.get(T::place(id) as usize)?;
        let slot = self.slots.get(place as usize)?;
        (slot.id == Some(id)).then_some(place)
    }
}

/// Steps of one connection at a time.
const STEPS: usize = 64;
