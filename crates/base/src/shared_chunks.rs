//! Memory that short texts share: an allocation for each would cost four times its copy.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Chunks of `CHUNK` bytes that short texts stand in, one behind the other. A chunk stays as long as any text
/// in it does, and is used again once none is left.
#[derive(Debug)]
pub struct SharedChunks<const CHUNK: usize> {
    /// The free part of the chunk that is being filled.
    room: BytesMut,
    /// The rest of the chunks before; the one that was filled first in front.
    filled: VecDeque<BytesMut>,
}

impl<const CHUNK: usize> Default for SharedChunks<CHUNK> {
    fn default() -> Self {
        Self { room: BytesMut::with_capacity(CHUNK), filled: VecDeque::new() }
    }
}

impl<const CHUNK: usize> SharedChunks<CHUNK> {
    /// The longest text, bytes.
    pub const MOST: usize = CHUNK / 4;

    /// The room of a chunk, bytes: what one text can pin at most.
    pub const CHUNK: usize = CHUNK;

    /// Filled chunks that are kept until their texts are gone, at most.
    pub const FILLED: usize = 16;

    /// Copies a text, at most [`SharedChunks::MOST`] bytes.
    #[inline]
    pub fn keep(&mut self, text: &[u8]) -> Bytes {
        debug_assert!(text.len() <= Self::MOST, "a long text would pin what is short");
        if self.room.capacity() < text.len() {
            self.take_chunk();
        }
        self.room.extend_from_slice(text);
        self.room.split().freeze()
    }

    /// The chunk that was filled first, if no text of it is in use any more, or a new one.
    #[inline(never)]
    fn take_chunk(&mut self) {
        self.filled.push_back(core::mem::take(&mut self.room));
        let first = self.filled.front_mut();
        if first.is_some_and(|first| first.try_reclaim(CHUNK)) {
            self.room = self.filled.pop_front().unwrap_or_default();
            return;
        }
        if self.filled.len() > Self::FILLED {
            self.filled.pop_front();
        }
        self.room = BytesMut::with_capacity(CHUNK);
    }
}

#[cfg(test)]
mod tests;
