//! Chunks of memory for received text, used again and again.
//!
//! A chunk that is read goes to the application as [`Bytes`](bytes::Bytes), which may be dropped anywhere, on any thread.
//! So none is handed back: the pool keeps a second handle of each chunk, of no bytes, and by that finds out
//! whether it is the last one. Chunks are asked in the order in which they were lent, which is that in which
//! a stream is read.
//!
//! Rejected: a queue to which an owner returns its chunk on drop. It takes an allocation for each
//! chunk lent, a lock, and a way back to the shard for owners that outlive it.
//!
//! An allocator would do as well but for what it does with memory of this size: it gives back to the
//! system what lies on top, as soon as 128 KiB do, and faults it in anew for the next frame.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::BytesMut;

use whimbrel_base::packet::LARGEST_CHUNK;

/// The chunks of a shard.
#[derive(Debug)]
pub struct ChunkPool {
    sizes: [Chunks; SIZES],
    /// Bytes of all chunks of which it has a handle.
    bytes: usize,
    /// The most that may be.
    most: usize,
}

/// The chunks of one size.
#[derive(Debug, Default)]
struct Chunks {
    /// A handle of each that was lent, in the order in which they were.
    lent: VecDeque<LoanedChunk>,
    /// Those that are known to be free; the one that was used last is used next.
    idle: Vec<BytesMut>,
    /// The fewest that were idle since the pool was looked at last: those were not needed.
    unneeded: usize,
    /// True if any was taken since.
    in_use: bool,
}

#[derive(Debug)]
struct LoanedChunk {
    handle: BytesMut,
    /// The number of times that it was asked in vain whether it is free.
    refusals: u8,
}

impl Default for ChunkPool {
    fn default() -> Self {
        Self { sizes: Default::default(), bytes: 0, most: Self::MOST }
    }
}

impl ChunkPool {
    /// The smallest chunk, bytes: less is the allocator's.
    pub const LEAST: usize = 4 << 10;

    /// The largest chunk, bytes: a super-segment.
    pub const LARGEST: usize = LARGEST_CHUNK;

    /// Bytes that a pool keeps at most, unless it is set.
    const MOST: usize = 64 << 20;

    /// Chunks that are released at a time: each may cost the system the unmapping of its pages.
    const AT_A_TIME: usize = 16;

    /// An empty chunk with room for `bytes`, or for [`ChunkPool::LARGEST`] if that is less: of the next
    /// power of two, and of [`ChunkPool::LEAST`] at least.
    pub fn take(&mut self, bytes: usize) -> BytesMut {
        let size = bytes.clamp(Self::LEAST, Self::LARGEST).next_power_of_two();
        let index = (size / Self::LEAST).trailing_zeros() as usize;
        let Some(chunks) = self.sizes.get_mut(index) else {
            return BytesMut::with_capacity(size);
        };
        self.bytes -= size * chunks.look_for_idle(size);
        let mut chunk = chunks.idle.pop().unwrap_or_else(|| {
            self.bytes += size;
            BytesMut::with_capacity(size)
        });
        chunks.unneeded = chunks.unneeded.min(chunks.idle.len());
        chunks.in_use = true;
        // The part behind has all of the room, the one in front none of the bytes: a handle that holds
        // nothing of what is read.
        let room = chunk.split_off(0);
        chunks.lent.push_back(LoanedChunk { handle: chunk, refusals: 0 });
        if self.bytes > self.most {
            self.release_beyond();
        }
        room
    }

    /// From now on it keeps no more than so many bytes.
    pub const fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Bytes of the chunks that it has a handle of: with connections, with applications, and idle.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if it has any.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Releases chunks that were not needed since it was called last, 16 at a time; of a size that was
    /// not requested since, all. A chunk still lent then belongs to its holder. Returns whether more are to go.
    pub fn trim(&mut self) -> bool {
        let mut left = Self::AT_A_TIME;
        let mut size = Self::LEAST;
        for chunks in &mut self.sizes {
            let gone = chunks.release(left);
            self.bytes -= gone * size;
            left -= gone;
            if left == 0 {
                return true;
            }
            chunks.unneeded = chunks.idle.len();
            chunks.in_use = false;
            size *= 2;
        }
        false
    }

    /// Beyond its bound: as many go as make room for the largest, be they all of the smallest size.
    #[cold]
    fn release_beyond(&mut self) {
        for _ in 0..Self::AT_A_TIME {
            if self.bytes <= self.most {
                return;
            }
            self.release_oldest();
        }
    }

    /// Of the size that takes most memory, an idle one or the one lent first.
    fn release_oldest(&mut self) {
        let sizes = (0..SIZES).map(|index| Self::LEAST << index);
        let largest = self.sizes.iter_mut().zip(sizes);
        let largest = largest.max_by_key(|(chunks, size)| chunks.len() * size);
        if let Some((chunks, size)) = largest
            && (chunks.idle.pop().is_some() || chunks.lent.pop_front().is_some())
        {
            chunks.unneeded = chunks.unneeded.min(chunks.idle.len());
            self.bytes -= size;
        }
    }
}

impl Chunks {
    fn len(&self) -> usize {
        self.lent.len() + self.idle.len()
    }

    /// Asks those that were lent first whether they are free: more than are taken at a time, so that all are
    /// found. Returns the number of those that it gave up, as an owner holds them for long.
    fn look_for_idle(&mut self, size: usize) -> usize {
        let mut gone = 0;
        for _ in 0..ASKED {
            let Some(LoanedChunk { mut handle, refusals }) = self.lent.pop_front() else { break };
            if handle.try_reclaim(size) {
                self.idle.push(handle);
            } else if refusals < PATIENCE {
                // To the end: one that has an owner must not keep those behind it from being asked.
                self.lent.push_back(LoanedChunk { handle, refusals: refusals + 1 });
            } else {
                gone += 1;
            }
        }
        gone
    }

    /// Releases up to `most` that were not needed; returns how many that were.
    fn release(&mut self, most: usize) -> usize {
        let idle = self.unneeded.min(most);
        self.idle.drain(..idle);
        self.unneeded -= idle;
        let lent = if self.in_use { 0 } else { self.lent.len().min(most - idle) };
        self.lent.drain(..lent);
        if self.len() == 0 {
            *self = Self::default();
        }
        idle + lent
    }
}

/// Sizes of chunks: 4, 8, 16, 32 and 64 KiB.
const SIZES: usize = 5;
/// Chunks that are asked whether they are free, each time one is taken.
const ASKED: usize = 2;
/// The number of times that one is asked in vain before it is left to who holds it.
const PATIENCE: u8 = 16;

#[cfg(test)]
mod tests;
