//! Long frames, read into chunks of the shard's pool, where their text can stay.
//!
//! How long a frame is nobody knows before it is read. While some of the last were long, the next is read
//! into a chunk, and copied from there if it is short after all. Where none is long, none is read so.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};
use whimbrel_tcp::recv::ChunkPool;

use crate::sys::tun::TunFile;

/// Chunks to read into, and the frames of a burst that are in some.
#[derive(Debug, Default)]
pub(super) struct LongFrames {
    /// Chunks that the next frames are read into: empty, and no more than a burst takes.
    room: Vec<BytesMut>,
    /// Chunks with a frame, and what stood in front of it.
    read: Vec<Bytes>,
    /// After so many frames that are not long no more that are will be expected.
    expected: u8,
}

/// Where a frame was read to.
pub(super) enum ReadTo {
    /// The buffer: so many bytes.
    Buffer(usize),
    /// One of the [chunks](LongFrames::chunks).
    Chunk {
        /// Which of them.
        index: usize,
        /// How many bytes the frame has, with what stands in front of it.
        len: usize,
    },
}

impl LongFrames {
    /// Takes chunks for a burst, if long frames are expected.
    pub(super) fn take_room(&mut self, chunks: &mut ChunkPool) {
        if self.expected > 0 {
            self.room.resize_with(CHUNKS, || chunks.take(ChunkPool::LARGEST));
        }
    }

    /// Reads a frame: into a chunk if it is long and that was expected, else into `buffer`.
    pub(super) fn read(&mut self, file: &TunFile, buffer: &mut [u8]) -> io::Result<ReadTo> {
        let Some(mut chunk) = self.room.pop() else {
            let len = file.file().read(buffer)?;
            if len >= LONG {
                self.expected = EXPECTED;
            }
            return Ok(ReadTo::Buffer(len));
        };
        // What there is no room for in a chunk goes where it would in the buffer.
        let room = chunk.capacity();
        let read = file.read_into(&mut chunk, buffer.get_mut(room..).unwrap_or_default());
        match read {
            Ok(len) if (LONG..=room).contains(&len) => {
                self.expected = EXPECTED;
                self.read.push(chunk.freeze());
                return Ok(ReadTo::Chunk { index: self.read.len() - 1, len });
            }
            Ok(_) => {
                if let Some(place) = buffer.get_mut(..chunk.len()) {
                    place.copy_from_slice(&chunk);
                }
                self.expected -= 1;
            }
            Err(_) => {}
        }
        if self.expected > 0 {
            chunk.clear();
            self.room.push(chunk);
        } else {
            self.room.clear();
        }
        read.map(ReadTo::Buffer)
    }

    /// The chunks with the frames of this burst.
    pub(super) fn chunks(&self) -> &[Bytes] {
        &self.read
    }

    /// The burst was delivered: whoever kept a frame has it now.
    pub(super) fn let_go(&mut self) {
        self.read.clear();
    }
}

/// The least that is worth a chunk, bytes: text of three quarters of one, with its headers.
const LONG: usize = ChunkPool::LARGEST / 4 * 3;
/// Chunks for a burst: as many as it takes of the longest frames.
const CHUNKS: usize = 2;
/// Frames that are not long, one after the other, behind which none that is will be expected: a sender's
/// writes may each end with a few.
const EXPECTED: u8 = 16;
