//! The buffer of reads, shared with what long ones return.

use std::io::{self, Read};
use std::mem;

use bytes::{Bytes, BytesMut};

/// A buffer for one read at a time.
///
/// A read that fills half of it or more returns a part of the buffer itself, which is used again once that
/// part is dropped. While that part is held, and for shorter reads, data is copied: held data never takes
/// more than twice its size.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    /// Given out by long reads.
    shared: Bytes,
    /// In its place while it is held.
    own: Box<[u8]>,
}

impl ReadBuffer {
    /// Size of the longest read in bytes.
    pub(super) const LEN: usize = 128 << 10;

    pub(super) fn new() -> Self {
        Self { shared: vec![0; Self::LEN].into(), own: Box::default() }
    }

    /// Reads once; no bytes are the end.
    pub(super) fn read(&mut self, mut from: impl Read) -> io::Result<Bytes> {
        let mut whole: BytesMut = match mem::take(&mut self.shared).try_into_mut() {
            Ok(whole) => whole,
            Err(held) => {
                self.shared = held;
                self.own = match mem::take(&mut self.own) {
                    own if own.is_empty() => vec![0; Self::LEN].into(),
                    own => own,
                };
                let count = from.read(&mut self.own)?;
                return Ok(Bytes::copy_from_slice(self.own.get(..count).unwrap_or_default()));
            }
        };
        let read = from.read(&mut whole);
        self.shared = whole.freeze();
        let count = read?;
        Ok(match count >= Self::LEN / 2 {
            true => self.shared.slice(..count),
            false => Bytes::copy_from_slice(self.shared.get(..count).unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests;
