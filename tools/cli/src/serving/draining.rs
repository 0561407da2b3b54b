//! The drain after SIGTERM: no new connections, and an end of each with its next response.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_io::{Activity, Port, Stop};
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{ListenerId, Shard};

use super::port::{BUDGET, ServePort};

/// A shard that drains: until the last connection of all shards has ended, or the time for it is over.
pub(crate) struct Draining {
    /// The server of this shard.
    pub(crate) served: ServePort,
    /// Those that are still open.
    listeners: Vec<ListenerId>,
    listens_until: Instant,
    /// When connections between requests are closed next.
    sweep: Instant,
    /// When the states of connections are examined next.
    look: Instant,
    until: Instant,
    drain: Arc<Drain>,
    is_over: bool,
}

/// The drain of all shards. None ends before the last, because until then it answers SYNs and forwards frames.
pub(crate) struct Drain {
    /// Shards with connections.
    left: AtomicUsize,
    drained: Stop,
}

impl Drain {
    /// Of this many shards.
    pub(crate) fn new(shards: usize) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { left: AtomicUsize::new(shards), drained: Stop::new()? }))
    }

    /// Set at the end.
    pub(crate) const fn drained(&self) -> &Stop {
        &self.drained
    }
}

impl Draining {
    /// Begins to drain between these times, and notes its end in `drain`. Connections whose handshake has begun
    /// are served, too.
    pub(crate) fn new(
        mut served: ServePort,
        listeners: Vec<ListenerId>,
        [now, until]: [Instant; 2],
        drain: Arc<Drain>,
    ) -> Self {
        served.server.drain();
        let (listens_until, sweep) = (now + HANDSHAKE, now + QUIET);
        let (look, is_over) = (now, false);
        Self { served, listeners, listens_until, sweep, look, until, drain, is_over }
    }

    /// Closes the listeners once no handshake is under way, or the time for it is over.
    fn close_listeners(&mut self, now: Instant, shard: &mut Shard) {
        if shard.census().syn_entries > 0 && now < self.listens_until {
            return;
        }
        // Clients may connect all the time, so the number of turns is bounded.
        for _ in 0..MOST_TURNS {
            if !self.served.accept_waiting(now, shard, BUDGET) {
                break;
            }
        }
        self.listeners.drain(..).for_each(|listener| shard.close_listener(listener));
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
        if !self.listeners.is_empty() {
            self.close_listeners(now, shard);
        }
        let looks = now >= self.look;
        if looks {
            self.look = now + LOOK;
        }
        let is_over = looks
            && self.listeners.is_empty()
            && self.served.server.statistics().open == 0
            && has_delivered(shard);
        if is_over && !self.is_over {
            self.is_over = true;
            self.drain.left.fetch_sub(1, Ordering::AcqRel);
        }
        if self.drain.left.load(Ordering::Acquire) == 0 || now >= self.until {
            self.drain.drained.set();
        }
        activity
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        self.served.on_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let listens = (!self.listeners.is_empty()).then_some(self.listens_until);
        let own = self.look.min(self.sweep).min(self.until);
        Instant::earliest([Some(own), listens, self.served.next_deadline()])
    }
}

/// True if the peers have acknowledged everything: what is left waits for their FIN, or in TIME-WAIT.
fn has_delivered(shard: &Shard) -> bool {
    let delivered = [SocketState::FinWait2, SocketState::TimeWait, SocketState::Listen];
    shard.states().iter().all(|(state, count)| count == 0 || delivered.contains(&state))
}

/// Interval at which connections between requests are closed: requests that are on their way when the drain
/// begins arrive before the first time.
pub(super) const QUIET: Duration = Duration::from_secs(1);
/// Longest time for handshakes that have begun: a round trip of most paths.
const HANDSHAKE: Duration = Duration::from_millis(200);
/// Interval at which states are examined, which walks all connections.
const LOOK: Duration = Duration::from_millis(100);
/// Turns in which waiting connections are accepted.
const MOST_TURNS: usize = 64;
