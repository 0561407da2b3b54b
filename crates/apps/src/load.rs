//! A load: many connections that ask and are answered, and what that took.
//!
//! One machine for two tools: with HTTP exchanges it loads a web server, with exchanges of fixed
//! sizes it is netperf's TCP_RR, TCP_CRR and TCP_CC. It asks a bounded number of questions at a
//! time, one for each connection; at a given rate, those that fall due while all connections are
//! busy wait, and the record's corrected latency counts from when they were due.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::Record;
use crate::idle::IdleList;
use crate::race::Race;
use crate::record::{Answered, Connections, Phase};
use crate::transport::{ConnError, Model, Reading, Transport, TransportEvent};

use arrivals::Arrivals;
use connection::{CompleteAnswer, ExchangeState, LoadConnection, is_idempotent};
use stopwatch::Stopwatch;

pub use agreement::{RunAgreement, RunCount};
pub use confidence::{Confidence, Level, MOST_RUNS};
pub use controls::{Controls, LOOK, Motion, Wanted};
pub use plan::{Answer, Correction, Ending, Exchange, FastOpen, LoadPlan, Until};
pub use runs::{Finished, Repeat, Runs};
pub use states::States;
pub use unfinished::Unfinished;

mod agreement;
mod arrivals;
mod clients;
mod confidence;
mod connection;
mod controls;
mod plan;
mod runs;
mod seek;
mod start;
mod states;
mod stopwatch;
mod unfinished;

/// A load under way. Poll it as a [`Model`].
#[derive(Debug)]
pub struct Load<T: Transport> {
    plan: LoadPlan,
    slots: Vec<LoadConnection<T::Id>>,
    /// The slot of a connection, by [`Transport::place`].
    by_place: Vec<u32>,
    /// Slots that have nothing to do.
    free: VecDeque<u32>,
    /// Of those, how many have a connection.
    kept: u32,
    /// Slots that nobody wants any more.
    spare: Vec<u32>,
    /// Slots that have more to do than one turn allows.
    again: VecDeque<u32>,
    /// Slots whose connection opens, by when that began.
    opening: IdleList,
    /// Slots that wait for an answer, by when that began.
    waiting: IdleList,
    /// Slots that wait for the end of their connection, by when that began.
    closing: IdleList,
    /// Slots that failed and rest.
    resting: IdleList,
    /// Slots whose exchange waits for a port, the oldest first.
    starved: VecDeque<u32>,
    /// When the first of them asks again.
    next_asking: Instant,
    arrivals: Arrivals,
    /// Exchanges that are over, measured or not.
    over: u64,
    /// Exchanges of the warm-up that failed.
    failed_warm: u64,
    record: Record,
    /// The time of arrivals and of the record.
    watch: Stopwatch,
    state: LoadState,
    close: Unfinished,
    /// The place of the next connection's address among the plan's.
    next_local: usize,
    /// The addresses of the target's name, while none has answered.
    race: Option<Race<T::Id>>,
    /// True if an exchange may be begun again that found its connection closed.
    repeats: bool,
}

/// How far a load is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoadState {
    NotBegun,
    /// One of several addresses is to answer first.
    Seeking,
    Running,
    Over,
}

/// What became of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    More,
    Wait,
}

/// Getters.
impl<T: Transport> Load<T> {
    /// A load that begins when it is first polled.
    pub fn new(plan: LoadPlan) -> Self {
        let plan = LoadPlan { connections: plan.connections.max(1), ..plan };
        let slots = (0..plan.connections).map(|_| LoadConnection::new(&plan.exchange));
        let mut record = Record::new(plan.interval);
        record.connections = Connections::of(plan.connections);
        Self {
            slots: slots.collect(),
            by_place: Vec::new(),
            free: (0..plan.connections).collect(),
            kept: 0,
            spare: Vec::new(),
            again: VecDeque::new(),
            opening: IdleList::default(),
            waiting: IdleList::default(),
            closing: IdleList::default(),
            resting: IdleList::default(),
            starved: VecDeque::new(),
            next_asking: Instant::ZERO,
            arrivals: Arrivals::new(plan.rate, Instant::ZERO),
            over: 0,
            failed_warm: 0,
            record,
            watch: Stopwatch::default(),
            state: LoadState::NotBegun,
            close: Unfinished::default(),
            next_local: 0,
            race: None,
            repeats: is_idempotent(&plan.exchange),
            plan,
        }
    }

    /// What it does; its connections are those that are wanted now.
    pub const fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    /// What it measured so far.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Exchanges that are over, those of the warm-up included.
    pub const fn over(&self) -> u64 {
        self.over
    }

    /// How long it has measured, without pauses.
    pub fn elapsed(&self, now: Instant) -> Duration {
        self.watch.at(now).since(self.record.began)
    }

    /// True once the first exchange may have begun, or it has ended.
    pub fn has_begun(&self) -> bool {
        !matches!(self.state, LoadState::NotBegun | LoadState::Seeking)
    }

    /// What was left when it ended.
    pub const fn close(&self) -> Unfinished {
        self.close
    }
}

impl<T: Transport> Model<T> for Load<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        match self.state {
            LoadState::NotBegun if self.plan.destinations.len() > 1 => self.begin_seeking(),
            LoadState::NotBegun => self.begin_running(now),
            _ => {}
        }
        if self.state == LoadState::Seeking {
            return self.seek(net, now, budget);
        }
        let mut left = budget;
        while left > 0 {
            let Some(event) = net.poll_event() else { break };
            self.on_event(net, event, now);
            left -= 1;
        }
        if self.state == LoadState::Over || self.is_due_to_end(now) {
            self.end(net, now);
            return left == 0;
        }
        while left > 0 {
            let Some(place) = self.again.pop_front() else { break };
            self.drive(net, place, now);
            left -= 1;
        }
        // Behind the events: an answer that is there in time is no time-out.
        self.expire(net, now);
        // Events and beginnings have a budget each: neither keeps the other waiting.
        let more =
            self.retire(net, budget) || self.feed(net, now, budget) || self.start(net, now, budget);
        if self.is_due_to_end(now) {
            self.end(net, now);
        }
        more || left == 0
    }

    fn next_deadline(&self) -> Option<Instant> {
        if self.state != LoadState::Running {
            return self.race.as_ref().and_then(Race::next_deadline);
        }
        let moves = !self.watch.is_stopped();
        let end = match self.plan.until {
            Until::Elapsed(time) if moves => Some(self.watch.when(self.record.began + time)),
            _ => None,
        };
        let oldest = |list: &IdleList, time| list.oldest().map(|(_, since)| since + time);
        let arrival = (moves && !self.free.is_empty() && self.has_more_to_begin())
            .then(|| self.watch.when(self.arrivals.next(self.record.until)));
        Instant::earliest([
            end,
            arrival,
            oldest(&self.opening, self.plan.connect_timeout),
            oldest(&self.waiting, self.plan.timeout),
            oldest(&self.closing, self.plan.timeout),
            oldest(&self.resting, start::REST),
            (!self.starved.is_empty()).then_some(self.next_asking),
        ])
    }

    fn is_done(&self) -> bool {
        self.state == LoadState::Over
    }
}

/// The course of an exchange.
impl<T: Transport> Load<T> {
    fn on_event(&mut self, net: &mut T, event: TransportEvent<T>, now: Instant) {
        let (TransportEvent::Connected(id)
        | TransportEvent::Readable(id)
        | TransportEvent::Writable(id)
        | TransportEvent::Closed(id, _)) = event
        else {
            return;
        };
        // An event may be older than the place's present connection.
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

    /// The request goes out. Of its answer an event tells, later: who looked at once would find
    /// nothing, or, held up just here, an answer that seems to have taken no time.
    fn ask(&mut self, net: &mut T, place: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        slot.state = ExchangeState::Exchange;
        // What travelled with the SYN may have its answer already.
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

    /// Moves a connection on until it must wait.
    fn drive(&mut self, net: &mut T, place: u32, now: Instant) {
        for _ in 0..STEPS {
            if self.turn(net, place, now) == Turn::Wait {
                return;
            }
        }
        // The others first: one whose answer never ends must not starve them.
        self.again.push_back(place);
    }

    fn turn(&mut self, net: &mut T, place: u32, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        let Some(id) = slot.id else { return Turn::Wait };
        match slot.state {
            ExchangeState::Opening => Turn::Wait,
            ExchangeState::Idle => match net.recv(id) {
                Reading::Pending => Turn::Wait,
                Reading::Data(bytes) if slot.reader.forgives(&bytes) => Turn::More,
                // A server may close what it has kept alive for long enough.
                _ => {
                    net.close(id);
                    slot.id = None;
                    self.kept -= 1;
                    Turn::Wait
                }
            },
            ExchangeState::Exchange => self.turn_exchange(net, place, now),
            ExchangeState::Closing => match net.recv(id) {
                // Read and thrown away: unread, it would turn our close into a reset.
                Reading::Data(_) => Turn::More,
                Reading::Pending => Turn::Wait,
                Reading::End => self.on_closed(net, place, now),
                Reading::Failed(_) => {
                    self.record.unclean += 1;
                    self.on_closed(net, place, now)
                }
            },
        }
    }

    fn turn_exchange(&mut self, net: &mut T, place: u32, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        let Some(id) = slot.id else { return Turn::Wait };
        if !slot.pending.is_empty() && net.send(id, &mut slot.pending).is_err() {
            // The answer may have come all the same; reading tells, and says why not.
            slot.pending.clear();
            slot.cut = true;
        }
        if slot.reader.wants_nothing() {
            let whole = CompleteAnswer { status: 0, body: 0, persistent: true };
            return self.on_answer(net, place, whole, now);
        }
        let answer = match net.recv(id) {
            Reading::Pending => return Turn::Wait,
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
            Ok(None) => Turn::More,
            Err(conn_error) => self.on_no_answer(net, place, conn_error, now),
        }
    }

    /// No answer will come on this connection.
    fn on_no_answer(&mut self, net: &mut T, place: u32, why: ConnError, now: Instant) -> Turn {
        let Some(slot) = self.slots.get(place as usize) else { return Turn::Wait };
        // RFC 9112 9.3.1: "a client MAY open a new connection and automatically retransmit an aborted
        // sequence of requests if all of those requests have idempotent methods"
        let is_stale = match why {
            ConnError::EndedEarly | ConnError::Reset => slot.times.first.is_none(),
            // It was on its way when the request was not: behind the answer before; the two cannot be told apart.
            ConnError::BadAnswer => slot.reader.is_silent(),
            _ => false,
        };
        if self.repeats && slot.kept && is_stale {
            return self.ask_anew(net, place, now);
        }
        self.record.longest_head = self.record.longest_head.max(slot.reader.refused_head() as u64);
        self.fail(net, place, why, now)
    }

    fn on_answer(&mut self, net: &mut T, place: u32, whole: CompleteAnswer, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
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

    /// What becomes of the connection after the answer.
    fn part(&mut self, net: &mut T, place: u32, whole: CompleteAnswer, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        let Some(id) = slot.id else { return Turn::Wait };
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
        Turn::Wait
    }

    /// The connection is to end before its place is used again.
    fn await_end(&mut self, place: u32, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        slot.state = ExchangeState::Closing;
        self.closing.touch(place, now);
        Turn::More
    }

    /// The connection is over, as it should be.
    fn on_closed(&mut self, net: &mut T, place: u32, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(place as usize) else { return Turn::Wait };
        self.closing.remove(place);
        if slot.times.measured {
            self.record.phase_took(Phase::Close, now.since(slot.times.answered));
        }
        if let Some(id) = slot.id.take() {
            net.close(id);
        }
        slot.state = ExchangeState::Idle;
        self.free.push_back(place);
        Turn::Wait
    }

    /// The slot of a connection.
    fn place_of(&self, id: T::Id) -> Option<u32> {
        let place = *self.by_place.get(T::place(id) as usize)?;
        let slot = self.slots.get(place as usize)?;
        (slot.id == Some(id)).then_some(place)
    }
}

/// Steps of one connection in one go.
const STEPS: usize = 64;
