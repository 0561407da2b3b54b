//! Messages between a listener for any destination and the shards: incoming connections and decisions.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{Permit, Sender};
use tokio::sync::oneshot;
use whimbrel_stack::{Answer, SynHandle, SynRequest, Withdrawal};

use crate::backlog::Accepted;
use crate::cell::Settings;

/// A request to a shard about connections to any destination.
#[derive(Debug)]
pub(crate) enum AnyRequest {
    /// Start listening and send incoming connections to this end.
    Listen(AnyEnd),
    /// The queue has room, or its receiver has gone.
    Room,
    /// Answer a SYN as decided.
    Decide(Decision),
    /// Stop listening: the listener was dropped.
    Close,
}

/// A shard's sender to the listener.
#[derive(Debug)]
pub(crate) struct AnyEnd {
    /// Number of the shard.
    pub(crate) shard: usize,
    pub(crate) queue: Sender<Dial>,
    /// True if the shard has more connections than the queue had room for.
    pub(crate) crowded: Arc<AtomicBool>,
    /// Settings of new streams.
    pub(crate) settings: Settings,
}

/// A SYN that waits for a decision.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) asked: SynRequest,
    /// Number of its shard.
    pub(crate) shard: usize,
    /// Receives the reason if it is withdrawn.
    pub(crate) withdrawn: oneshot::Receiver<Withdrawal>,
}

/// A decision about a SYN.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) syn: SynHandle,
    pub(crate) answer: Answer,
    pub(crate) opened: Option<OpenedSender>,
}

/// Sender of a completed connection to its task.
pub(crate) type OpenedSender = oneshot::Sender<io::Result<Accepted>>;

impl AnyEnd {
    /// Reserves a place in the queue. Without one, the shard gets [`AnyRequest::Room`] later.
    pub(crate) fn place(&self) -> Option<Permit<'_, Dial>> {
        self.queue.try_reserve().ok().or_else(|| {
            self.crowded.store(true, Ordering::SeqCst);
            // A receiver that took one out in between did not see the flag.
            self.queue.try_reserve().ok()
        })
    }
}
