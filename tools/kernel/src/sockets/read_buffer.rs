//! The buffers of reads, shared with what long ones return.

use std::io::{self, Read};
use std::mem;

use bytes::{Bytes, BytesMut};

/// Buffers for one read at a time.
///
/// A read that fills half of one or more returns a part of the buffer itself, which is used again once that
/// part is dropped. While such parts of all [`ReadBuffer::MOST`] are held, and for shorter reads, data is
/// copied: held data never takes more than twice its size.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    /// Given out by long reads. The first that is not held is used, so that few are in the cache.
    shared: Vec<Bytes>,
    /// In their place while all are held.
    own: Box<[u8]>,
}

impl ReadBuffer {
    /// Size of the longest read in bytes.
    pub(super) const LEN: usize = 128 << 10;
    /// Number of buffers at most.
    const MOST: usize = 16;

    pub(super) fn new() -> Self {
        Self { shared: vec![fresh().into()], own: Box::default() }
    }

    /// Reads once; no bytes are the end.
    pub(super) fn read(&mut self, mut from: impl Read) -> io::Result<Bytes> {
        let Some(buffer) = self.free() else {
            if self.own.is_empty() {
                self.own = fresh().into();
            }
            let count = from.read(&mut self.own)?;
            return Ok(Bytes::copy_from_slice(self.own.get(..count).unwrap_or_default()));
        };
        let mut whole: BytesMut = mem::take(buffer).into();
        let read = from.read(&mut whole);
        *buffer = whole.freeze();
        let count = read?;
        Ok(match count >= Self::LEN / 2 {
            true => buffer.slice(..count),
            false => Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default()),
        })
    }

    /// A buffer of which nothing is held.
    fn free(&mut self) -> Option<&mut Bytes> {
        let free = self.shared.iter().position(Bytes::is_unique);
        if free.is_none() && self.shared.len() < Self::MOST {
            self.shared.push(fresh().into());
        }
        match free {
            Some(at) => self.shared.get_mut(at),
            None => self.shared.last_mut().filter(|last| last.is_unique()),
        }
    }
}

fn fresh() -> Vec<u8> {
    vec![0; ReadBuffer::LEN]
}

#[cfg(test)]
mod tests;
