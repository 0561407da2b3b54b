//! A load: many connections that send requests, and the time to each response.
//!
//! One machine for two tools: with HTTP exchanges it loads a web server, with exchanges of fixed
//! sizes it is netperf's TCP_RR, TCP_CRR and TCP_CC. Each connection has one request at a time. At
//! a given rate, requests that fall due while all connections are busy wait, and the record's
//! corrected latency counts from the time they were due.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::Record;
use crate::idle::IdleList;
use crate::race::Race;
use crate::record::Connections;
use crate::transport::{Model, Transport};

use arrivals::Arrivals;
use connection::{LoadConnection, is_idempotent};
use stopwatch::Stopwatch;

pub use agreement::{RunAgreement, RunCount};
pub use confidence::{Confidence, Level, MOST_RUNS};
pub use controls::{Controls, LOOK, LoadState, Wanted};
pub use plan::{Correction, Ending, Exchange, FastOpen, LoadPlan, ResponseEnd, StopCondition};
pub use runs::{Finished, Repeat, Runs};
pub use states::States;
pub use unfinished::Unfinished;

mod agreement;
mod arrivals;
mod clients;
mod confidence;
mod connection;
mod controls;
mod exchange;
mod open;
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
    /// Slot of each connection, by [`Transport::place`].
    by_place: Vec<u32>,
    /// Slots without an exchange.
    free: VecDeque<u32>,
    /// Number of them with a connection.
    kept: u32,
    /// Slots not in use.
    spare: Vec<u32>,
    /// Slots with more to do than one turn allows.
    again: VecDeque<u32>,
    /// Slots whose connection is opening, by its start.
    opening: IdleList,
    /// Slots that wait for a response, by the start of the wait.
    waiting: IdleList,
    /// Slots that wait for the end of their connection, by the start of the wait.
    closing: IdleList,
    /// Slots that rest after a failure.
    resting: IdleList,
    /// Slots whose exchange waits for a port, the oldest first.
    starved: VecDeque<u32>,
    /// Time when the first of them tries again.
    next_asking: Instant,
    arrivals: Arrivals,
    /// Finished exchanges, measured or not.
    over: u64,
    /// Exchanges of the warm-up that failed.
    failed_warm: u64,
    record: Record,
    /// Clock of arrivals and of the record.
    watch: Stopwatch,
    state: LoadPhase,
    /// When it is to be polled to begin the next exchange, at the rate asked for.
    next_arrival: Option<Instant>,
    close: Unfinished,
    /// Index of the next local address in the plan.
    next_local: usize,
    /// The addresses of the target's name, while none has answered.
    race: Option<Race<T::Id>>,
    /// True if an exchange may be repeated whose kept connection was closed.
    repeats: bool,
}

/// Phase of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoadPhase {
    NotBegun,
    /// Tries several addresses for a server.
    Seeking,
    Running,
    Over,
}

/// Result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepResult {
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
            state: LoadPhase::NotBegun,
            next_arrival: None,
            close: Unfinished::default(),
            next_local: 0,
            race: None,
            repeats: is_idempotent(&plan.exchange),
            plan,
        }
    }

    /// The plan, with the number of connections wanted now.
    pub const fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    /// Measurements so far.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Finished exchanges, with those of the warm-up.
    pub const fn over(&self) -> u64 {
        self.over
    }

    /// Measured time so far, without pauses.
    pub fn elapsed(&self, now: Instant) -> Duration {
        self.watch.at(now).since(self.record.began)
    }

    /// True once the first exchange may have begun, or the load has ended.
    pub fn has_begun(&self) -> bool {
        !matches!(self.state, LoadPhase::NotBegun | LoadPhase::Seeking)
    }

    /// When the next exchange begins, if a connection is free for it.
    fn arrival(&self) -> Option<Instant> {
        let begins = !self.watch.is_stopped() && !self.free.is_empty() && self.has_more_to_begin();
        begins.then(|| self.watch.when(self.arrivals.next(self.record.until)))
    }

    /// Exchanges and connections not finished at its end.
    pub const fn close(&self) -> Unfinished {
        self.close
    }
}

impl<T: Transport> Model<T> for Load<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        match self.state {
            LoadPhase::NotBegun if self.plan.destinations.len() > 1 => self.begin_seeking(),
            LoadPhase::NotBegun => self.begin_running(now),
            _ => {}
        }
        if self.state == LoadPhase::Seeking {
            return self.seek(net, now, budget);
        }
        if let (Some(due), Some(rate)) = (self.next_arrival.take(), self.plan.rate) {
            self.record.held.count_late(now.since(due), rate);
        }
        let mut left = budget;
        while left > 0 {
            let Some(event) = net.poll_event() else { break };
            self.on_event(net, event, now);
            left -= 1;
        }
        if self.state == LoadPhase::Over || self.is_due_to_end(now) {
            self.end(net, now);
            return left == 0;
        }
        while left > 0 {
            let Some(place) = self.again.pop_front() else { break };
            self.drive(net, place, now);
            left -= 1;
        }
        // After the events, so that a response in time is no time-out.
        self.expire(net, now);
        // Events and new exchanges have a budget each, so that neither delays the other.
        let more =
            self.retire(net, budget) || self.feed(net, now, budget) || self.start(net, now, budget);
        if self.is_due_to_end(now) {
            self.end(net, now);
        }
        self.next_arrival = self.arrival().filter(|due| *due >= self.record.began);
        more || left == 0
    }

    fn next_deadline(&self) -> Option<Instant> {
        if self.state != LoadPhase::Running {
            return self.race.as_ref().and_then(Race::next_deadline);
        }
        let moves = !self.watch.is_stopped();
        let end = match self.plan.until {
            StopCondition::Elapsed(time) if moves => {
                Some(self.watch.when(self.record.began + time))
            }
            _ => None,
        };
        let oldest = |list: &IdleList, time| list.oldest().map(|(_, since)| since + time);
        Instant::earliest([
            end,
            self.arrival(),
            oldest(&self.opening, self.plan.connect_timeout),
            oldest(&self.waiting, self.plan.timeout),
            oldest(&self.closing, self.plan.timeout),
            oldest(&self.resting, open::REST),
            (!self.starved.is_empty()).then_some(self.next_asking),
        ])
    }

    fn is_done(&self) -> bool {
        self.state == LoadPhase::Over
    }
}
