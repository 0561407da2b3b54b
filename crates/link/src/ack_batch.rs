//! Acknowledgments that wait and leave together, as on a line that grants time to send in turns.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;

/// Acknowledgments of one direction that leave next.
#[derive(Debug)]
pub(crate) struct AckBatch {
    every: Duration,
    leaves: Instant,
    waiting: VecDeque<Bytes>,
}

impl AckBatch {
    /// A batch that leaves at the multiples of `every`, which is not zero.
    pub(crate) const fn new(every: Duration) -> Self {
        Self { every, leaves: Instant::ZERO, waiting: VecDeque::new() }
    }

    /// Takes an acknowledgment. Returns it if it leaves at once.
    pub(crate) fn push(&mut self, now: Instant, frame: Bytes) -> Option<Bytes> {
        let every = self.every.as_nanos() as u64;
        self.leaves = Instant::from_nanos(now.as_nanos().div_ceil(every).saturating_mul(every));
        if self.leaves == now {
            return Some(frame);
        }
        self.waiting.push_back(frame);
        None
    }

    /// Time when the waiting ones leave.
    pub(crate) fn leaves(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.leaves)
    }

    /// Takes the first of the waiting ones.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        self.waiting.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
