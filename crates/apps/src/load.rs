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
    state: LoadPhase,
    /// When it is to be polled to begin the next exchange, at the rate asked for.
    next_arrival: Option<Instant>,
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
enum LoadPhase {
    NotBegun,
    /// One of several addresses is to answer first.
    Seeking,
    Running,
    Over,
}

/// What became of a step.
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
        !matches!(self.state, LoadPhase::NotBegun | LoadPhase::Seeking)
    }

    /// When the next exchange begins, if a connection is free for it.
    fn arrival(&self) -> Option<Instant> {
        let begins = !self.watch.is_stopped() && !self.free.is_empty() && self.has_more_to_begin();
        begins.then(|| self.watch.when(self.arrivals.next(self.record.until)))
    }

    /// What was left when it ended.
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
        // Behind the events: an answer that is there in time is no time-out.
        self.expire(net, now);
        // Events and beginnings have a budget each: neither keeps the other waiting.
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
