//! A queue of received octets in chunks, filled by copying and emptied by reference.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::Payload;

/// Contiguous octets of a stream, in chunks that an application can keep.
///
/// A peer that sends an octet at a time must not cost a chunk an octet: text is appended to the
/// last chunk while it has room.
#[derive(Debug, Default)]
pub struct ChunkQueue {
    full: VecDeque<Bytes>,
    /// The chunk being filled, behind all others.
    tail: BytesMut,
    octets: u32,
}

impl ChunkQueue {
    /// The room of a chunk that is opened for more than its first text.
    const CHUNK: usize = 2048;

    /// Octets held.
    #[inline]
    pub fn len(&self) -> u32 {
        self.octets
    }

    /// Whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.octets == 0
    }

    /// Appends `take` octets of `payload` after its first `skip`: borrowed ones are copied,
    /// shared ones kept by reference unless they are small.
    pub fn append(&mut self, payload: Payload<'_>, skip: u32, take: u32) {
        match payload {
            Payload::Borrowed(octets) => {
                let from = skip as usize;
                let text = octets.get(from..from + take as usize).unwrap_or_default();
                self.copy(text);
            }
            Payload::Shared(slices) => self.append_shared(slices, skip as usize, take as usize),
        }
    }

    /// Appends a chunk as it is.
    #[inline]
    pub fn push(&mut self, chunk: Bytes) {
        self.close_tail();
        self.octets += chunk.len() as u32;
        self.full.push_back(chunk);
    }

    /// Appends another queue's chunks.
    pub fn append_queue(&mut self, mut other: Self) {
        self.close_tail();
        self.octets += other.octets;
        self.full.append(&mut other.full);
        self.tail = other.tail;
    }

    /// The first chunk.
    pub fn pop(&mut self) -> Option<Bytes> {
        self.pop_up_to(usize::MAX)
    }

    /// The first chunk, or its first `most` octets (>= 1) if it has more; the rest stays.
    pub fn pop_up_to(&mut self, most: usize) -> Option<Bytes> {
        let chunk = match self.full.front_mut() {
            Some(first) if first.len() > most => first.split_to(most),
            Some(_) => self.full.pop_front()?,
            None if self.tail.is_empty() => return None,
            // Without room to go on in, it goes whole: to share the chunk would allocate.
            None if self.tail.capacity() <= most && self.tail.capacity() == self.tail.len() => {
                core::mem::take(&mut self.tail).freeze()
            }
            None => self.tail.split_to(self.tail.len().min(most)).freeze(),
        };
        self.octets -= chunk.len() as u32;
        Some(chunk)
    }

    /// Its octets in order, piece by piece; they stay.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.full.iter().map(|chunk| &chunk[..]).chain(core::iter::once(&self.tail[..]))
    }

    /// Lets go of everything, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        if !self.full.is_empty() {
            self.full.clear();
        }
        self.shed();
        self.octets = 0;
    }

    /// Lets go of the chunk being filled.
    #[inline]
    pub fn shed(&mut self) {
        if self.tail.capacity() > 0 {
            self.tail = BytesMut::new();
        }
    }

    fn append_shared(&mut self, slices: &[Bytes], mut skip: usize, mut take: usize) {
        for slice in slices {
            let from = skip.min(slice.len());
            let to = from + take.min(slice.len() - from);
            skip -= from;
            take -= to - from;
            let text = slice.get(from..to).unwrap_or_default();
            if text.len() < Self::CHUNK / 4 {
                self.copy(text);
            } else {
                self.close_tail();
                self.octets += text.len() as u32;
                self.full.push_back(slice.slice(from..to));
            }
        }
    }

    fn copy(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if self.tail.capacity() - self.tail.len() < text.len() {
            if self.is_empty() {
                // The first chunk is as large as its text: most short connections receive one
                // request, and it is read at once.
                self.full.push_back(Bytes::copy_from_slice(text));
                self.octets = text.len() as u32;
                return;
            }
            self.close_tail();
            self.tail = BytesMut::with_capacity(text.len().max(Self::CHUNK));
        }
        self.tail.extend_from_slice(text);
        self.octets += text.len() as u32;
    }

    #[inline]
    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.split_tail();
        }
    }

    #[inline(never)]
    fn split_tail(&mut self) {
        self.full.push_back(self.tail.split().freeze());
    }
}
