//! Echo requests of a shard, on its thread.

use std::collections::BTreeMap;
use std::io;

use tokio::sync::oneshot;
use whimbrel_stack::{Ping, PingId, Pong, Shard};

use crate::fault;
use crate::waiters::deliver;

/// An echo request to send, with the sender of the result.
#[derive(Debug)]
pub(crate) struct PingRequest {
    pub(crate) ping: Ping,
    pub(crate) answer: oneshot::Sender<io::Result<Pong>>,
}

/// Outstanding echo requests.
#[derive(Default, Debug)]
pub(crate) struct PingPort {
    waiting: BTreeMap<PingId, oneshot::Sender<io::Result<Pong>>>,
}

impl PingPort {
    pub(crate) fn process_request(&mut self, shard: &mut Shard, request: PingRequest) {
        let PingRequest { ping, answer } = request;
        match shard.ping(&ping) {
            Ok(id) => drop(self.waiting.insert(id, answer)),
            // The caller may have gone.
            Err(error) => drop(deliver(answer, Err(fault::ping(error)))),
        }
    }

    /// Sends results to the waiting tasks.
    pub(crate) fn tell(&mut self, shard: &mut Shard) {
        while let Some(end) = shard.poll_ping() {
            if let Some(answer) = self.waiting.remove(&end.id) {
                deliver(answer, end.result.map_err(fault::unanswered));
            }
        }
    }
}
