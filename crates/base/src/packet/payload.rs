//! The text of a received packet, in the device's memory.

use core::ops::Range;

use bytes::Bytes;

/// Size of the largest chunk of memory for received text, in bytes: a super-segment.
pub const LARGEST_CHUNK: usize = 64 << 10;

/// The text of an arrived segment.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In the device's memory, borrowed for the length of the call.
    Borrowed(&'a [u8]),
    /// The texts of several segments that follow each other, in the device's memory.
    Gathered(&'a [&'a [u8]]),
    /// In memory that may be kept.
    InChunk(ChunkText<'a>),
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

impl Payload<'_> {
    /// Returns the length in bytes, at most 65,535.
    #[inline]
    pub fn len(&self) -> u32 {
        match self {
            Self::Borrowed(bytes) => bytes.len() as u32,
            _ => self.long_len(),
        }
    }

    /// Returns the length of text that only comes in bulk. It is separate so that it slows nothing
    /// else.
    #[cold]
    #[inline(never)]
    fn long_len(&self) -> u32 {
        match self {
            Self::Borrowed(bytes) => bytes.len() as u32,
            Self::Gathered(slices) => slices.iter().map(|slice| slice.len() as u32).sum(),
            Self::InChunk(text) => text.len,
        }
    }

    /// True if there is no text.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
