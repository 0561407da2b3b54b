//! A queue from whose middle records can go, and in which each has a number: a slab as well.
//!
//! Records enter at the tail under running numbers of 28 bits and leave at the head, or anywhere,
//! as a hole. They lie in chunks of 512 (24 KiB), chunks in blocks of 32. Under reuse most records
//! leave from the middle, while one that is not reused holds the head for 2 MSL; so holes must not
//! cost what records cost:
//! - a chunk an eighth of whose records have gone is copied into one that much shorter, with a
//!   bitmap of the numbers that are left; its records keep their numbers, so the flow table is not
//!   touched. At most 448 records (21 KiB) move at once, seven copies for each that goes;
//! - a chunk without records has no memory, a block without records none either: 8 bytes for
//!   16,384 numbers.
//!
//! So under steady reuse at random a record takes 53.2 bytes, without reuse 48.2, and there is one
//! chunk of 24 KiB at either end. Thinned by halves it took 68.1, by sixteenths 51.5; a reuse then
//! takes 645 instructions in here, against 377 by halves and 920 by sixteenths, of some 25,000 that
//! a whole connection takes; to enter and to expire in order take 328 (callgrind with
//! `--toggle-collect='*reuse_at_random*'`, or `'*in_order*'`, on the test `count`, by the million).
//! Copying runs of live records instead of each was no cheaper, 661.
//! (Rejected: a slab with links, 8 bytes more a record, over the 64 that a TIME-WAIT may cost; a
//! plain ring, which at a million reuses a second would hold 5.8 GB of holes.)

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use whimbrel_base::cold_path;

use super::{NUMBER_MASK, TimeWait};

/// Records in order of entry.
#[derive(Debug)]
pub(super) struct Ring {
    /// From the block of `head` to that of the last number before `tail`.
    blocks: VecDeque<Option<Box<Block>>>,
    /// The number of the first record; `tail` if there is none.
    head: u32,
    /// The number of the next record to enter.
    tail: u32,
    len: usize,
}

#[derive(Debug)]
struct Block {
    chunks: [RecordChunk; CHUNKS],
    len: u32,
}

#[derive(Debug)]
struct RecordChunk {
    /// 512; fewer once the chunk was thinned; none if it has no memory.
    records: Box<[TimeWait]>,
    /// Which numbers `records` holds, in order, once the chunk was thinned.
    kept: Option<Box<[u64; CHUNK / 64]>>,
    len: u16,
}

/// The place of the next record.
enum Next {
    /// Under the next number, in the same chunk.
    Live,
    /// The next record is anywhere else.
    Elsewhere,
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self { blocks: VecDeque::new(), head: 0, tail: 0, len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The number of the next record to enter.
    pub(super) const fn tail(&self) -> u32 {
        self.tail
    }

    /// True if no number is left for another record.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.tail.wrapping_sub(self.head) & NUMBER_MASK > MAX_SPAN
    }

    /// Enters a record; the ring is not exhausted.
    pub(super) fn push(&mut self, record: TimeWait) -> u32 {
        debug_assert!(!self.is_exhausted());
        let number = self.tail;
        if offset_in_block(number) == 0 {
            cold_path();
            self.blocks.push_back(Some(Box::new(Block::new())));
        }
        if let Some(Some(block)) = self.blocks.back_mut() {
            block.len += 1;
            block.chunks[chunk_in_block(number)].put(offset_in_chunk(number), record);
        }
        self.len += 1;
        self.tail = (number + 1) & NUMBER_MASK;
        if offset_in_chunk(self.tail) == 0 {
            cold_path();
            self.free_unused(number);
        }
        number
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&TimeWait> {
        let block = self.blocks.get(self.block_index(number))?.as_ref()?;
        block.chunks[chunk_in_block(number)].get(offset_in_chunk(number))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut TimeWait> {
        let index = self.block_index(number);
        let block = self.blocks.get_mut(index)?.as_mut()?;
        block.chunks[chunk_in_block(number)].get_mut(offset_in_chunk(number))
    }

    /// The record that entered first, with its number.
    #[inline]
    pub(super) fn front(&self) -> Option<(u32, &TimeWait)> {
        Some((self.head, self.get(self.head)?))
    }

    /// The first record at `number` or behind it, looking at most at half a chunk, or past a block without
    /// records: a step of a walk that is spread over many calls. `Err(next)` is where to continue.
    pub(super) fn first_from(&self, number: u32) -> Option<Result<(u32, &TimeWait), u32>> {
        let span = self.tail.wrapping_sub(self.head) & NUMBER_MASK;
        // The records before the head have gone.
        let is_gone = number.wrapping_sub(self.head) & NUMBER_MASK > span;
        let number = if is_gone { self.head } else { number };
        let left = self.tail.wrapping_sub(number) & NUMBER_MASK;
        if left == 0 {
            return None;
        }
        let has_records = self.blocks.get(self.block_index(number)).is_some_and(Option::is_some);
        let step = if has_records { CHUNK as u32 / 2 } else { BLOCK };
        let until = ((number | (step - 1)) + 1).min(number + left);
        let mut numbers = (number..until).filter(|_| has_records);
        let found = numbers.find_map(|number| Some((number, self.get(number)?)));
        Some(found.ok_or(until & NUMBER_MASK))
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, number: u32) -> Option<TimeWait> {
        let (record, next) = self.take(number)?;
        match next {
            // As long as the chunk of the first record has more, nothing else changes.
            Next::Live if number == self.head => self.head += 1,
            _ => self.on_taken(number),
        }
        Some(record)
    }

    /// Takes out the first record, with its number.
    pub(super) fn pop_front(&mut self) -> Option<(u32, TimeWait)> {
        let number = self.head;
        Some((number, self.remove(number)?))
    }

    /// Takes a record out, and sees whether the next number's stands behind it in its chunk.
    #[inline]
    fn take(&mut self, number: u32) -> Option<(TimeWait, Next)> {
        let index = self.block_index(number);
        let block = self.blocks.get_mut(index)?.as_mut()?;
        let chunk = &mut block.chunks[chunk_in_block(number)];
        let offset = offset_in_chunk(number);
        let record = core::mem::replace(chunk.get_mut(offset)?, TimeWait::VACANT);
        chunk.len -= 1;
        block.len -= 1;
        self.len -= 1;
        let next = offset + 1 < CHUNK && chunk.get(offset + 1).is_some();
        Some((record, if next { Next::Live } else { Next::Elsewhere }))
    }

    /// A record was taken out: its memory may go, and the head on.
    #[inline(never)]
    fn on_taken(&mut self, number: u32) {
        self.free_unused(number);
        if number == self.head {
            self.advance();
        }
    }

    pub(super) fn memory(&self) -> usize {
        let directory = self.blocks.capacity() * size_of::<Option<Box<Block>>>();
        let blocks = self.blocks.iter().flatten();
        directory + blocks.map(|block| block.memory()).sum::<usize>()
    }

    /// Moves the head on to the first record. Skips whole blocks (at most 2^14 in all) and whole
    /// chunks, so that a head which stood still for long is passed in some us.
    fn advance(&mut self) {
        while self.len > 0 {
            let (chunk, offset) = (chunk_in_block(self.head), offset_in_chunk(self.head));
            let Some(Some(block)) = self.blocks.front().map(|block| block.as_ref()) else {
                self.head_to((self.head | (BLOCK - 1)) + 1);
                continue;
            };
            if let Some(found) = block.chunks[chunk].first_from(offset) {
                self.head += (found - offset) as u32;
                return;
            }
            let next = (chunk + 1..CHUNKS).find(|next| block.chunks[*next].len > 0);
            let next = next.unwrap_or(CHUNKS) as u32 * CHUNK as u32;
            self.head_to((self.head & !(BLOCK - 1)) + next);
        }
        self.head = self.tail;
        let last = usize::from(offset_in_block(self.tail) != 0);
        self.blocks.drain(..self.blocks.len() - last);
    }

    fn head_to(&mut self, number: u32) {
        self.head = number & NUMBER_MASK;
        if offset_in_block(number) == 0 {
            self.blocks.pop_front();
        }
    }

    /// Gives back what memory a chunk, complete or thinned out by now, no longer needs.
    fn free_unused(&mut self, number: u32) {
        let is_tail = |bits: u32| number >> bits == self.tail >> bits;
        let (in_tail_chunk, in_tail_block) = (is_tail(CHUNK_BITS), is_tail(BLOCK_BITS));
        // The head's chunk goes soon, and goes from one end: thinning it would be work for nothing.
        let in_head_chunk = number >> CHUNK_BITS == self.head >> CHUNK_BITS;
        let index = self.block_index(number);
        let Some(place) = self.blocks.get_mut(index) else { return };
        let Some(block) = place else { return };
        let chunk = &mut block.chunks[chunk_in_block(number)];
        // Records still enter it: its room is no waste.
        if in_tail_chunk {
            return;
        }
        if chunk.len == 0 {
            *chunk = RecordChunk::new();
        } else if !in_head_chunk && chunk.is_worth_thinning() {
            chunk.thin();
        }
        if block.len == 0 && !in_tail_block {
            *place = None;
        }
    }

    #[inline]
    const fn block_index(&self, number: u32) -> usize {
        let first = self.head >> BLOCK_BITS;
        ((number >> BLOCK_BITS).wrapping_sub(first) & (NUMBER_MASK >> BLOCK_BITS)) as usize
    }
}

impl Block {
    fn new() -> Self {
        Self { chunks: core::array::from_fn(|_| RecordChunk::new()), len: 0 }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.chunks.iter().map(RecordChunk::memory).sum::<usize>()
    }
}

impl RecordChunk {
    fn new() -> Self {
        Self { records: Box::default(), kept: None, len: 0 }
    }

    /// Enters a record under a number that was never used.
    fn put(&mut self, offset: usize, record: TimeWait) {
        if self.records.is_empty() {
            cold_path();
            self.records = alloc::vec![TimeWait::VACANT; CHUNK].into_boxed_slice();
        }
        self.records[offset] = record;
        self.len += 1;
    }

    #[inline]
    fn get(&self, offset: usize) -> Option<&TimeWait> {
        self.records.get(self.place(offset)?).filter(|record| record.is_live())
    }

    #[inline]
    fn get_mut(&mut self, offset: usize) -> Option<&mut TimeWait> {
        let place = self.place(offset)?;
        self.records.get_mut(place).filter(|record| record.is_live())
    }

    fn first_from(&self, offset: usize) -> Option<usize> {
        (offset..CHUNK).find(|offset| self.get(*offset).is_some())
    }

    /// The place of a number's record: in a thinned chunk, after as many as are kept before it.
    #[inline]
    fn place(&self, offset: usize) -> Option<usize> {
        match &self.kept {
            None => Some(offset),
            Some(kept) => Self::place_among(kept, offset),
        }
    }

    /// The place of a record among those that a thinned chunk keeps, if it is one of them.
    #[inline(never)]
    fn place_among(kept: &[u64; CHUNK / 64], offset: usize) -> Option<usize> {
        let (word, bit) = (offset / 64, 1_u64 << (offset % 64));
        if kept[word] & bit == 0 {
            return None;
        }
        let before: u32 = kept[..word].iter().map(|word| word.count_ones()).sum();
        Some((before + (kept[word] & (bit - 1)).count_ones()) as usize)
    }

    /// True if an eighth of its memory is holes, and some records at least.
    fn is_worth_thinning(&self) -> bool {
        let gone = self.records.len() - usize::from(self.len);
        gone * 8 >= self.records.len() && gone >= LEAST_GONE
    }

    /// Copies what is left into as much memory as it needs.
    fn thin(&mut self) {
        let kept = self.kept.get_or_insert_with(|| Box::new([u64::MAX; CHUNK / 64]));
        let mut records = Vec::with_capacity(usize::from(self.len));
        let mut held = self.records.iter();
        for word in kept.iter_mut() {
            let mut left = *word;
            while left != 0 {
                let lowest = left & left.wrapping_neg();
                left ^= lowest;
                match held.next() {
                    Some(record) if record.is_live() => records.push(*record),
                    _ => *word ^= lowest,
                }
            }
        }
        self.records = records.into_boxed_slice();
    }

    fn memory(&self) -> usize {
        let kept = self.kept.as_ref().map_or(0, |kept| size_of_val(&**kept));
        size_of_val(&*self.records) + kept
    }
}

const fn offset_in_chunk(number: u32) -> usize {
    number as usize % CHUNK
}

const fn chunk_in_block(number: u32) -> usize {
    (number >> CHUNK_BITS) as usize % CHUNKS
}

const fn offset_in_block(number: u32) -> u32 {
    number % BLOCK
}

const CHUNK_BITS: u32 = 9;
/// Records of a chunk. More make thinning a longer pause, fewer a longer directory.
const CHUNK: usize = 1 << CHUNK_BITS;
/// Fewer holes are not worth the call of an allocator.
const LEAST_GONE: usize = 4;
/// Chunks of a block.
const CHUNKS: usize = 32;
const BLOCK_BITS: u32 = 14;
/// Numbers of a block.
const BLOCK: u32 = 1 << BLOCK_BITS;
/// The most numbers from head to tail: a block less than all, so that the tail's block is never the
/// head's.
const MAX_SPAN: u32 = NUMBER_MASK - 2 * BLOCK;

const _: () = assert!(CHUNK * CHUNKS == BLOCK as usize);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<RecordChunk>() == 32);

#[cfg(test)]
mod tests;
