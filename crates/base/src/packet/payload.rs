//! The text of a received packet, in the device's memory.

use core::ops::Range;

use bytes::Bytes;

/// Size of the largest chunk of memory for received text, in bytes: a super-segment.
pub const LARGEST_CHUNK: usize = 64 << 10;

/// The text of an arrived segment: its length in bytes, which each step asks for, and its place.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In the device's memory, borrowed for the length of the call.
    Borrowed(u32, &'a [u8]),
    /// The texts of several segments that follow each other, in the device's memory.
    Gathered(u32, &'a [&'a [u8]]),
    /// In memory that may be kept.
    InChunk(u32, ChunkText<'a>),
}

/// Text that fills most of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkText<'a> {
    chunk: &'a Bytes,
    /// The offset of the text in the chunk, in bytes.
    start: u32,
    len: u32,
}

impl<'a> ChunkText<'a> {
    /// Least text worth keeping a chunk, in bytes: the queue may take twice the memory of its text.
    const LEAST: usize = LARGEST_CHUNK / 4 * 3;

    /// Returns `text` as a part of `chunk`, if it is one and long enough, and the chunk is no
    /// larger than [`LARGEST_CHUNK`].
    pub fn find(chunk: &'a Bytes, text: &[u8]) -> Option<Self> {
        let start = text.as_ptr().addr().checked_sub(chunk.as_ptr().addr())?;
        let is_within = start + text.len() <= chunk.len() && chunk.len() <= LARGEST_CHUNK;
        (is_within && text.len() >= Self::LEAST).then_some(Self {
            chunk,
            start: start as u32,
            len: text.len() as u32,
        })
    }

    /// Returns the text in the chunk.
    pub fn bytes(&self) -> &'a [u8] {
        self.chunk.get(self.range()).unwrap_or_default()
    }

    /// Returns a handle of the text, which keeps the whole chunk allocated.
    pub fn keep(&self) -> Bytes {
        self.chunk.slice(self.range())
    }

    const fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

impl<'a> Payload<'a> {
    /// The payload of a segment without text.
    pub const NONE: Self = Self::Borrowed(0, &[]);

    /// Text in the device's memory.
    #[inline(always)]
    pub const fn borrowed(text: &'a [u8]) -> Self {
        Self::Borrowed(text.len() as u32, text)
    }

    /// Several texts in the device's memory.
    pub fn gathered(texts: &'a [&'a [u8]]) -> Self {
        Self::Gathered(texts.iter().map(|text| text.len() as u32).sum(), texts)
    }

    /// Text in a chunk.
    pub const fn in_chunk(text: ChunkText<'a>) -> Self {
        Self::InChunk(text.len, text)
    }

    /// Returns the length in bytes, at most 65,535.
    #[inline]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Borrowed(len, _) | Self::Gathered(len, _) | Self::InChunk(len, _) => *len,
        }
    }

    /// True if there is no text.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
