//! A timing wheel of paced connections.
//!
//! One level of 4,096 slots of 2^13 ns (8.192 us), with two bitmaps of the slots that are taken. A wait is a
//! link of 4 bytes in an array parallel to the slab, which the first wait makes. Waits are not cancelled: a
//! connection that is gone, or has nothing to send, is found at its time and left alone.
//!
//! **Promises.** A wait ends at or after its instant, at most one slot later, provided that [`PacingWheel::pop_due`]
//! is called then. A wait of more than 33.5 ms ends after these; its connection, which knows the instant, waits
//! again. A connection that takes the place of one that waits may itself wait for the end of that wait, once. Every
//! operation costs a constant.

use alloc::boxed::Box;
use alloc::vec::Vec;

use whimbrel_base::Instant;

/// The connections that wait for the time of their next segment, each at most once.
#[derive(Debug)]
pub(crate) struct PacingWheel {
    /// When the first wait ends; [`Instant::NEVER`] if there is none.
    next: Instant,
    /// There since the first wait.
    slots: Option<Box<Slots>>,
    /// By the index of a connection: the one that waits behind it in its slot, [`LAST`] or [`NOT_WAITING`].
    links: Vec<u32>,
}

#[derive(Debug)]
struct Slots {
    /// The number of the slot, counted from time zero, before which no connection waits.
    begin: u64,
    waiting: usize,
    /// A bit for each word of `taken` that is not 0.
    taken_words: u64,
    /// A bit for each slot that is taken.
    taken: [u64; WORDS],
    /// The connection that came last, of each slot that is taken.
    heads: [u32; SLOTS],
}

impl Default for PacingWheel {
    fn default() -> Self {
        Self { next: Instant::NEVER, slots: None, links: Vec::new() }
    }
}

impl PacingWheel {
    /// Has the connection `index` wait until `at`, unless it waits already.
    pub(crate) fn wait(&mut self, index: u32, at: Instant, now: Instant) {
        let place = index as usize;
        if self.links.len() <= place {
            self.links.resize(place + 1, NOT_WAITING);
        }
        let Some(link) = self.links.get_mut(place).filter(|link| **link == NOT_WAITING) else {
            return;
        };
        let slots = self.slots.get_or_insert_with(|| Box::new(Slots::new()));
        let (number, behind) = slots.push(index, at, now, number_of(self.next));
        *link = behind;
        self.next = self.next.min(begin_of(number));
    }

    /// True if a wait is over at `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Ends a wait that is over at `now`; to be called until `None`. Each takes one from `budget`.
    pub(crate) fn pop_due(&mut self, now: Instant, budget: &mut usize) -> Option<u32> {
        let slots = self.slots.as_deref_mut().filter(|_| self.next <= now && *budget > 0)?;
        let (index, is_last) = slots.pop(number_of(self.next), &mut self.links)?;
        if is_last {
            self.next = slots.first_deadline();
        }
        *budget -= 1;
        Some(index)
    }

    /// Time at which [`PacingWheel::pop_due`] must be called at the latest.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.next != Instant::NEVER).then_some(self.next)
    }

    /// True if the connection `index` waits.
    pub(crate) fn is_waiting(&self, index: u32) -> bool {
        self.links.get(index as usize).is_some_and(|link| *link != NOT_WAITING)
    }

    /// Memory of its lists, bytes.
    pub(crate) fn memory(&self) -> usize {
        let slots = self.slots.as_ref().map_or(0, |_| size_of::<Slots>());
        slots + self.links.capacity() * size_of::<u32>()
    }
}

impl Slots {
    const fn new() -> Self {
        Self { begin: 0, waiting: 0, taken_words: 0, taken: [0; WORDS], heads: [LAST; SLOTS] }
    }

    /// Puts a connection into the slot of `at`, of which `first` is the first that is taken. Returns the number of
    /// the slot and the connection that waits behind this one.
    fn push(&mut self, index: u32, at: Instant, now: Instant, first: u64) -> (u64, u32) {
        let present = number_of(now);
        self.begin = if self.waiting == 0 { present } else { first.min(present).max(self.begin) };
        // Up to the next slot, so that no wait ends early.
        let number = at.as_nanos().div_ceil(1 << SLOT_BITS);
        let number = number.clamp(self.begin, self.begin + SLOTS as u64 - 1);
        let slot = place(number);
        self.waiting += 1;
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let behind = if self.taken[word] & bit == 0 { LAST } else { self.heads[slot] };
        self.heads[slot] = index;
        self.taken[word] |= bit;
        self.taken_words |= 1 << word;
        (number, behind)
    }

    /// Takes a connection out of the slot of this number, the first that is taken. Returns it, and true if the slot
    /// is empty now.
    fn pop(&mut self, number: u64, links: &mut [u32]) -> Option<(u32, bool)> {
        self.begin = number;
        self.waiting -= 1;
        let slot = place(number);
        let index = self.heads[slot];
        let behind = core::mem::replace(links.get_mut(index as usize)?, NOT_WAITING);
        self.heads[slot] = behind;
        if behind == LAST {
            let word = slot / 64;
            self.taken[word] &= !(1 << (slot % 64));
            if self.taken[word] == 0 {
                self.taken_words &= !(1 << word);
            }
        }
        Some((index, behind == LAST))
    }

    /// When the wait in the first slot that is taken ends.
    fn first_deadline(&self) -> Instant {
        let first = if self.waiting == 0 { None } else { self.first_taken() };
        first.map_or(Instant::NEVER, begin_of)
    }

    /// The number of the first slot, from `begin` on and once around, that is taken.
    fn first_taken(&self) -> Option<u64> {
        let begin = place(self.begin);
        let (word, bit) = (begin / 64, begin % 64);
        let slot = match self.taken[word] >> bit {
            0 => self.first_after(word)?,
            rest => begin + rest.trailing_zeros() as usize,
        };
        Some(self.begin + (slot.wrapping_sub(begin) % SLOTS) as u64)
    }

    /// The first slot that is taken in the words behind this one, and once around in itself.
    fn first_after(&self, word: usize) -> Option<usize> {
        // In the order of the words from the next on: the last of them is this one again.
        let turned = self.taken_words.rotate_right(word as u32 + 1);
        if turned == 0 {
            return None;
        }
        let found = (word + 1 + turned.trailing_zeros() as usize) % WORDS;
        Some(found * 64 + self.taken[found].trailing_zeros() as usize)
    }
}

/// When the wait in the slot of this number ends.
const fn begin_of(number: u64) -> Instant {
    Instant::from_nanos(number << SLOT_BITS)
}

/// The number of the slot of which the wait ends last before this.
const fn number_of(at: Instant) -> u64 {
    at.as_nanos() >> SLOT_BITS
}

/// The place of the slot of this number.
const fn place(number: u64) -> usize {
    (number % SLOTS as u64) as usize
}

/// The logarithm of the nanoseconds of a slot: 8.192 us.
const SLOT_BITS: u32 = 13;
const WORDS: usize = 64;
const SLOTS: usize = 64 * WORDS;
/// No connection waits behind this one.
const LAST: u32 = u32::MAX;
/// Such a connection does not wait.
const NOT_WAITING: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests;
