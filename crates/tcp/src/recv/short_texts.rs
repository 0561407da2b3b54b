//! Memory that short texts share: an allocation for each would cost four times its copy.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The chunks that short texts of a shard's connections stand in, one behind the other. A chunk stays as long
/// as any text in it does, and is used again once none is left.
#[derive(Debug)]
pub struct ShortTexts {
    /// The free part of the chunk that is being filled.
    room: BytesMut,
    /// The rest of the chunks before; the one that was filled first in front.
    filled: VecDeque<BytesMut>,
}

impl Default for ShortTexts {
    fn default() -> Self {
        Self { room: BytesMut::with_capacity(Self::CHUNK), filled: VecDeque::new() }
    }
}

impl ShortTexts {
    /// The longest, bytes.
    pub const MOST: usize = 512;

    /// The room of a chunk, bytes: what one text can pin at most, no more than a second text of a byte
    /// would open for its connection alone.
    pub const CHUNK: usize = 2048;

    /// Filled chunks that are kept until their texts are gone, at most: what 64 connections at a time fill.
    const FILLED: usize = 16;

    /// Copies a text, at most [`ShortTexts::MOST`] bytes.
    pub(crate) fn keep(&mut self, text: &[u8]) -> Bytes {
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
        if first.is_some_and(|first| first.try_reclaim(Self::CHUNK)) {
            self.room = self.filled.pop_front().unwrap_or_default();
            return;
        }
        if self.filled.len() > Self::FILLED {
            self.filled.pop_front();
        }
        self.room = BytesMut::with_capacity(Self::CHUNK);
    }
}

#[cfg(test)]
mod tests;
