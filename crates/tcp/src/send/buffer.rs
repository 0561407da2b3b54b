//! The send buffer: the application's bytes, by reference, until the peer acknowledges them.

use bytes::{Bytes, BytesMut};

use whimbrel_base::packet::Slices;
use whimbrel_base::{InlineQueue, cold_path};

/// The stream from SND.UNA on: what was sent and not acknowledged, and what was not sent yet.
///
/// Large pieces are kept as the [`Bytes`] they came in; retransmission slices them again. Pieces
/// shorter than [`SendBuffer::COPY_BELOW`] are copied together, because a segment of many tiny
/// slices costs more than the copy.
#[derive(Debug, Default)]
pub struct SendBuffer {
    pieces: InlineQueue<QueuedText>,
    /// Small writes being gathered behind the last piece.
    tail: BytesMut,
    /// The stream offset of the first byte held.
    start: u64,
    /// The stream offset one past the last byte held.
    end: u64,
    /// The stream offset one past the last urgent byte.
    urgent: Option<u64>,
}

#[derive(Debug)]
struct QueuedText {
    /// The stream offset one past its last byte.
    end: u64,
    bytes: Bytes,
}

impl SendBuffer {
    /// Writes shorter than this are gathered by copying.
    pub const COPY_BELOW: usize = 512;
    const TAIL_ROOM: usize = 4096;

    /// Bytes of text that are not acknowledged.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.end - self.start) as u32
    }

    /// True if nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Appends `bytes` to the stream.
    pub fn push(&mut self, bytes: Bytes) {
        let len = bytes.len();
        if len == 0 {
            return;
        }
        if len < Self::COPY_BELOW && (!self.tail.is_empty() || self.has_neighbour()) {
            return self.gather(&bytes);
        }
        self.freeze_tail();
        self.end += len as u64;
        self.pieces.push_back(QueuedText { end: self.end, bytes });
    }

    /// Copies a short piece behind another.
    #[inline(never)]
    fn gather(&mut self, bytes: &Bytes) {
        let len = bytes.len();
        if self.tail.capacity() - self.tail.len() < len {
            self.freeze_tail();
            self.tail.reserve(Self::TAIL_ROOM);
        }
        self.tail.extend_from_slice(bytes);
        self.end += len as u64;
    }

    /// Marks all that was pushed so far as urgent.
    pub fn note_urgent(&mut self) {
        self.urgent = (!self.is_empty()).then_some(self.end);
    }

    /// Bytes from SND.UNA to the end of the urgent data, if not all of them are acknowledged.
    #[inline]
    pub fn urgent(&self) -> Option<u32> {
        let end = self.urgent?;
        cold_path();
        (end > self.start).then(|| (end - self.start) as u32)
    }

    /// Drops the first `most` bytes, or all: they were acknowledged. Returns how many that was.
    #[inline(always)]
    pub fn acknowledge_up_to(&mut self, most: u32) -> u32 {
        let len = most.min(self.len());
        self.acknowledge(len);
        len
    }

    /// Drops the first `len` bytes: they were acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, len: u32) {
        debug_assert!(len <= self.len());
        self.start += u64::from(len);
        if self.start == self.end && self.pieces.only().is_some() {
            // What a short connection sent.
            self.pieces.pop_front();
            return;
        }
        while let Some(first) = self.pieces.front_mut() {
            if first.end > self.start {
                let keep = (first.end - self.start) as usize;
                let drop = first.bytes.len().saturating_sub(keep);
                bytes::Buf::advance(&mut first.bytes, drop);
                return;
            }
            self.pieces.pop_front();
        }
        // Only the tail is left, and it is still being gathered: what was acknowledged of it must
        // have been sent, and sending freezes it.
        debug_assert!(self.tail.len() as u64 == self.end - self.start);
    }

    /// Adds to `slices` the bytes from `offset` on (counted from SND.UNA), at most `len`, as far
    /// as places last. Returns how many bytes that was.
    pub fn slice(&mut self, offset: u32, len: u32, slices: &mut Slices) -> u32 {
        let from = self.start + u64::from(offset);
        let to = (from + u64::from(len)).min(self.end);
        if to > self.end - self.tail.len() as u64 {
            self.freeze_tail();
        }
        // What a short connection sends is in one piece.
        if let Some(first) = self.pieces.front()
            && to <= first.end
            && from < to
        {
            let skip = first.bytes.len() - (first.end - from) as usize;
            let take = (to - from) as usize;
            let whole = take == first.bytes.len();
            let bytes =
                if whole { first.bytes.clone() } else { first.bytes.slice(skip..skip + take) };
            let pushed = slices.push(bytes);
            return if pushed.is_ok() { take as u32 } else { 0 };
        }
        self.slice_pieces(from, to, slices)
    }

    /// Slices more than the first piece: the bytes between two offsets of the stream.
    // Out of line: of a single piece it would only take registers.
    #[inline(never)]
    fn slice_pieces(&self, from: u64, to: u64, slices: &mut Slices) -> u32 {
        // O(log n): a queue of many small pieces must not be walked for every segment.
        let first = self.pieces.partition_point(|piece| piece.end <= from);
        let mut at = from;
        for piece in self.pieces.iter_from(first) {
            if at >= to || slices.is_full() {
                break;
            }
            let skip = piece.bytes.len() - (piece.end - at) as usize;
            let take = (to - at).min(piece.end - at) as usize;
            if slices.push(piece.bytes.slice(skip..skip + take)).is_err() {
                break;
            }
            at += take as u64;
        }
        (at - from) as u32
    }

    /// Clears everything, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.drop_text();
        }
        self.start = 0;
        self.end = 0;
        self.urgent = None;
    }

    /// Releases all that is held.
    #[inline(never)]
    fn drop_text(&mut self) {
        self.pieces.clear();
        self.tail.clear();
    }

    /// True if a small write would otherwise follow another small piece.
    fn has_neighbour(&self) -> bool {
        self.pieces.back().is_some_and(|piece| piece.bytes.len() < Self::COPY_BELOW)
    }

    #[inline]
    fn freeze_tail(&mut self) {
        if !self.tail.is_empty() {
            self.split_tail();
        }
    }

    #[inline(never)]
    fn split_tail(&mut self) {
        let bytes = self.tail.split().freeze();
        let bytes = self.joined(bytes);
        let end = self.end;
        self.pieces.push_back(QueuedText { end, bytes });
    }

    /// The bytes with those of small pieces in front of them, which go.
    ///
    /// An application that writes byte by byte, each sent at once, would leave a piece for each while
    /// its peer acknowledges nothing: 40 times what it wrote. A piece is joined by those behind it once
    /// they are as long, so each byte is copied nine times at most, and of [`SendBuffer::COPY_BELOW`]
    /// bytes no more than ten pieces remain.
    fn joined(&mut self, bytes: Bytes) -> Bytes {
        let mut len = bytes.len();
        let mut count = 0;
        for piece in self.pieces.iter().rev() {
            if piece.bytes.len() > len || len + piece.bytes.len() > Self::COPY_BELOW {
                break;
            }
            len += piece.bytes.len();
            count += 1;
        }
        if count == 0 {
            return bytes;
        }
        let mut joined = BytesMut::with_capacity(len);
        let before = self.pieces.len() - count;
        for piece in self.pieces.iter_from(before) {
            joined.extend_from_slice(&piece.bytes);
        }
        self.pieces.truncate(before);
        joined.extend_from_slice(&bytes);
        joined.freeze()
    }
}

#[cfg(test)]
mod tests;
