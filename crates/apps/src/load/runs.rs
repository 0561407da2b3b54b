//! The same load several times, one after the other, over the same transport: what the earlier
//! runs left behind (TIME-WAIT above all) is there when the later ones begin.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_tcp::Instant;

use super::{Close, Load, Plan};
use crate::Record;
use crate::transport::{Model, Transport};

/// Several runs of one load. Poll it as a [`Model`].
#[derive(Debug)]
pub struct Runs<T: Transport> {
    plan: Plan,
    /// Runs still to begin, after the current one.
    left: u32,
    gap: Duration,
    current: Load<T>,
    /// When the next run begins, between two.
    next: Option<Instant>,
    finished: Vec<Finished>,
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
    /// `count` runs (>= 1), with a pause of `gap` between two.
    pub fn new(plan: Plan, count: u32, gap: Duration) -> Self {
        Self {
            left: count.saturating_sub(1),
            gap,
            current: Load::new(plan.clone()),
            next: None,
            finished: Vec::new(),
            plan,
        }
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
        self.left = 0;
        if self.next.take().is_none() {
            self.current.end(net, now);
            self.finish();
        }
    }

    fn finish(&mut self) {
        let (record, close) = (self.current.record().clone(), self.current.close());
        self.finished.push(Finished { record, close });
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
            self.left -= 1;
            self.current = Load::new(self.plan.clone());
        }
        if self.current.is_done() {
            return false;
        }
        let more = self.current.poll(net, now, budget);
        if self.current.is_done() {
            self.finish();
            self.next = (self.left > 0).then(|| now + self.gap);
        }
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next.or_else(|| self.current.next_deadline())
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.next.is_none() && self.current.is_done()
    }
}
