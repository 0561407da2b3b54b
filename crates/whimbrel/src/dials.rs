//! What crosses between a listener for any destination and the shards: who dials, and what is decided.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{Permit, Sender};
use tokio::sync::oneshot;
use whimbrel_stack::{Answer, Asked, SynHandle, Withdrawal};

use crate::backlog::Accepted;
use crate::cell::Settings;

/// What is asked of a shard about connections to any destination.
#[derive(Debug)]
pub(crate) enum AnyRequest {
    /// Listen, and tell of them by this end.
    Listen(AnyEnd),
    /// There is room to tell of more, or nobody to tell.
    Room,
    /// Answer a SYN as somebody decided.
    Decide(Decision),
    /// Listen no more: nobody holds the listener.
    Close,
}

/// A shard's way to the listener.
#[derive(Debug)]
pub(crate) struct AnyEnd {
    /// The number of the shard whose end it is.
    pub(crate) shard: usize,
    pub(crate) queue: Sender<Dial>,
    /// It has more than the queue had room for.
    pub(crate) crowded: Arc<AtomicBool>,
    /// What the streams begin with.
    pub(crate) settings: Settings,
}

/// Somebody dials, and waits for a decision.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) asked: Asked,
    /// The number of the shard that asks.
    pub(crate) shard: usize,
    /// Tells if it is gone.
    pub(crate) withdrawn: oneshot::Receiver<Withdrawal>,
}

/// What somebody decided about a SYN.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) syn: SynHandle,
    pub(crate) answer: Answer,
    pub(crate) opened: Option<OpenedSender>,
}

/// The way of a connection that is complete to whoever accepted it.
pub(crate) type OpenedSender = oneshot::Sender<io::Result<Accepted>>;

impl AnyEnd {
    /// A place in the listener's queue; if there is none, the shard is asked again once there is.
    pub(crate) fn place(&self) -> Option<Permit<'_, Dial>> {
        self.queue.try_reserve().ok().or_else(|| {
            self.crowded.store(true, Ordering::SeqCst);
            // Who took one out in between did not see that.
            self.queue.try_reserve().ok()
        })
    }
}
