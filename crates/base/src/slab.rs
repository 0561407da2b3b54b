//! Records in numbered places that never move: a slab in chunks, with generations.
//!
//! A [`Slab`] hands out 30-bit indices, as many as a slot of the flow table can hold. Places come
//! in chunks of 256, so growth allocates one chunk (16 KiB of 64-byte records, 64 KiB of
//! connections) and moves no record. Rejected: one growing vector, which copies every record when
//! it doubles (a million connections: 256 MB, tens of milliseconds in which nobody is served).
//!
//! Its cost in addition to the records: 4 bytes a place (its generation and the link of the list of
//! vacant places, which lies beside the records so that walking it touches none of them), 40 a
//! chunk, and nothing for "is it taken" where `T` leaves a bit pattern unused (any `bool`, enum,
//! `Box` or `Option` in it). The directory of chunks does double when it grows, but has 16 bytes
//! a chunk: 64 KiB, some 5 us, at a million places.
//!
//! Memory comes back: a chunk that empties is freed, except one, kept so that a number of records
//! swinging about a chunk's boundary does not allocate at each swing. What remains of a freed
//! chunk is about 1 KiB: generations must outlive it, or a stale handle would come true.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::cold_path;

/// Records of one kind, each in a place of its own until it is removed.
#[derive(Debug)]
pub struct Slab<T> {
    chunks: Vec<Chunk<T>>,
    /// The first chunk with memory and a vacant place.
    vacant: u32,
    /// The first chunk without memory.
    absent: u32,
    /// How many chunks have memory but no record: 0 or 1 between calls.
    idle: u32,
    len: usize,
}

impl<T> Slab<T> {
    /// The most places: 2^30, what an index in the flow table can name.
    pub const MAX: usize = 1 << 30;

    /// A slab without records. Allocates nothing.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), vacant: NONE, absent: NONE, idle: 0, len: 0 }
    }

    /// Puts a record in and returns its index. The caller bounds the number of records, far below
    /// [`Slab::MAX`]: the slab itself refuses nothing.
    pub fn insert(&mut self, value: T) -> u32 {
        self.insert_here(value)
    }

    /// The same where records come by the million: a call would copy the record once more.
    #[inline(always)]
    pub fn insert_here(&mut self, value: T) -> u32 {
        debug_assert!(self.len < Self::MAX, "the caller bounds the number of records");
        let chunk_index = self.chunk_with_vacancy();
        let chunk = &mut self.chunks[chunk_index as usize];
        let place = chunk.occupy(value);
        let (taken, next) = (usize::from(chunk.link.len), chunk.link.next);
        self.len += 1;
        if taken == 1 {
            self.idle -= 1;
        }
        if taken == PLACES {
            cold_path();
            self.vacant = next;
            self.set_previous(self.vacant, NONE);
        }
        (chunk_index << PLACE_BITS) | u32::from(place)
    }

    /// The record at `index`, if there is one.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let values = self.chunks.get(chunk_of(index)).and_then(|chunk| chunk.values.as_ref());
        let Some(values) = values else {
            cold_path();
            return None;
        };
        values[place_of(index)].as_ref()
    }

    /// The record at `index`, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let values = self.chunks.get_mut(chunk_of(index)).and_then(|chunk| chunk.values.as_mut());
        let Some(values) = values else {
            cold_path();
            return None;
        };
        values[place_of(index)].as_mut()
    }

    /// The record at `index`, if it is still the one that had this generation.
    #[inline]
    pub fn get_mut_of(&mut self, index: u32, generation: u16) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(chunk_of(index))?;
        if chunk.link.places[place_of(index)].generation != generation {
            cold_path();
            return None;
        }
        chunk.values.as_mut()?[place_of(index)].as_mut()
    }

    /// The record at `index` and its generation, if there is one.
    #[inline]
    pub fn current_mut(&mut self, index: u32) -> Option<(u16, &mut T)> {
        let Some(chunk) = self.chunks.get_mut(chunk_of(index)) else {
            cold_path();
            return None;
        };
        let Some(values) = &mut chunk.values else {
            cold_path();
            return None;
        };
        let record = values[place_of(index)].as_mut()?;
        Some((chunk.link.places[place_of(index)].generation, record))
    }

    /// Takes the record at `index` out. Its generation goes on by one: whatever named the record
    /// by index and generation names nothing from here on.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let chunk = self.chunks.get_mut(chunk_of(index))?;
        let value = chunk.values.as_mut()?[place_of(index)].take()?;
        let left = chunk.vacate(place_of(index));
        self.len -= 1;
        if left == PLACES - 1 {
            cold_path();
            self.link_vacant(chunk_of(index) as u32);
        }
        if left == 0 {
            self.on_emptied(chunk_of(index) as u32);
        }
        Some(value)
    }

    /// How many records there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no record.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How often a record was removed from `index`, modulo 2^16. A handle that holds it names
    /// another's record only if its place was used exactly a multiple of 65,536 times since.
    #[inline]
    pub fn generation(&self, index: u32) -> u16 {
        let chunk = self.chunks.get(chunk_of(index));
        chunk.map_or(0, |chunk| chunk.link.places[place_of(index)].generation)
    }

    /// The first record at `index` or above, looking at no more than one chunk (256 places): the
    /// step of a walk that is spread over many calls. `Err(next)` says where to go on.
    pub fn first_from(&self, index: u32) -> Option<Result<(u32, &T), u32>> {
        let chunk = self.chunks.get(chunk_of(index))?;
        let mut places = (place_of(index)..PLACES).zip(index..);
        let found = chunk.values.as_ref().and_then(|values| {
            places.find_map(|(place, index)| values[place].as_ref().map(|value| (index, value)))
        });
        Some(found.ok_or((index | (PLACES as u32 - 1)) + 1))
    }

    /// Bytes held, its own included.
    pub fn memory(&self) -> usize {
        let values = size_of::<[Option<T>; PLACES]>();
        size_of::<Self>()
            + self.chunks.capacity() * size_of::<Chunk<T>>()
            + self.chunks.len() * size_of::<Link>()
            + self.chunks.iter().filter(|chunk| chunk.values.is_some()).count() * values
    }

    #[inline(always)]
    fn chunk_with_vacancy(&mut self) -> u32 {
        if self.vacant != NONE {
            return self.vacant;
        }
        self.add_vacancy()
    }

    /// A chunk where no record is: another, or memory for one that gave its own back.
    #[cold]
    fn add_vacancy(&mut self) -> u32 {
        let index = if self.absent == NONE {
            self.chunks.push(Chunk::new());
            self.chunks.len() as u32 - 1
        } else {
            let index = self.absent;
            let chunk = &mut self.chunks[index as usize];
            self.absent = chunk.link.next;
            chunk.values = Some(vacant_values());
            index
        };
        self.idle += 1;
        self.link_vacant(index);
        index
    }

    /// A chunk lost its last record: keep one such, free the others.
    #[inline]
    fn on_emptied(&mut self, index: u32) {
        if self.idle == 0 {
            self.idle = 1;
        } else {
            self.free(index);
        }
    }

    /// Gives back the memory of a chunk without records.
    #[cold]
    fn free(&mut self, index: u32) {
        let chunk = &mut self.chunks[index as usize];
        let (previous, next) = (chunk.link.previous, chunk.link.next);
        chunk.values = None;
        chunk.link.next = self.absent;
        self.absent = index;
        match self.chunks.get_mut(previous as usize) {
            Some(chunk) => chunk.link.next = next,
            None => self.vacant = next,
        }
        self.set_previous(next, previous);
    }

    /// Puts a chunk at the head of those with vacant places: the next record takes the place that
    /// was touched last.
    fn link_vacant(&mut self, index: u32) {
        let head = core::mem::replace(&mut self.vacant, index);
        self.set_previous(head, index);
        let link = &mut self.chunks[index as usize].link;
        link.previous = NONE;
        link.next = head;
    }

    fn set_previous(&mut self, index: u32, previous: u32) {
        if let Some(chunk) = self.chunks.get_mut(index as usize) {
            chunk.link.previous = previous;
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// 256 places. What a look-up reads is here, the rest is behind `link`: 16 bytes.
#[derive(Debug)]
struct Chunk<T> {
    values: Option<Box<[Option<T>; PLACES]>>,
    link: Box<Link>,
}

/// What of a chunk only insertion and removal read, and what outlives its memory.
#[derive(Debug)]
struct Link {
    /// Neighbours among the chunks with vacant places; `next` also among those without memory.
    previous: u32,
    next: u32,
    /// How many records it holds.
    len: u16,
    /// The first vacant place; meaningless in a full chunk.
    first: u8,
    places: [Place; PLACES],
}

#[derive(Clone, Copy, Debug)]
struct Place {
    generation: u16,
    /// The next vacant place after this one; meaningless in the last and in a taken place.
    next: u8,
}

impl<T> Chunk<T> {
    fn new() -> Self {
        let place = |next: usize| Place { generation: 0, next: next as u8 };
        let places = core::array::from_fn(|index| place(index + 1));
        let link = Link { previous: NONE, next: NONE, len: 0, first: 0, places };
        Self { values: Some(vacant_values()), link: Box::new(link) }
    }

    /// Puts a record into the first vacant place; there is one, and memory for it.
    fn occupy(&mut self, value: T) -> u8 {
        let values = self.values.get_or_insert_with(vacant_values);
        // The box is followed once: what is written into the record might be where it points, for all that is
        // known.
        let link = &mut *self.link;
        let first = link.first;
        let vacant = values[usize::from(first)].replace(value);
        // What a vacant place held is nothing: to drop it would take a call.
        core::mem::forget(vacant);
        link.first = link.places[usize::from(first)].next;
        link.len += 1;
        first
    }

    /// Returns how many records are left.
    fn vacate(&mut self, index: usize) -> usize {
        let link = &mut *self.link;
        let place = &mut link.places[index];
        place.generation = place.generation.wrapping_add(1);
        place.next = link.first;
        link.first = index as u8;
        link.len -= 1;
        usize::from(link.len)
    }
}

/// Room for a chunk's records, made on the heap: on the stack it would be 64 KiB.
#[cold]
fn vacant_values<T>() -> Box<[Option<T>; PLACES]> {
    let values: Box<[Option<T>]> = (0..PLACES).map(|_| None).collect();
    match values.try_into() {
        Ok(values) => values,
        Err(_) => Box::new([const { None }; PLACES]),
    }
}

const fn chunk_of(index: u32) -> usize {
    (index >> PLACE_BITS) as usize
}

const fn place_of(index: u32) -> usize {
    (index as usize) % PLACES
}

const PLACE_BITS: u32 = 8;
const PLACES: usize = 1 << PLACE_BITS;
/// The number that stands for no chunk.
const NONE: u32 = u32::MAX;

const _: () = assert!(size_of::<Place>() == 4);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Chunk<[u64; 8]>>() == 16);

#[cfg(test)]
mod tests;
