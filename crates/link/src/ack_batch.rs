//! Acknowledgments that wait for each other, as where a line grants time to send in turns.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;

/// Those of one direction that leave next.
#[derive(Debug)]
pub(crate) struct AckBatch {
    every: Duration,
    leaves: Instant,
    waiting: VecDeque<Bytes>,
}

impl AckBatch {
    /// Batches that leave at the multiples of `every`, which is not zero.
    pub(crate) const fn new(every: Duration) -> Self {
        Self { every, leaves: Instant::ZERO, waiting: VecDeque::new() }
    }

    /// An acknowledgment comes. Returns it if it leaves at once.
    pub(crate) fn push(&mut self, now: Instant, frame: Bytes) -> Option<Bytes> {
        let every = self.every.as_nanos() as u64;
        self.leaves = Instant::from_nanos(now.as_nanos().div_ceil(every).saturating_mul(every));
        if self.leaves == now {
            return Some(frame);
        }
        self.waiting.push_back(frame);
        None
    }

    /// When those that wait leave.
    pub(crate) fn leaves(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.leaves)
    }

    /// The first of those that wait.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        self.waiting.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
