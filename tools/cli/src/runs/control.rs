//! Controls of a running load, from a watcher's keys to its shards.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use whimbrel_apps::Part;
use whimbrel_apps::load::{Controls, LoadState, Wanted};

/// Controls of all parts of a load. The parts read them one by one, and nothing else depends on them,
/// so every order is relaxed.
#[derive(Debug)]
pub(crate) struct LoadControl {
    connections: AtomicU32,
    /// The fewest that there can be: one for each part.
    least: u32,
    is_paused: AtomicBool,
    has_ended: AtomicBool,
}

#[cfg_attr(not(any(feature = "tui", test)), expect(dead_code, reason = "there are no keys"))]
impl LoadControl {
    /// Controls for this many connections in this many parts.
    pub(crate) const fn new(connections: u32, parts: u32) -> Self {
        Self {
            connections: AtomicU32::new(connections),
            least: parts,
            is_paused: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Number of wanted connections.
    pub(crate) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Sets the number of connections: at least one for each part, and at most the option's limit.
    pub(crate) fn set_connections(&self, count: u32) {
        let count = count.clamp(self.least, MOST_CONNECTIONS.max(self.least));
        self.connections.store(count, Ordering::Relaxed);
    }

    /// State of the load.
    pub(crate) fn state(&self) -> LoadState {
        match self.is_paused.load(Ordering::Relaxed) {
            false => LoadState::Running,
            true => LoadState::Paused,
        }
    }

    /// Pauses the load, or resumes it.
    pub(crate) fn pause_or_go_on(&self) {
        self.is_paused.fetch_xor(true, Ordering::Relaxed);
    }

    /// It is to end now.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// True if the load is to end.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

impl Controls for LoadControl {
    fn wanted(&self, part: Part) -> Wanted {
        let share = part.share(self.connections().into());
        Wanted { connections: u32::try_from(share).unwrap_or(u32::MAX), state: self.state() }
    }
}

/// The limit of `--connections`.
const MOST_CONNECTIONS: u32 = 1_000_000;
