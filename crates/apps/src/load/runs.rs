//! The same load several times, one after the other, over the same transport: what the earlier
//! runs left behind (TIME-WAIT above all) is there when the later ones begin.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_tcp::Instant;

use super::{Close, Confidence, Load, Plan};
use crate::Record;
use crate::transport::{Model, Transport};

/// Several runs of one load. Poll it as a [`Model`].
#[derive(Debug)]
pub struct Runs<T: Transport> {
    plan: Plan,
    repeat: Repeat,
    current: Load<T>,
    /// When the next run begins, between two.
    next: Option<Instant>,
    finished: Vec<Finished>,
}

/// How often a load runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repeat {
    /// At least that often (>= 1).
    pub least: u32,
    /// And until the mean of the rates is that sure,
    pub until: Option<Confidence>,
    /// but not more often than that (>= `least`).
    pub most: u32,
    /// The pause between two runs.
    pub gap: Duration,
}

impl Repeat {
    /// That often, with that pause.
    pub const fn times(count: u32, gap: Duration) -> Self {
        Self { least: count, until: None, most: count, gap }
    }
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What it measured.
    pub record: Record,
    /// What was under way at its end.
    pub close: Close,
}

impl<T: Transport> Runs<T> {
    /// Runs of `plan`.
    pub fn new(plan: Plan, repeat: Repeat) -> Self {
        Self { repeat, current: Load::new(plan.clone()), next: None, finished: Vec::new(), plan }
    }

    /// The run that is under way, or the last one.
    pub const fn current(&self) -> &Load<T> {
        &self.current
    }

    /// The runs that are over.
    pub fn finished(&self) -> &[Finished] {
        &self.finished
    }

    /// Ends it now; the run under way counts as far as it came.
    pub fn end(&mut self, net: &mut T, now: Instant) {
        if self.is_done() {
            return;
        }
        self.repeat.least = 0;
        self.repeat.most = 0;
        if self.next.take().is_none() {
            self.current.end(net, now);
            self.finish();
        }
    }

    fn finish(&mut self) {
        let (record, close) = (self.current.record().clone(), self.current.close());
        self.finished.push(Finished { record, close });
    }

    /// Whether another run is to follow those that are over.
    fn is_to_go_on(&self) -> bool {
        let count = u32::try_from(self.finished.len()).unwrap_or(u32::MAX);
        let rates = || self.finished.iter().map(|run| run.record.rate()).collect::<Vec<_>>();
        let unsure = || self.repeat.until.is_some_and(|sure| !sure.holds(&rates()));
        count < self.repeat.least || count < self.repeat.most && unsure()
    }
}

impl<T: Transport> Model<T> for Runs<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        if let Some(next) = self.next {
            // Nobody waits for what is told of connections that were let go.
            while net.poll_event().is_some() {}
            if now < next {
                return false;
            }
            self.next = None;
            self.current = Load::new(self.plan.clone());
        }
        if self.current.is_done() {
            return false;
        }
        let more = self.current.poll(net, now, budget);
        if self.current.is_done() {
            self.finish();
            self.next = self.is_to_go_on().then(|| now + self.repeat.gap);
        }
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next.or_else(|| self.current.next_deadline())
    }

    fn is_done(&self) -> bool {
        self.next.is_none() && self.current.is_done()
    }
}
