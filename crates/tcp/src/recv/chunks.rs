//! A queue of received bytes in chunks, filled by copying and emptied by reference. What comes in a chunk
//! that it nearly fills is not copied.
//!
//! Chunks are filled to their last byte before the next is opened, and none is opened that is more than
//! twice the text at hand for it, or half of what is unread (and [`ChunkQueue::LEAST`]); the rest of one
//! that is mostly read is copied. So the memory behind the queue stays within twice its text and a constant,
//! whatever the size of the pieces it came in and is read in: a small text never keeps a large chunk. What
//! is beyond [`ChunkQueue::CHUNK`] comes from a [`ChunkPool`].

use bytes::{Bytes, BytesMut};

use whimbrel_base::{InlineQueue, cold_path};

use super::ChunkPool;
use super::part::each_part;
use whimbrel_base::packet::Payload;

/// Contiguous bytes of a stream, in chunks that an application can keep.
///
/// A peer that sends a byte at a time must not cost a chunk a byte: text is appended to the
/// last chunk while it has room.
#[derive(Debug, Default)]
pub struct ChunkQueue {
    full: InlineQueue<SealedChunk>,
    /// The chunk being filled, behind all others: it has text, and room.
    tail: BytesMut,
    /// Bytes of memory behind `tail`: of what was read of it as well.
    tail_pins: u32,
    bytes: u32,
    /// The sum of what the chunks of `full` pin.
    pinned: usize,
}

/// A chunk to which nothing is added.
#[derive(Debug)]
struct SealedChunk {
    text: Bytes,
    /// Bytes of memory that stay as long as it does.
    pins: u32,
}

impl ChunkQueue {
    /// The room of a chunk of the allocator's that is opened for more than its first text, at most.
    const CHUNK: usize = 2048;

    /// The least of these.
    const LEAST: usize = 256;

    /// The bytes that a chunk may pin beyond twice what is left of its text: less is not worth a copy.
    const SPARE: usize = 1024;

    /// Places for chunks that are kept when no chunk is left.
    const PLACES: usize = 4;

    /// Bytes in the queue.
    #[inline]
    pub fn len(&self) -> u32 {
        self.bytes
    }

    /// True if nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes of memory that are kept for it: chunks as they were allocated, and the places that name
    /// them. At most twice the text and 2,560.
    #[inline]
    pub fn pinned(&self) -> usize {
        let places = self.full.capacity() * size_of::<SealedChunk>() + self.full.len() * HEADER;
        self.pinned + self.tail_pins as usize + places
    }

    /// Appends `take` bytes of `payload` after its first `skip`: a copy, unless it is text in a chunk, and
    /// they are all of it.
    pub fn append(&mut self, pool: &mut ChunkPool, payload: Payload<'_>, skip: u32, take: u32) {
        if let Payload::InChunk(_, text) = payload
            && take == payload.len()
        {
            return self.push(text.keep(), (ChunkPool::LARGEST + HEADER) as u32);
        }
        let mut left = take as usize;
        each_part(payload, skip, take, |text| {
            left -= text.len();
            self.copy(pool, text, left);
        });
    }

    /// Appends a chunk without copying it; it pins `pins` bytes.
    #[inline]
    pub fn push(&mut self, text: Bytes, pins: u32) {
        if !self.tail.is_empty() {
            self.close_tail();
        }
        self.bytes += text.len() as u32;
        self.push_full(text, pins);
    }

    /// Appends a copy of the bytes, to the last chunk if there is room; `more` follow at once.
    #[inline]
    pub fn copy(&mut self, pool: &mut ChunkPool, text: &[u8], more: usize) {
        // Room remains: a chunk without is closed at once.
        if text.len() < self.tail.capacity() - self.tail.len() {
            self.tail.extend_from_slice(text);
            self.bytes += text.len() as u32;
        } else {
            self.copy_beyond(pool, text, more);
        }
    }

    /// The first chunk, or its first `most` bytes (>= 1) if it has more; the rest stays.
    pub fn pop_up_to(&mut self, most: usize) -> Option<Bytes> {
        let text = match self.full.front() {
            Some(first) if first.text.len() <= most => self.pop_full()?,
            _ => self.pop_part(most)?,
        };
        self.bytes -= text.len() as u32;
        if self.tail_pins as usize > Self::CHUNK + HEADER {
            self.trim_tail();
        }
        Some(text)
    }

    /// The first `most` bytes of the first chunk, or what the last one has so far.
    #[inline(never)]
    fn pop_part(&mut self, most: usize) -> Option<Bytes> {
        Some(match self.full.front_mut() {
            Some(first) => {
                let text = first.text.split_to(most);
                self.trim_first();
                text
            }
            None if self.tail.is_empty() => return None,
            None if self.tail.len() > most => self.tail.split_to(most).freeze(),
            // It was opened for as much as came then, and trimmed if something before it was read.
            None => self.take_tail().0.freeze(),
        })
    }

    /// Its bytes in order, piece by piece; they stay.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.full.iter().map(|chunk| &chunk.text[..]).chain(core::iter::once(&self.tail[..]))
    }

    /// Releases everything, and keeps the room for a few chunks.
    #[inline]
    pub fn clear(&mut self) {
        if self.full.capacity() > Self::PLACES || !self.full.is_empty() || self.tail_pins > 0 {
            self.release();
        }
        self.bytes = 0;
        self.pinned = 0;
    }

    /// Releases all that is held, and room beyond that for a few chunks.
    #[inline(never)]
    fn release(&mut self) {
        if self.full.capacity() > Self::PLACES {
            self.full = InlineQueue::new();
        } else if !self.full.is_empty() {
            self.full.clear();
        }
        if self.tail_pins > 0 {
            self.take_tail();
        }
    }

    /// Text for which the last chunk has no room beyond it.
    fn copy_beyond(&mut self, pool: &mut ChunkPool, text: &[u8], more: usize) {
        let room = self.tail.capacity() - self.tail.len();
        let (fitting, mut rest) = text.split_at_checked(room).unwrap_or((text, &[]));
        self.tail.extend_from_slice(fitting);
        if !self.tail.is_empty() {
            self.close_tail();
        }
        // Of most short connections the first chunk is the only one, and it is read at once: it is as
        // large as its text, as is text that would fill more than a chunk of the allocator's.
        let first = self.is_empty() && more == 0;
        self.bytes += text.len() as u32;
        while !rest.is_empty() {
            let capacity = self.room_for(rest.len() + more);
            if capacity <= Self::CHUNK && (first || rest.len() >= capacity) {
                return self.push_full(Bytes::copy_from_slice(rest), rest.len() as u32);
            }
            let (now, then) = rest.split_at_checked(capacity).unwrap_or((rest, &[]));
            self.open_tail(pool, capacity);
            self.tail.extend_from_slice(now);
            if self.tail.len() == self.tail.capacity() {
                self.close_tail();
            }
            rest = then;
        }
    }

    /// The room of a chunk that is opened for `text` bytes and what may follow: of a pool's if they need
    /// more than half of it, or half of what is unread does not fit in less.
    fn room_for(&self, text: usize) -> usize {
        let usual = (self.bytes as usize).clamp(Self::LEAST, Self::CHUNK);
        let (half, least) = (self.bytes as usize / 2, ChunkPool::LEAST);
        if text <= Self::CHUNK && half < least {
            return usual;
        }
        let unread = if half < least { 0 } else { 1 << half.ilog2() };
        text.next_power_of_two().max(unread).clamp(least, ChunkPool::LARGEST)
    }

    fn open_tail(&mut self, pool: &mut ChunkPool, capacity: usize) {
        self.tail = if capacity > Self::CHUNK {
            pool.take(capacity)
        } else {
            BytesMut::with_capacity(capacity)
        };
        self.tail_pins = (self.tail.capacity() + HEADER) as u32;
    }

    #[inline]
    fn push_full(&mut self, text: Bytes, pins: u32) {
        self.pinned += pins as usize;
        self.full.push_back(SealedChunk { text, pins });
    }

    #[inline]
    fn pop_full(&mut self) -> Option<Bytes> {
        let SealedChunk { text, pins } = self.full.pop_front()?;
        self.pinned -= pins as usize;
        let places = self.full.capacity();
        if places > Self::PLACES && places > 4 * self.full.len() {
            cold_path();
            self.full.shrink_to(Self::PLACES.max(2 * self.full.len()));
        }
        Some(text)
    }

    /// Moves the chunk being filled behind the full ones, without a copy if that wastes little.
    #[inline(never)]
    fn close_tail(&mut self) {
        let (tail, pins) = self.take_tail();
        if tail.len() >= pins as usize / 4 * 3 {
            self.push_full(tail.freeze(), pins);
        } else {
            self.push_full(Bytes::copy_from_slice(&tail), tail.len() as u32);
        }
    }

    fn take_tail(&mut self) -> (BytesMut, u32) {
        (core::mem::take(&mut self.tail), core::mem::take(&mut self.tail_pins))
    }

    /// Something was read: what is left of the text must not keep much more than itself.
    #[inline(never)]
    fn trim_tail(&mut self) {
        if self.pinned() > 2 * self.bytes as usize + Self::SPARE {
            let (tail, _) = self.take_tail();
            self.push_full(Bytes::copy_from_slice(&tail), tail.len() as u32);
        }
    }

    /// Of the first chunk something was read: what is left must not keep much more than itself.
    fn trim_first(&mut self) {
        let Some(first) = self.full.front_mut() else { return };
        let (left, pins) = (first.text.len(), first.pins as usize);
        if pins > 2 * left + Self::SPARE {
            first.text = Bytes::copy_from_slice(&first.text);
            first.pins = left as u32;
            self.pinned -= pins - left;
        }
    }
}

/// Bytes of the record by which memory is shared, once it is.
const HEADER: usize = 40;
