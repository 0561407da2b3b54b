//! Records in numbered places that never move: a slab in chunks, with generations.
//!
//! A [`Slab`] assigns 30-bit indices, as many as a slot of the flow table can hold. Places come in
//! chunks of 256, so growth allocates one chunk (16 KiB of 64-byte records, 64 KiB of connections)
//! and moves no record. Rejected: one growing vector, which copies every record when it doubles (a
//! million connections: 256 MB, tens of milliseconds without service).
//!
//! It costs, in addition to the records, 4 bytes a place and 40 a chunk. The 4 bytes are the
//! generation and the link of the list of vacant places, which is separate from the records so that
//! walking it touches none of them. No flag for a taken place is needed if `T` leaves a bit pattern
//! unused (any `bool`, enum, `Box` or `Option` in it). The directory of chunks doubles when it
//! grows, but has only 16 bytes a chunk: 64 KiB, some 5 us, at a million places.
//!
//! Memory is released: an empty chunk is freed, except one, so that a number of records that varies
//! around a chunk's boundary does not allocate each time. About 1 KiB of a freed chunk remains:
//! generations must outlive it, or a stale handle would become valid.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::cold_path;

/// Records of one kind, each in its own place until it is removed.
#[derive(Debug)]
pub struct Slab<T> {
    chunks: Vec<Chunk<T>>,
    /// The first chunk with memory and a vacant place.
    vacant: u32,
    /// The first chunk without memory.
    absent: u32,
    /// Number of chunks with memory but no record: 0 or 1 between calls.
    idle: u32,
    len: usize,
}

impl<T> Slab<T> {
    /// Limit of places: 2^30, the range of an index in the flow table.
    pub const MAX: usize = 1 << 30;

    /// Creates an empty slab. Allocates nothing.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), vacant: NONE, absent: NONE, idle: 0, len: 0 }
    }

    /// Inserts a record and returns its index. The caller limits the number of records, far below
    /// [`Slab::MAX`]: the slab itself refuses nothing.
    pub fn insert(&mut self, value: T) -> u32 {
        self.insert_here(value)
    }

    /// Inserts a record like [`Slab::insert`], inlined: for millions of records, because a call
    /// would copy the record once more.
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

    /// Returns the record at `index`, if there is one.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let values = self.chunks.get(chunk_of(index)).and_then(|chunk| chunk.values.as_ref());
        let Some(values) = values else {
            cold_path();
            return None;
        };
        values[place_of(index)].as_ref()
    }

    /// Returns the record at `index`, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let values = self.chunks.get_mut(chunk_of(index)).and_then(|chunk| chunk.values.as_mut());
        let Some(values) = values else {
            cold_path();
            return None;
        };
        values[place_of(index)].as_mut()
    }

    /// Returns the record at `index`, if it still has this generation.
    #[inline]
    pub fn get_mut_of(&mut self, index: u32, generation: u16) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(chunk_of(index))?;
        if chunk.link.places[place_of(index)].generation != generation {
            cold_path();
            return None;
        }
        chunk.values.as_mut()?[place_of(index)].as_mut()
    }

    /// Returns the record at `index` and its generation, if there is one.
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

    /// Removes the record at `index` and increments the place's generation, which makes older
    /// handles stale.
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

    /// Returns the number of records.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no record.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how often a record was removed from `index`, modulo 2^16. A stale handle with this
    /// generation refers to another record only if its place was reused exactly a multiple of
    /// 65,536 times since.
    #[inline]
    pub fn generation(&self, index: u32) -> u16 {
        let chunk = self.chunks.get(chunk_of(index));
        chunk.map_or(0, |chunk| chunk.link.places[place_of(index)].generation)
    }

    /// Returns the first record at `index` or above, searching at most one chunk (256 places): a
    /// step of a walk that is spread over many calls. `Err(next)` is where to continue.
    pub fn first_from(&self, index: u32) -> Option<Result<(u32, &T), u32>> {
        let chunk = self.chunks.get(chunk_of(index))?;
        let mut places = (place_of(index)..PLACES).zip(index..);
        let found = chunk.values.as_ref().and_then(|values| {
            places.find_map(|(place, index)| values[place].as_ref().map(|value| (index, value)))
        });
        Some(found.ok_or((index | (PLACES as u32 - 1)) + 1))
    }

    /// Returns the allocated bytes, its own included.
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

    /// Returns a chunk for more records: a new one, or one whose memory was freed.
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

    /// Handles a chunk that lost its last record: keeps one such chunk, and frees the others.
    #[inline]
    fn on_emptied(&mut self, index: u32) {
        if self.idle == 0 {
            self.idle = 1;
        } else {
            self.free(index);
        }
    }

    /// Frees the memory of a chunk without records.
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

    /// Puts a chunk at the head of those with vacant places: the next record takes the place used
    /// most recently.
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

/// A chunk of 256 places. A look-up reads only this, and 16 bytes; the rest is behind `link`.
#[derive(Debug)]
struct Chunk<T> {
    values: Option<Box<[Option<T>; PLACES]>>,
    link: Box<Link>,
}

/// Parts of a chunk for insertion and removal, which outlive its memory.
#[derive(Debug)]
struct Link {
    /// Neighbours among the chunks with vacant places; `next` also among those without memory.
    previous: u32,
    next: u32,
    /// Number of records.
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
        // The box is followed once: the compiler must assume that writing the record changes it.
        let link = &mut *self.link;
        let first = link.first;
        let vacant = values[usize::from(first)].replace(value);
        // A vacant place holds nothing: dropping it would take a call.
        core::mem::forget(vacant);
        link.first = link.places[usize::from(first)].next;
        link.len += 1;
        first
    }

    /// Removes a record. Returns how many are left.
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

/// Allocates a chunk's places on the heap: on the stack they would take 64 KiB.
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
