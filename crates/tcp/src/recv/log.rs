//! Text in the order in which it came, in chunks: where text out of order waits.
//!
//! Nothing in it moves. What is taken out leaves a gap, and a chunk goes with the last text in it. The
//! chunk that is being filled is no larger than a quarter of what is held, so that its room is within
//! bounds as well.
//!
//! Chunks are of any size up to [`Log::CHUNK`] and of their text's if that is more; a pool's can stand
//! next to them as another [`Memory`], whose `pins` says what it takes.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Add;

use bytes::Bytes;

use super::{ChunkPool, ChunkQueue};

/// Chunks of text, which parts name by their places; a place that is free is used again.
#[derive(Debug, Default)]
pub(super) struct Log {
    chunks: Vec<LogChunk>,
    /// The chunk that is being filled.
    open: Option<u32>,
    /// The first of the places in `chunks` that are free; each names the next.
    vacant: Option<u32>,
    /// Bytes of text that are still named by a part.
    live: usize,
    /// Bytes of memory in all chunks.
    pinned: usize,
}

#[derive(Debug)]
struct LogChunk {
    memory: Memory,
    /// Bytes of text in it that are wanted.
    live: u32,
}

#[derive(Debug)]
enum Memory {
    Copied(Vec<u8>),
    Vacant(Option<u32>),
}

/// The place in a log at which a text begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    chunk: u32,
    at: u32,
}

/// The target of text that is in order now, and whose chunks it is copied to.
pub(super) struct Ready<'a> {
    pub(super) queue: &'a mut ChunkQueue,
    pub(super) pool: &'a mut ChunkPool,
}

impl Add<u32> for Place {
    type Output = Self;

    fn add(self, bytes: u32) -> Self {
        Self { at: self.at + bytes, ..self }
    }
}

impl Log {
    /// The room of a chunk, at most, unless a text is longer.
    pub(super) const CHUNK: usize = 16_384;

    /// The least of these.
    const LEAST: usize = 256;

    /// Bytes: what is shorter is copied to where it is read, rather than its chunk handed over.
    const WORTH: usize = 2048;

    /// Bytes of text in it.
    pub(super) const fn live(&self) -> usize {
        self.live
    }

    /// Bytes of memory that are kept for it.
    pub(super) const fn pinned(&self) -> usize {
        self.pinned + self.chunks.capacity() * size_of::<LogChunk>()
    }

    /// The room of a chunk that is opened for `text` bytes and what may follow.
    pub(super) fn room_for(&self, text: usize) -> usize {
        text.max((self.live / 4).clamp(Self::LEAST, Self::CHUNK))
    }

    /// Writes down as much of `text` (>= 1 byte) as the chunk that is open has room for, if it has
    /// any, and otherwise as one of `room` bytes has (>= 1). The rest stays in `text`.
    pub(super) fn write(&mut self, text: &mut &[u8], room: usize) -> (Place, u32) {
        let has_room = |chunk: &LogChunk| match &chunk.memory {
            Memory::Copied(written) => written.len() < written.capacity(),
            _ => false,
        };
        let open = self.open.filter(|open| self.chunks.get(*open as usize).is_some_and(has_room));
        let index = open.unwrap_or_else(|| self.add(Memory::Copied(Vec::with_capacity(room)), 0));
        self.open = Some(index);
        let chunk = self.chunks.get_mut(index as usize);
        let Some(LogChunk { memory: Memory::Copied(written), live }) = chunk else {
            return (Place { chunk: index, at: 0 }, 0);
        };
        let place = Place { chunk: index, at: written.len() as u32 };
        let fitting = written.capacity() - written.len();
        let (now, rest) = text.split_at_checked(fitting).unwrap_or((text, &[]));
        written.extend_from_slice(now);
        *live += now.len() as u32;
        self.live += now.len();
        *text = rest;
        (place, now.len() as u32)
    }

    /// The `len` bytes of text at `place`.
    pub(super) fn text(&self, place: Place, len: u32) -> &[u8] {
        let chunk = self.chunks.get(place.chunk as usize);
        chunk.map_or(&[], |chunk| chunk.memory.text(place.at, len))
    }

    /// The `len` bytes at `place` are wanted here no longer; those after the first `known` go to
    /// `ready`. With the last text of a chunk that goes itself, unless much of it is something else.
    pub(super) fn release(&mut self, place: Place, len: u32, known: u32, ready: &mut Ready<'_>) {
        let (from, left) = (place.at + known, len - known);
        let Some(chunk) = self.chunks.get_mut(place.chunk as usize) else { return };
        chunk.live -= len;
        self.live -= len as usize;
        if chunk.live > 0 {
            // Other text in this chunk still waits, so the chunk stays, and its memory counts here.
            return ready.queue.copy(ready.pool, chunk.memory.text(from, left), 0);
        }
        let memory = core::mem::replace(&mut chunk.memory, Memory::Vacant(self.vacant));
        self.vacant = Some(place.chunk);
        // The next chunk may have its place.
        self.open = self.open.filter(|open| *open != place.chunk);
        let pins = memory.pins();
        self.pinned -= pins;
        if left as usize >= Self::WORTH && is_worth(left, pins) {
            ready.queue.push(memory.into_bytes(from, left), pins as u32);
        } else {
            ready.queue.copy(ready.pool, memory.text(from, left), 0);
        }
    }

    /// Takes over those chunks of `old` that are well used by the texts of `stay`, given by
    /// place and length. Returns where they are now.
    pub(super) fn adopt(
        &mut self,
        old: &mut Self,
        stay: impl Iterator<Item = (Place, u32)>,
    ) -> Adopted {
        let mut used = vec![0; old.chunks.len()];
        for (place, len) in stay {
            if let Some(used) = used.get_mut(place.chunk as usize) {
                *used += len;
            }
        }
        let adopted = old.chunks.iter_mut().zip(used).map(|(chunk, used)| {
            let worth = used > 0 && is_worth(used, chunk.memory.pins());
            worth.then(|| {
                let memory = core::mem::replace(&mut chunk.memory, Memory::Vacant(None));
                self.live += used as usize;
                self.add(memory, used)
            })
        });
        Adopted(adopted.collect())
    }

    fn add(&mut self, memory: Memory, live: u32) -> u32 {
        self.pinned += memory.pins();
        let chunk = LogChunk { memory, live };
        let place =
            self.vacant.and_then(|index| self.chunks.get_mut(index as usize).zip(self.vacant));
        if let Some((place, index)) = place {
            self.vacant = if let Memory::Vacant(next) = place.memory { next } else { None };
            *place = chunk;
            return index;
        }
        self.chunks.push(chunk);
        self.chunks.len() as u32 - 1
    }
}

impl Memory {
    fn pins(&self) -> usize {
        match self {
            Self::Copied(text) => text.capacity(),
            Self::Vacant(_) => 0,
        }
    }

    fn text(&self, at: u32, len: u32) -> &[u8] {
        let text: &[u8] = match self {
            Self::Copied(text) => text,
            Self::Vacant(_) => &[],
        };
        text.get(at as usize..(at + len) as usize).unwrap_or_default()
    }

    fn into_bytes(self, at: u32, len: u32) -> Bytes {
        let text = match self {
            Self::Copied(text) => Bytes::from(text),
            Self::Vacant(_) => Bytes::new(),
        };
        text.slice(at as usize..(at + len) as usize)
    }
}

/// Which chunks a log took over from another, by their number there.
pub(super) struct Adopted(Vec<Option<u32>>);

impl Adopted {
    /// Returns the new place of the text at `place`, if its chunk was taken over.
    pub(super) fn of(&self, place: Place) -> Option<Place> {
        let chunk = *self.0.get(place.chunk as usize)?;
        chunk.map(|chunk| Place { chunk, ..place })
    }
}

/// True if `used` bytes are enough of the `pins` that stay for them.
const fn is_worth(used: u32, pins: usize) -> bool {
    4 * used as usize >= 3 * pins
}
