//! Queue of received datagrams, bounded in bytes.
//!
//! A datagram is copied into memory of its own size, a short one into a chunk that it shares: it never
//! pins the buffer of a burst.

use alloc::collections::VecDeque;

use bytes::Bytes;
use whimbrel_base::SharedChunks;

use crate::datagram::{ALLOCATOR, Arrived, Received};

/// Memory for datagrams of at most 128 bytes, of all sockets.
pub(crate) type ShortDatagrams = SharedChunks<512>;

impl Received {
    /// Bytes that one counts in addition to its data while it waits: its place in a half-empty queue, the
    /// chunk that short ones share, because each can be the last in it, and the allocator's overhead.
    ///
    /// A long one counts that chunk, too, which saves a branch. One of 1 byte counts 721 and one of 1,472
    /// bytes 2,192; Linux 6.18 counts 832 and 2,304 (`SO_MEMINFO`, over its loopback).
    pub const OVERHEAD: usize = 2 * size_of::<Self>() + ShortDatagrams::CHUNK + ALLOCATOR;
}

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
        (self.held < self.most).then_some(len + Received::OVERHEAD)
    }

    pub(crate) fn push(&mut self, arrived: &Arrived<'_>, memory: &mut ShortDatagrams) {
        let Arrived { from, to, data, class, hop_limit, dont_fragment } = *arrived;
        self.held += data.len() + Received::OVERHEAD;
        let data = match data.len() {
            0..=ShortDatagrams::MOST => memory.keep(data),
            _ => Bytes::copy_from_slice(data),
        };
        self.queue.push_back(Received { from, to, data, class, hop_limit, dont_fragment });
    }

    /// Takes the oldest, and the bytes that it took.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Received, usize)> {
        let bytes = self.first()?.data.len() + Received::OVERHEAD;
        self.held -= bytes;
        let received = match self.len() {
            1 if self.queue.capacity() > KEPT => self.pop_last(),
            _ => self.queue.pop_front(),
        };
        received.map(|received| (received, bytes))
    }

    /// The memory of a large burst is not kept: each waiting place was counted twice.
    #[inline(never)]
    fn pop_last(&mut self) -> Option<Received> {
        core::mem::take(&mut self.queue).pop_front()
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
