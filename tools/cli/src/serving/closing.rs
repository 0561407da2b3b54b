//! The end: the last segments go out, and what remains is counted.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_io::{Activity, Port, Stop};
use whimbrel_stack::Shard;

use super::port::ServePort;
use super::report;

/// Sets a [`Stop`] when only TIME-WAIT is left, or after [`GRACE`].
pub(crate) struct Closing {
    /// The server of this shard.
    pub(crate) served: ServePort,
    /// When the last words are on their way.
    said: Option<Instant>,
    until: Instant,
    released: Stop,
}

impl Closing {
    /// Begins to close at `now`; sets `released` when all has gone.
    pub(crate) fn new(served: ServePort, now: Instant, released: Stop) -> Self {
        Self { served, said: Some(now + WORDS), until: now + GRACE, released }
    }
}

impl Port for Closing {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        while shard.poll_event().is_some() {}
        if self.said.take_if(|said| now >= *said).is_some() {
            self.served.let_go(shard, now);
        }
        let nothing = self.said.is_none() && report::left_over(&shard.census()).is_empty();
        if now >= self.until || nothing {
            self.released.set();
        }
        Activity::Idle
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.said.unwrap_or(self.until))
    }
}

/// Time for the last responses to leave.
const WORDS: Duration = Duration::from_millis(1);
/// Time for peers to acknowledge the last segments: a few round trips of any path.
const GRACE: Duration = Duration::from_secs(1);
