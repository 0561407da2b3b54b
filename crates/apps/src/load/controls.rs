//! What is wanted of a load while it runs, by whoever steers it.

use alloc::sync::Arc;
use core::fmt::Debug;
use core::time::Duration;

use whimbrel_base::Instant;

use super::connection::LoadConnection;
use super::{Load, LoadPhase};
use crate::Part;
use crate::transport::Transport;

/// Whoever steers a load. Each of its parts asks whenever it is polled, and once in [`LOOK`] at least.
pub trait Controls: Debug + Send + Sync {
    /// What is wanted of this part now.
    fn wanted(&self, part: Part) -> Wanted;
}

/// What is wanted of one part of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// How many connections of it there are at a time (>= 1). More begin at once; of those that are
    /// too many, the ones without an exchange go at once and the others when theirs is over.
    pub connections: u32,
    /// Whether it goes on.
    pub state: LoadState,
}

/// Whether a load goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadState {
    /// Requests are sent as the plan has it.
    Running,
    /// It stands still, and its time with it: no exchange begins or falls due, kept connections stay
    /// open. What is under way goes on, and counts; so do its time-outs, and the wait for a port.
    Paused,
}

/// Who steers a load, and which part of it this is.
#[derive(Debug)]
pub(super) struct ControlledPart {
    controls: Arc<dyn Controls>,
    part: Part,
    /// When they were asked last, and what they said.
    looked: Instant,
    pub(super) state: LoadState,
}

impl ControlledPart {
    pub(super) fn new(controls: Arc<dyn Controls>, part: Part) -> Self {
        Self { controls, part, looked: Instant::ZERO, state: LoadState::Running }
    }

    /// What is wanted of the load at this moment.
    pub(super) fn look(&mut self, now: Instant) -> Wanted {
        let wanted = self.controls.wanted(self.part);
        (self.looked, self.state) = (now, wanted.state);
        Wanted { connections: wanted.connections.max(1), ..wanted }
    }

    /// When to ask again at the latest.
    pub(super) fn next_look(&self) -> Instant {
        self.looked + LOOK
    }
}

impl<T: Transport> Load<T> {
    /// Does what is wanted from now on.
    pub(super) fn steer(&mut self, wanted: Wanted, now: Instant) {
        if self.state == LoadPhase::Over {
            return;
        }
        match wanted.state {
            LoadState::Running => self.watch.go_on(now),
            LoadState::Paused => self.watch.stop(now),
        }
        self.record.paused = self.watch.paused(now);
        if wanted.connections != self.plan.connections {
            self.plan.connections = wanted.connections;
            self.record.connections.change(wanted.connections);
            self.add_slots();
        }
    }

    /// As many slots as there shall be, at least.
    fn add_slots(&mut self) {
        while self.slots_in_force() < self.plan.connections as usize {
            let place = self.spare.pop().unwrap_or_else(|| {
                self.slots.push(LoadConnection::new(&self.plan.exchange));
                self.slots.len() as u32 - 1
            });
            self.free.push_back(place);
        }
    }

    /// Lets free slots go while there are more than there shall be. Returns whether more may be.
    pub(super) fn retire(&mut self, net: &mut T, budget: usize) -> bool {
        for _ in 0..budget {
            if self.slots_in_force() <= self.plan.connections as usize {
                return false;
            }
            let Some(place) = self.free.pop_front() else { return false };
            if let Some(id) = self.slots.get_mut(place as usize).and_then(|slot| slot.id.take()) {
                net.close(id);
                self.kept -= 1;
            }
            self.spare.push(place);
        }
        true
    }

    fn slots_in_force(&self) -> usize {
        self.slots.len() - self.spare.len()
    }
}

/// How soon controls are asked again at the latest: parts of one load, each on its own thread, stand
/// still and go on within that of each other.
pub const LOOK: Duration = Duration::from_millis(10);
