//! Sender of unclaimed packets from a shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{Sender, error::TrySendError};
use whimbrel_stack::Shard;

/// Sends unclaimed packets from a shard to [`crate::UnclaimedPackets`].
#[derive(Clone, Debug)]
pub(crate) struct UnclaimedSender {
    packets: Sender<Bytes>,
    dropped: Arc<AtomicU64>,
}

impl UnclaimedSender {
    /// Creates a sender that counts packets without room in `dropped`.
    pub(crate) fn new(packets: Sender<Bytes>, dropped: Arc<AtomicU64>) -> Self {
        Self { packets, dropped }
    }

    /// Forwards the unclaimed packets that a shard has kept. Returns true while the receiver exists.
    pub(crate) fn forward(&self, shard: &mut Shard) -> bool {
        while let Some(packet) = shard.poll_unclaimed() {
            match self.packets.try_send(packet) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
                Err(TrySendError::Closed(_)) => return false,
            }
        }
        !self.packets.is_closed()
    }
}
