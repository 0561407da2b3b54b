//! What waits for an application to receive it, bounded in bytes.
//!
//! Each datagram is copied into memory of its own, as large as it is: one of a few bytes never pins the
//! buffer of a burst, and what is counted is what is held.

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

    /// What a datagram would hold, if there is room for it. As on Linux there is as long as less is held
    /// than may be, so that one datagram, however large, always has room.
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
        // What a burst needed once is not kept for ever: each place that waits was counted twice.
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

    /// What it holds, bytes.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// From now on so many bytes may be held; what is held stays.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most;
    }
}

/// Places that an empty queue keeps.
const KEPT: usize = 16;
