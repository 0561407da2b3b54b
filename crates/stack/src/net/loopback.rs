//! Packets that a host sent to itself: between two calls they wait here, as on a wire without length.

use alloc::collections::VecDeque;

use whimbrel_base::packet::TxSegment;

/// A bounded queue. What does not fit is lost, as in the queue of an interface: who sent it sends it again.
#[derive(Debug, Default)]
pub(crate) struct LoopbackQueue {
    queue: VecDeque<TxSegment>,
    bytes: usize,
}

/// There is no room.
#[derive(Debug)]
pub(crate) struct QueueFull;

impl LoopbackQueue {
    /// Linux keeps 1,000 (`net.core.netdev_max_backlog`).
    const MOST: usize = 1_024;
    /// With super-segments of 64 KiB those would be 64 MiB.
    const MOST_BYTES: usize = 4 << 20;

    pub(crate) fn push(&mut self, segment: TxSegment) -> Result<(), QueueFull> {
        let bytes = self.bytes + segment.len();
        if self.queue.len() >= Self::MOST || bytes > Self::MOST_BYTES {
            return Err(QueueFull);
        }
        self.bytes = bytes;
        self.queue.push_back(segment);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<TxSegment> {
        let segment = self.queue.pop_front()?;
        self.bytes -= segment.len();
        if self.queue.is_empty() {
            // 730 bytes each: what a burst took is given back.
            self.queue = VecDeque::new();
        }
        Some(segment)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
