//! The drain after SIGTERM: no new connections, and an end of each with its next response.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_io::{Activity, Port, Stop};
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::{ListenerId, Shard};

use super::port::{BUDGET, ServePort};
use super::report;

/// Sets a [`Stop`] when the last connection has ended, or the time for it is over.
pub(crate) struct Draining {
    /// The server of this shard.
    pub(crate) served: ServePort,
    /// When connections between requests are closed next.
    sweep: Instant,
    until: Instant,
    drained: Stop,
}

impl Draining {
    /// Begins to drain for at most `time`, and sets `drained` at the end. Connections that wait to be accepted
    /// are served.
    pub(crate) fn new(
        mut served: ServePort,
        shard: &mut Shard,
        listeners: Vec<ListenerId>,
        [now, until]: [Instant; 2],
        drained: Stop,
    ) -> Self {
        // Clients may connect all the time, so the number of turns is bounded.
        for _ in 0..MOST_TURNS {
            if !served.accept_waiting(now, shard, BUDGET) {
                break;
            }
        }
        listeners.into_iter().for_each(|listener| shard.close_listener(listener));
        served.server.drain();
        Self { served, sweep: now + QUIET, until, drained }
    }
}

impl Port for Draining {
    fn drain(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        self.served.drain(now, shard)
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let activity = self.served.flush(now, shard);
        if now >= self.sweep {
            self.served.server.close_idle(shard);
            self.sweep = now + QUIET;
        }
        let is_empty = self.served.server.statistics().open == 0;
        let is_over = is_empty && report::left_over(&shard.census()).is_empty();
        if is_over || now >= self.until {
            self.drained.set();
        }
        activity
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        self.served.on_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([Some(self.sweep), Some(self.until), self.served.next_deadline()])
    }
}

/// Interval at which connections between requests are closed: requests that are on their way when the drain
/// begins arrive before the first time.
pub(super) const QUIET: Duration = Duration::from_secs(1);
/// Turns in which waiting connections are accepted.
const MOST_TURNS: usize = 64;
