//! A model as a worker's port.

use std::time::Duration;

use whimbrel_apps::Model;
use whimbrel_io::{Activity, Port, Stop};
use whimbrel_stack::Shard;
use whimbrel_tcp::Instant;

use super::{BUDGET, Job};

/// A client: watched, and at its end it sets the stop.
pub(super) struct ClientPort<'j, J: Job> {
    pub(super) job: &'j mut J,
    pub(super) client: J::Client<Shard>,
    pub(super) done: Stop,
    next_watch: Instant,
}

impl<'j, J: Job> ClientPort<'j, J> {
    pub(super) fn new(job: &'j mut J, client: J::Client<Shard>, done: Stop) -> Self {
        Self { job, client, done, next_watch: Instant::ZERO }
    }
}

impl<J: Job> Port for ClientPort<'_, J> {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let more = self.client.poll(shard, now, BUDGET);
        if now >= self.next_watch {
            self.job.watch(&self.client, now);
            self.next_watch = now + WATCH;
        }
        if self.client.is_done() {
            self.done.set();
        }
        Activity::busy_if(more)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.client.next_deadline()
    }
}

/// A server.
pub(super) struct ServerPort<M>(pub(super) M);

impl<M: Model<Shard>> Port for ServerPort<M> {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        Activity::busy_if(self.0.poll(shard, now, BUDGET))
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.0.next_deadline()
    }
}

/// How often a client is looked at.
pub(super) const WATCH: Duration = Duration::from_millis(50);
