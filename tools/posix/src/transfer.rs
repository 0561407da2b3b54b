//! Bytes on their way through a call that may block: what is done of it, and what is left.

use alloc::vec::Vec;

use bytes::Bytes;

/// Data of a sending call. It keeps count, so that a blocked call continues where it stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    pub(crate) rest: Bytes,
    pub(crate) sent: usize,
    /// The call opened the connection (`MSG_FASTOPEN`).
    pub(crate) opened: bool,
}

impl Outgoing {
    /// A call that is to send all of `bytes`.
    pub const fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, sent: 0, opened: false }
    }

    /// A copy of the pieces, one after the other (`writev`, `sendmsg`).
    pub fn gather<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::new(pieces.into_iter().flatten().copied().collect::<Vec<_>>().into())
    }

    /// Bytes taken so far.
    pub const fn sent(&self) -> usize {
        self.sent
    }

    /// The bytes that are still to be sent.
    pub const fn rest(&self) -> &Bytes {
        &self.rest
    }
}

/// Size and data of a receiving call. The bytes are kept in the pieces they arrived in, and copied
/// only to the caller's buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incoming {
    pub(crate) most: usize,
    pub(crate) len: usize,
    pub(crate) chunks: Vec<Bytes>,
}

impl Incoming {
    /// Nothing yet, and room for `most` bytes: the sum of the buffers, for `readv` or `recvmsg`.
    pub const fn new(most: usize) -> Self {
        Self { most, len: 0, chunks: Vec::new() }
    }

    /// Bytes received, those thrown away by `MSG_TRUNC` included.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The data received, in pieces.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// The data received, in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn take(&mut self, chunk: Bytes, keep: Keep) {
        self.len += chunk.len();
        if keep == Keep::Bytes {
            self.chunks.push(chunk);
        }
    }
}

/// Use of data that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// The bytes themselves are wanted.
    Bytes,
    /// Only the number of bytes is wanted.
    Count,
}
