//! Control of a load while it runs.

use alloc::sync::Arc;
use core::fmt::Debug;
use core::time::Duration;

use whimbrel_base::Instant;

use super::connection::LoadConnection;
use super::{Load, LoadPhase};
use crate::Part;
use crate::transport::Transport;

/// Controls a load. Each part of the load asks it at each poll, and at least once in [`LOOK`].
pub trait Controls: Debug + Send + Sync {
    /// The settings for `part` now.
    fn wanted(&self, part: Part) -> Wanted;
}

/// Settings of one part of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Number of concurrent connections (>= 1). If it rises, more open at once. If it falls,
    /// connections without an exchange close at once and the others after theirs.
    pub connections: u32,
    /// Run, pause or stop.
    pub state: LoadState,
}

/// Run, pause or stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadState {
    /// Requests are sent as in the plan.
    Running,
    /// The load and its clock stand still: no exchange begins or falls due, and kept connections
    /// stay open. Exchanges under way continue and count, and so do time-outs and the wait for a
    /// port.
    Paused,
}

/// Part of a load with its controls.
#[derive(Debug)]
pub(super) struct ControlledPart {
    controls: Arc<dyn Controls>,
    part: Part,
    /// Time and result of the last look.
    looked: Instant,
    pub(super) state: LoadState,
}

impl ControlledPart {
    pub(super) fn new(controls: Arc<dyn Controls>, part: Part) -> Self {
        Self { controls, part, looked: Instant::ZERO, state: LoadState::Running }
    }

    /// Reads the settings for this moment.
    pub(super) fn look(&mut self, now: Instant) -> Wanted {
        let wanted = self.controls.wanted(self.part);
        (self.looked, self.state) = (now, wanted.state);
        Wanted { connections: wanted.connections.max(1), ..wanted }
    }

    /// Latest time of the next look.
    pub(super) fn next_look(&self) -> Instant {
        self.looked + LOOK
    }
}

impl<T: Transport> Load<T> {
    /// Applies new settings.
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

    /// Adds slots up to the wanted number.
    fn add_slots(&mut self) {
        while self.slots_in_force() < self.plan.connections as usize {
            let place = self.spare.pop().unwrap_or_else(|| {
                self.slots.push(LoadConnection::new(&self.plan.exchange));
                self.slots.len() as u32 - 1
            });
            self.free.push_back(place);
        }
    }

    /// Removes free slots above the wanted number. Returns true if there may be more.
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

/// Longest interval between looks at the controls. The parts of a load, each on its own thread,
/// pause and resume within this time of each other.
pub const LOOK: Duration = Duration::from_millis(10);
