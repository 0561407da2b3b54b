//! A peer that sends pieces in some order, and a receive buffer that is measured after each.

use bytes::Bytes;
use whimbrel_base::packet::Payload;
use whimbrel_tcp::recv::{ChunkPool, Held, RecvBuffer, Text};

use crate::allocator::held;

/// A receive buffer, and what of the stream arrived.
pub(crate) struct Feed {
    buffer: RecvBuffer,
    /// Empty whenever something is measured: what the buffer has is the buffer's.
    pool: ChunkPool,
    /// Bytes that the allocator handed out before.
    before: isize,
    /// By offset from the start of the stream: whether the byte arrived and was not refused.
    arrived: Vec<bool>,
    /// Ranges beyond RCV.NXT.
    ranges: usize,
    /// Bytes that arrived, unread and out of order.
    text: usize,
    nxt: usize,
    read: usize,
    limit: usize,
    case: String,
    frame: Vec<u8>,
}

impl Feed {
    pub(crate) fn new(len: usize, limit: usize, case: String) -> Self {
        let (arrived, frame) = (vec![false; len + 1], Vec::with_capacity(1 << 16));
        let (buffer, pool) = (RecvBuffer::default(), ChunkPool::default());
        let (before, ranges, text, nxt, read) = (held(), 0, 0, 0, 0);
        Self { buffer, pool, before, arrived, ranges, text, nxt, read, limit, case, frame }
    }

    /// The bytes `from .. to` arrive, and all is measured.
    pub(crate) fn take(&mut self, from: usize, to: usize) {
        let (from, to) = (from.max(self.nxt), to.min(self.arrived.len() - 1));
        if from >= to {
            return;
        }
        let mut frame = core::mem::take(&mut self.frame);
        frame.clear();
        frame.extend((from..to).map(byte));
        let fresh = self.put(from, to, Payload::borrowed(&frame));
        self.frame = frame;
        if fresh {
            self.note(from, to);
        }
        self.measure();
    }

    /// The application reads `most` bytes at a time until nothing is left.
    pub(crate) fn drain(&mut self, most: usize) {
        while let Some(chunk) = self.buffer.read(most) {
            assert!(chunk.iter().copied().eq((self.read..).map(byte).take(chunk.len())));
            self.read += chunk.len();
            self.text -= chunk.len();
            drop(chunk);
            self.measure();
        }
        assert_eq!(self.read, self.nxt, "all in order was read");
    }

    /// The application reads all, and keeps the last chunk.
    pub(crate) fn read_and_keep_last(&mut self) -> Bytes {
        let mut last = Bytes::new();
        while let Some(chunk) = self.buffer.read(usize::MAX) {
            self.text -= chunk.len();
            last = chunk;
        }
        self.buffer.clear();
        last
    }

    pub(crate) fn nxt(&self) -> usize {
        self.nxt
    }

    /// Bytes of memory held for the buffer now.
    pub(crate) fn allocated(&self) -> usize {
        (held() - self.before).try_into().expect("no more was freed than allocated")
    }

    fn put(&mut self, from: usize, to: usize, payload: Payload<'_>) -> bool {
        let take = (to - from) as u32;
        if from == self.nxt {
            self.nxt += self.buffer.append(&mut self.pool, payload, 0, take) as usize;
            return true;
        }
        let (ahead, text) = ((from - self.nxt) as u32, Text { skip: 0, take });
        self.buffer.hold(ahead, payload, text, self.limit) != Held::Refused
    }

    fn note(&mut self, from: usize, to: usize) {
        for at in from..to {
            if !std::mem::replace(&mut self.arrived[at], true) {
                let neighbours = [at.checked_sub(1), Some(at + 1)];
                let touching = neighbours.into_iter().flatten().filter(|at| self.arrived[*at]);
                self.ranges = self.ranges + 1 - touching.count();
                self.text += 1;
            }
        }
    }

    /// Checks that the memory is within its bound, and that its report is true.
    fn measure(&mut self) {
        while !self.pool.is_empty() {
            self.pool.trim();
        }
        let in_order = usize::from(self.nxt > 0);
        let bound = 2 * self.text + 64 * (self.ranges - in_order) + 4_096;
        let allocated = self.allocated();
        let pinned = self.buffer.pinned();
        let of = format_args!("{} bytes in {} ranges: {}", self.text, self.ranges, self.case);
        assert!(allocated <= bound, "{allocated} bytes allocated for {of}, {bound} allowed");
        assert!(pinned <= bound, "{pinned} bytes pinned for {of}, {bound} allowed");
        assert!(allocated <= pinned, "{allocated} bytes allocated for {of}, {pinned} told");
    }
}

fn byte(at: usize) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}
