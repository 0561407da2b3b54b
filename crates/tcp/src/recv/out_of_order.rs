//! Text beyond RCV.NXT: which of it is held, and where.
//!
//! Text is written down in the order in which it comes ([`Log`]), and found by its offset in the
//! stream: a *piece* is what stands together both in the stream and in the log, a *range* is pieces
//! that touch (RFC 2018 names ranges). Text behind the piece that was written last makes that longer;
//! anything else makes a piece, at the cost of a place in a tree, and never moves another. So a packet
//! costs its own bytes and a look-up or two, and the gaps that it fills.
//!
//! Pieces of a byte that touch are left behind, and gaps in the log where text was that is in order now.
//! Once they take more memory than is allowed, twice the text and 64 bytes a range, pieces that are small
//! or lie in a poorly used chunk are written anew. It then takes about half
//! of that, and as each packet adds a fixed amount to what must be put right, those that follow bear a
//! fixed amount of the work each.
//!
//! Rejected: a queue of chunks for each range, as it was. Joining two moved all chunks of one of them,
//! for each packet of a peer that sends the last byte first; and a byte between holes had a chunk.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::log::{Log, Place, Ready};
use super::part::each_part;
use super::{ChunkPool, ChunkQueue};
use whimbrel_base::packet::Payload;

/// Ranges beyond RCV.NXT, and their text.
#[derive(Debug, Default)]
pub(super) struct OutOfOrder {
    /// By the offset at which they begin; none overlaps another.
    pieces: BTreeMap<u64, Piece>,
    /// Of the ranges of more than one piece: where they begin and end.
    joined: BTreeMap<u64, u64>,
    ranges: usize,
    log: Log,
}

/// A range that stands together in the stream and in the log.
#[derive(Clone, Copy, Debug)]
struct Piece {
    len: u32,
    place: Place,
}

impl OutOfOrder {
    /// Shorter pieces than this, bytes, are joined to those they touch when all is put right.
    const SMALL: u32 = 1024;

    /// The bytes that may be kept for a connection in addition to its text and its ranges.
    const SPARE: usize = 1536;

    /// Bytes that a piece takes in its tree, at most: a leaf of 11 places (232) that is as empty as
    /// leaves become (5, and one above), and its share of the nodes above (328 for 12 leaves' worth).
    const PIECE: usize = 50;

    /// The bytes of a joined range, with leaves of 192 and nodes of 288.
    const JOINED: usize = 42;

    /// Bytes of the first leaf of either tree, rounded up so that the above holds from the first on.
    const LEAVES: usize = 248 + 216;

    /// The number of ranges there are.
    pub(super) fn ranges(&self) -> usize {
        self.ranges
    }

    /// Bytes of memory that are kept: the log, the trees, itself. At most twice the text, 64 for each
    /// range and 1,536.
    #[inline]
    pub(super) fn pinned(&self) -> usize {
        let trees =
            self.pieces.len() * Self::PIECE + self.joined.len() * Self::JOINED + Self::LEAVES;
        size_of::<Self>() + trees + self.log.pinned()
    }

    /// True if more is kept than may be.
    #[inline]
    fn is_wasteful(&self) -> bool {
        self.pinned() > 2 * self.log.live() + 64 * self.ranges + Self::SPARE
    }

    /// The end of the last range; 0 without one.
    pub(super) fn end(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |(start, piece)| start + u64::from(piece.len))
    }

    /// The range that `at` lies in, or at whose end it lies.
    pub(super) fn around(&self, at: u64) -> Option<(u64, u64)> {
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        let end = start + u64::from(piece.len);
        let joined = self.joined.range(..=at).next_back().map(|(start, end)| (*start, *end));
        let range = joined.filter(|(_, range_end)| *range_end >= end).unwrap_or((*start, end));
        (at <= range.1).then_some(range)
    }

    /// The ranges, first first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let first = self.pieces.first_key_value().and_then(|(start, _)| self.around(*start));
        core::iter::successors(first, |(_, end)| {
            self.pieces.range(end..).next().and_then(|(start, _)| self.around(*start))
        })
    }

    /// The first range that has a byte in `start .. end`.
    pub(super) fn first_within(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let around = self.around(start).filter(|(_, range_end)| *range_end > start);
        around.or_else(|| {
            let (first, _) = self.pieces.range(start..end).next()?;
            self.around(*first)
        })
    }

    /// True if a range begins in `start ..= end`.
    pub(super) fn begins_within(&self, start: u64, end: u64) -> bool {
        self.pieces.range(start..=end).next().is_some()
    }

    /// Writes down what is new of the text at `start .. end`, which is `payload` after its first `skip`
    /// bytes, and joins it to what it touches.
    pub(super) fn insert(&mut self, start: u64, end: u64, payload: Payload<'_>, skip: u32) {
        let (begin, mut at) = self.around(start).unwrap_or((start, start));
        self.ranges += usize::from(begin == at);
        // Upward: fill each gap from the new text, then take in the range behind it.
        while at < end {
            let next = self.pieces.range(at..=end).next().map(|(next, _)| *next);
            let gap_end = next.unwrap_or(end);
            self.write(at, gap_end, payload, skip + (at - start) as u32);
            at = next.map_or(gap_end, |next| self.take_in(next));
        }
        let whole = self.pieces.get(&begin).is_some_and(|piece| begin + u64::from(piece.len) == at);
        if !whole {
            self.joined.insert(begin, at);
        }
        if self.is_wasteful() {
            self.put_right();
        }
    }

    /// Moves text that is in order once RCV.NXT is `nxt` to `ready`, without what lies before `nxt`. Returns
    /// the RCV.NXT behind it.
    pub(super) fn release(
        &mut self,
        mut nxt: u64,
        pool: &mut ChunkPool,
        ready: &mut ChunkQueue,
    ) -> u64 {
        while let Some((first, _)) = self.pieces.first_key_value().filter(|(at, _)| **at <= nxt) {
            let end = self.take_in(*first);
            while let Some(first) = self.pieces.first_entry().filter(|first| *first.key() < end) {
                let (start, Piece { len, place }) = first.remove_entry();
                let known = nxt.saturating_sub(start).min(u64::from(len)) as u32;
                self.log.release(place, len, known, &mut Ready { queue: ready, pool });
                nxt = nxt.max(start + u64::from(len));
            }
        }
        if self.is_wasteful() {
            self.put_right();
        }
        nxt
    }

    /// The range that begins at `start` is none any more, but part of another. Returns its end.
    fn take_in(&mut self, start: u64) -> u64 {
        self.ranges -= 1;
        let piece = self.pieces.get(&start).map_or(0, |piece| piece.len);
        self.joined.remove(&start).unwrap_or(start + u64::from(piece))
    }

    fn write(&mut self, start: u64, end: u64, payload: Payload<'_>, skip: u32) {
        let mut at = start;
        each_part(payload, skip, (end - start) as u32, |mut text| {
            while !text.is_empty() {
                let room = self.log.room_for(text.len());
                let (place, len) = self.log.write(&mut text, room);
                self.note_piece(at, Piece { len, place });
                at += u64::from(len);
            }
        });
    }

    /// The piece stands at `at`: in the stream and in the log behind another, or on its own.
    fn note_piece(&mut self, at: u64, piece: Piece) {
        let before = self.pieces.range_mut(..at).next_back();
        let before = before.filter(|(start, before)| **start + u64::from(before.len) == at);
        match before {
            Some((_, before)) if before.place + before.len == piece.place => {
                before.len += piece.len;
            }
            _ => _ = self.pieces.insert(at, piece),
        }
    }

    /// Writes down anew all small pieces, and those in poorly used chunks: what touches becomes one
    /// piece, in chunks without a gap.
    #[inline(never)]
    fn put_right(&mut self) {
        let large = |piece: &Piece| piece.len >= Self::SMALL;
        let mut old = core::mem::take(&mut self.log);
        let stay = self.pieces.values().filter(|piece| large(piece));
        let stay = stay.map(|piece| (piece.place, piece.len));
        let kept = self.log.adopt(&mut old, stay);
        let adopted = |piece: &Piece| kept.of(piece.place).filter(|_| large(piece));
        let moving = self.pieces.values().filter(|piece| adopted(piece).is_none());
        let mut left: usize = moving.map(|piece| piece.len as usize).sum();
        let mut pieces: Vec<(u64, Piece)> = Vec::new();
        let mut short = Vec::new();
        for (mut at, Piece { len, place }) in core::mem::take(&mut self.pieces) {
            if let Some(place) = adopted(&Piece { len, place }) {
                pieces.push((at, Piece { len, place }));
                continue;
            }
            let mut text = match kept.of(place) {
                // Its chunk stays for the sake of longer pieces.
                Some(place) => {
                    short.clear();
                    short.extend_from_slice(self.log.text(place, len));
                    &short[..]
                }
                None => old.text(place, len),
            };
            while !text.is_empty() {
                let (place, len) = self.log.write(&mut text, left.min(Log::CHUNK));
                left -= len as usize;
                match pieces.last_mut() {
                    Some((start, last))
                        if *start + u64::from(last.len) == at && last.place + last.len == place =>
                    {
                        last.len += len;
                    }
                    _ => pieces.push((at, Piece { len, place })),
                }
                at += u64::from(len);
            }
        }
        // From sequences in order, so that nodes are full.
        self.joined = joined(&pieces).into_iter().collect();
        self.pieces = pieces.into_iter().collect();
        debug_assert!(
            !self.is_wasteful(),
            "what cannot be put right would be tried for each packet"
        );
    }
}

/// Returns the beginning and end of each range of more than one piece.
fn joined(pieces: &[(u64, Piece)]) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for ((start, before), (at, piece)) in pieces.iter().zip(pieces.iter().skip(1)) {
        if start + u64::from(before.len) != *at {
            continue;
        }
        let end = at + u64::from(piece.len);
        match joined.last_mut() {
            Some((_, last)) if last == at => *last = end,
            _ => joined.push((*start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
