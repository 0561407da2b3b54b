//! Echo requests, where the shard is driven: who awaits a reply.

use std::collections::BTreeMap;
use std::io;

use tokio::sync::oneshot;
use whimbrel_stack::{Ping, PingId, Pong, Shard};

use crate::fault;
use crate::waiters::deliver;

/// An echo request to be sent, and who awaits what comes of it.
#[derive(Debug)]
pub(crate) struct PingRequest {
    pub(crate) ping: Ping,
    pub(crate) answer: oneshot::Sender<io::Result<Pong>>,
}

/// The echo requests that are under way.
#[derive(Default, Debug)]
pub(crate) struct PingPort {
    waiting: BTreeMap<PingId, oneshot::Sender<io::Result<Pong>>>,
}

impl PingPort {
    pub(crate) fn process_request(&mut self, shard: &mut Shard, request: PingRequest) {
        let PingRequest { ping, answer } = request;
        match shard.ping(&ping) {
            Ok(id) => drop(self.waiting.insert(id, answer)),
            // Whoever asked may have gone.
            Err(error) => drop(deliver(answer, Err(fault::ping(error)))),
        }
    }

    /// Tells who waits what came of it.
    pub(crate) fn tell(&mut self, shard: &mut Shard) {
        while let Some(end) = shard.poll_ping() {
            if let Some(answer) = self.waiting.remove(&end.id) {
                deliver(answer, end.result.map_err(fault::unanswered));
            }
        }
    }
}
