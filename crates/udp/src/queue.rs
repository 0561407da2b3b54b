//! Queue of received datagrams, bounded in bytes.
//!
//! Each datagram is copied into memory of its own size: a small one never pins the buffer of a
//! burst, and the counted bytes are the allocated ones.

use alloc::collections::VecDeque;

use crate::datagram::{Arrived, OVERHEAD, Received};

/// Datagrams in the order of their arrival.
#[derive(Debug)]
pub(crate) struct RecvQueue {
    queue: VecDeque<Received>,
    held: usize,
    most: usize,
}

impl RecvQueue {
    pub(crate) const fn new(most: usize) -> Self {
        Self { queue: VecDeque::new(), held: 0, most }
    }

    /// Returns the bytes that a datagram would take, if there is room for it. As on Linux, there is
    /// room while less than the limit is in use, so that one datagram of any size always fits.
    pub(crate) fn room_for(&self, len: usize) -> Option<usize> {
        (self.held < self.most).then_some(len + OVERHEAD)
    }

    pub(crate) fn push(&mut self, arrived: &Arrived<'_>) {
        self.held += arrived.data.len() + OVERHEAD;
        self.queue.push_back(Received::of(arrived));
    }

    pub(crate) fn pop(&mut self) -> Option<Received> {
        let received = self.queue.pop_front()?;
        self.held -= received.data.len() + OVERHEAD;
        // The memory of a large burst is not kept: each waiting place was counted twice.
        if self.queue.is_empty() && self.queue.capacity() > KEPT {
            self.queue = VecDeque::new();
        }
        Some(received)
    }

    pub(crate) fn first(&self) -> Option<&Received> {
        self.queue.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the bytes that it takes.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// Sets the limit in bytes; datagrams in the queue stay.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most;
    }
}

/// Places that an empty queue keeps.
const KEPT: usize = 16;
