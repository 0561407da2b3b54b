//! The way of packets that nothing takes from a shard to whoever wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{Sender, error::TrySendError};
use whimbrel_stack::Shard;

/// A shard's way to whoever wants them.
#[derive(Clone, Debug)]
pub(crate) struct UnclaimedSender {
    packets: Sender<Bytes>,
    dropped: Arc<AtomicU64>,
}

impl UnclaimedSender {
    /// Counts in `dropped` what finds no room among `packets`.
    pub(crate) fn new(packets: Sender<Bytes>, dropped: Arc<AtomicU64>) -> Self {
        Self { packets, dropped }
    }

    /// Hands on what a shard keeps. Returns whether somebody wants more.
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
