//! Repeats a load over one transport, so that later runs see the state that earlier ones left,
//! TIME-WAIT above all.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::Instant;

use super::controls::ControlledPart;
use super::{Confidence, Controls, Load, LoadPlan, LoadState, RunAgreement, RunCount, Unfinished};
use crate::transport::{Model, Transport};
use crate::{Part, Record};

/// Several runs of one load. Poll it as a [`Model`].
#[derive(Debug)]
pub struct Runs<T: Transport> {
    plan: LoadPlan,
    repeat: Repeat,
    current: Load<T>,
    /// Start of the next run, between two.
    next: Option<Instant>,
    /// Time to ask again for a decision, while other parts of this load still run.
    asking: Option<Instant>,
    /// The other parts, and this one's number among them.
    agreement: Option<(Arc<dyn RunAgreement>, u32)>,
    steered: Option<ControlledPart>,
    finished: Vec<Finished>,
}

/// Number of runs of a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repeat {
    /// Minimum number of runs (>= 1).
    pub least: u32,
    /// Required confidence of the mean rate, which ends the repetition.
    pub until: Option<Confidence>,
    /// Maximum number of runs (>= `least`).
    pub most: u32,
    /// The pause between two runs.
    pub gap: Duration,
}

impl Repeat {
    /// A fixed number of runs, with this pause.
    pub const fn times(count: u32, gap: Duration) -> Self {
        Self { least: count, until: None, most: count, gap }
    }
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Measurements of the run, without its warm-up.
    pub record: Record,
    /// Exchanges and connections not finished at its end.
    pub close: Unfinished,
}

impl<T: Transport> Runs<T> {
    /// Repeats `plan` as `repeat` says.
    pub fn new(plan: LoadPlan, repeat: Repeat) -> Self {
        Self {
            repeat,
            current: Load::new(plan.clone()),
            next: None,
            asking: None,
            agreement: None,
            steered: None,
            finished: Vec::new(),
            plan,
        }
    }

    /// Makes this part number `part` of a load whose parts decide together how often to run.
    #[must_use]
    pub fn with_agreement(self, agreement: Arc<dyn RunAgreement>, part: u32) -> Self {
        Self { agreement: Some((agreement, part)), ..self }
    }

    /// Makes this `part` of a load under the control of `controls`.
    #[must_use]
    pub fn with_controls(self, controls: Arc<dyn Controls>, part: Part) -> Self {
        Self { steered: Some(ControlledPart::new(controls, part)), ..self }
    }

    /// The run under way, or the last one.
    pub const fn current(&self) -> &Load<T> {
        &self.current
    }

    /// Finished runs.
    pub fn finished(&self) -> &[Finished] {
        &self.finished
    }

    /// Ends the load now; the run under way counts so far.
    pub fn end(&mut self, net: &mut T, now: Instant) {
        if self.is_done() {
            return;
        }
        self.repeat.least = 0;
        self.repeat.most = 0;
        let waits = self.next.take().is_some() | self.asking.take().is_some();
        if !waits {
            self.current.end(net, now);
            self.finish();
        }
    }

    /// Applies the controls to this run and to later ones.
    fn steer(&mut self, now: Instant) {
        let Some(steered) = &mut self.steered else { return };
        let wanted = steered.look(now);
        self.plan.connections = wanted.connections;
        self.current.steer(wanted, now);
    }

    /// True in a pause.
    fn is_paused(&self) -> bool {
        self.steered.as_ref().is_some_and(|steered| steered.state == LoadState::Paused)
    }

    fn finish(&mut self) {
        let (record, close) = (self.current.record().clone(), self.current.close());
        // The next run uses the server that this one found.
        let found = self.current.plan();
        (self.plan.target, self.plan.destinations) = (found.target, found.destinations.clone());
        self.finished.push(Finished { record, close });
    }

    /// Decides after a run if and when another follows.
    fn look_ahead(&mut self, now: Instant) {
        self.asking = None;
        match self.is_to_go_on() {
            Some(true) => self.next = Some(now + self.repeat.gap),
            Some(false) => {}
            None => self.asking = Some(now + ASK_AGAIN),
        }
    }

    /// True if another run follows; `None` while that depends on other parts of the load.
    fn is_to_go_on(&self) -> Option<bool> {
        let count = u32::try_from(self.finished.len()).unwrap_or(u32::MAX);
        let Some(sure) = self.repeat.until.filter(|_| count < self.repeat.most) else {
            return Some(count < self.repeat.least);
        };
        let runs = self.finished.iter().map(|run| RunCount::of(&run.record));
        let rates: Vec<_> = match &self.agreement {
            Some((agreement, part)) => agreement.tell(*part, &runs.collect::<Vec<_>>()),
            None => runs.map(|run| run.rate()).collect(),
        };
        // Another part may be ahead; all parts judge the same runs.
        let rates = rates.get(..self.finished.len())?;
        Some(count < self.repeat.least || !sure.holds(rates))
    }
}

impl<T: Transport> Model<T> for Runs<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        self.steer(now);
        if let Some(next) = self.next {
            // Events of closed connections do not matter any more.
            while net.poll_event().is_some() {}
            if now < next || self.is_paused() {
                return false;
            }
            self.next = None;
            self.current = Load::new(self.plan.clone());
        }
        if let Some(asking) = self.asking {
            while net.poll_event().is_some() {}
            if now >= asking {
                self.look_ahead(now);
            }
            return self.next.is_some();
        }
        if self.current.is_done() {
            return false;
        }
        let more = self.current.poll(net, now, budget);
        if self.current.is_done() {
            self.finish();
            self.look_ahead(now);
        }
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        // No run begins in a pause.
        let next = self.next.filter(|_| !self.is_paused());
        let own = next.or(self.asking).or_else(|| self.current.next_deadline());
        let look = self.steered.as_ref().filter(|_| !self.is_done()).map(ControlledPart::next_look);
        Instant::earliest([own, look])
    }

    fn is_done(&self) -> bool {
        self.next.is_none() && self.asking.is_none() && self.current.is_done()
    }
}

/// Delay before other parts are asked again for their progress: short against any run worth
/// measuring.
const ASK_AGAIN: Duration = Duration::from_millis(1);
