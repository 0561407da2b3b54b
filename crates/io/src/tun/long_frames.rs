//! Long frames, read into chunks of the shard's pool, where their text can stay.
//!
//! The length of a frame is unknown before it is read. While some of the last frames were long, the
//! next is read into a chunk, and copied from there if it is short. If none was long, chunks are
//! not used.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};
use whimbrel_tcp::recv::ChunkPool;

use crate::sys::tun::TunFile;

/// Chunks to read into, and the frames of a burst that are in chunks.
#[derive(Debug, Default)]
pub(super) struct LongFrames {
    /// Empty chunks for the next frames, at most as many as a burst takes.
    room: Vec<BytesMut>,
    /// Chunks with a frame, and the bytes in front of it.
    read: Vec<Bytes>,
    /// Number of further frames for which a long one is expected.
    expected: u8,
}

/// Place that a frame was read to.
pub(super) enum ReadTo {
    /// The buffer: the frame's length in bytes.
    Buffer(usize),
    /// One of the [chunks](LongFrames::chunks).
    Chunk {
        /// Index of the chunk.
        index: usize,
        /// Length of the frame in bytes, with what precedes it.
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

    /// Reads a frame: into a chunk if it is long and that was expected, otherwise into `buffer`.
    pub(super) fn read(&mut self, file: &TunFile, buffer: &mut [u8]) -> io::Result<ReadTo> {
        let Some(mut chunk) = self.room.pop() else {
            let len = file.file().read(buffer)?;
            if len >= LONG {
                self.expected = EXPECTED;
            }
            return Ok(ReadTo::Buffer(len));
        };
        // The part that does not fit into the chunk goes where it would be in the buffer.
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

    /// Returns the chunks with the frames of this burst.
    pub(super) fn chunks(&self) -> &[Bytes] {
        &self.read
    }

    /// Releases the chunks of a delivered burst. The receiver has kept the frames that it needs.
    pub(super) fn release(&mut self) {
        self.read.clear();
    }
}

/// Least length worth a chunk, in bytes: text of three quarters of one, with its headers.
const LONG: usize = ChunkPool::LARGEST / 4 * 3;
/// Chunks for a burst: as many as the longest frames need.
const CHUNKS: usize = 2;
/// Number of short frames in a row after which no long one is expected: a sender's writes may each
/// end with a few.
const EXPECTED: u8 = 16;
