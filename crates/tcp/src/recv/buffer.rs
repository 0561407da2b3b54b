//! The receive buffer: text in order for the application, and text out of order waiting for it.

use alloc::boxed::Box;

use whimbrel_base::cold_path;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{SackBlock, SackBlocks};

use super::out_of_order::OutOfOrder;
use super::{ChunkPool, ChunkQueue};
use whimbrel_base::packet::Payload;

/// Text that arrived and was not read.
///
/// Offsets are 64 bit, counted from the buffer's creation, so that ranges have an order; sequence
/// numbers appear only at the edge, relative to RCV.NXT.
#[derive(Debug, Default)]
pub struct RecvBuffer {
    ready: ChunkQueue,
    /// The offset of RCV.NXT.
    nxt: u64,
    /// Text beyond RCV.NXT. There while there is some, or the peer's FIN is.
    beyond: Option<Box<OutOfOrder>>,
    /// A byte of each range that changed last, newest first.
    recent: [u64; RECENT],
    /// The offset of the peer's FIN, once it arrived.
    fin: Option<u64>,
    /// The offset one past the peer's urgent data.
    urgent: Option<u64>,
}

/// The outcome of text out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Some of it is new and was kept.
    Kept,
    /// All of it was held already.
    Duplicate,
    /// It would have been one range too many.
    Refused,
}

/// As many ranges as one acknowledgment can name (RFC 2018 3).
const RECENT: usize = 4;

impl RecvBuffer {
    /// Bytes in order that are not read yet.
    #[inline]
    pub fn unread(&self) -> u32 {
        self.ready.len()
    }

    /// True if nothing is held, in order or out of it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
            && self.beyond.is_none()
            && self.fin.is_none()
            && self.urgent.is_none()
    }

    /// Bytes of memory that are kept for what is in it: chunks as they were allocated, and what
    /// names them. At most twice the text, unread and out of order, 64 bytes for each range out of order,
    /// and 4,096.
    ///
    /// What was read counts no longer, though a chunk stays as long as the application keeps a part of
    /// it; a chunk that short texts of several connections share counts as a whole for each.
    #[inline]
    pub fn pinned(&self) -> usize {
        self.ready.pinned() + self.beyond.as_ref().map_or(0, |beyond| beyond.pinned())
    }

    /// Appends text that begins at RCV.NXT, in a chunk of memory of `pins` bytes; nothing is held.
    #[inline]
    pub fn append_chunk(&mut self, chunk: bytes::Bytes, pins: u32) {
        debug_assert!(!self.has_held(), "what is held may be in order now");
        self.nxt += chunk.len() as u64;
        self.ready.push(chunk, pins);
    }

    /// Appends text that begins at RCV.NXT, and what was held behind it, in chunks of `pool`. Returns how
    /// far RCV.NXT moves.
    pub fn append(
        &mut self,
        pool: &mut ChunkPool,
        payload: Payload<'_>,
        skip: u32,
        take: u32,
    ) -> u32 {
        let before = self.nxt;
        self.ready.append(pool, payload, skip, take);
        self.nxt += u64::from(take);
        if let Some(beyond) = &mut self.beyond {
            self.nxt = beyond.release(self.nxt, pool, &mut self.ready);
            self.release();
        }
        (self.nxt - before) as u32
    }

    /// The first part of the `take` bytes that begin `ahead` beyond RCV.NXT which is held already: where
    /// it begins and ends, in bytes beyond RCV.NXT.
    #[inline]
    pub fn overlap(&self, ahead: u32, take: u32) -> Option<(u32, u32)> {
        self.beyond.as_ref().and_then(|beyond| self.overlap_with(beyond, ahead, take))
    }

    // Out of line: nearly every segment finds nothing held, and pays for that question alone.
    #[inline(never)]
    fn overlap_with(&self, beyond: &OutOfOrder, ahead: u32, take: u32) -> Option<(u32, u32)> {
        let start = self.nxt + u64::from(ahead);
        let end = start + u64::from(take);
        let (held, held_end) = beyond.first_within(start, end)?;
        let number = |offset: u64| (offset - self.nxt) as u32;
        Some((number(held.max(start)), number(held_end.min(end))))
    }

    /// Keeps text that begins `ahead` bytes beyond RCV.NXT, unless it would make more than
    /// `limit` ranges.
    pub fn hold(&mut self, ahead: u32, payload: Payload<'_>, text: Text, limit: usize) -> Held {
        let start = self.nxt + u64::from(ahead);
        let end = start + u64::from(text.take);
        let beyond = self.beyond.get_or_insert_default();
        let around = beyond.around(start);
        if around.is_some_and(|(_, range_end)| range_end >= end) {
            self.note_recent(start);
            return Held::Duplicate;
        }
        // What grows a range makes none: a peer at its bound may still fill its gaps.
        let joins = around.is_some() || beyond.begins_within(start, end);
        if !joins && beyond.ranges() >= limit {
            return Held::Refused;
        }
        beyond.insert(start, end, payload, text.skip);
        self.note_recent(start);
        Held::Kept
    }

    /// The next chunk in order, or its first `most` bytes (>= 1). None holds bytes from both
    /// sides of the urgent mark, as a read must not cross it (RFC 9293 3.9.1.3).
    pub fn read(&mut self, most: usize) -> Option<bytes::Bytes> {
        let Some(left) = self.urgent_mark() else { return self.ready.pop_up_to(most) };
        cold_path();
        let left = left as usize;
        let chunk = self.ready.pop_up_to(most.min(left))?;
        if chunk.len() == left {
            self.urgent = None;
        }
        Some(chunk)
    }

    /// Returns the text that can be read, piece by piece; it stays.
    pub fn peek(&self) -> impl Iterator<Item = &[u8]> {
        self.ready.pieces()
    }

    /// The peer's urgent data end `ahead` bytes (>= 1) beyond what was read. Returns whether that is
    /// news.
    pub fn note_urgent(&mut self, ahead: u32) -> bool {
        let end = self.consumed() + u64::from(ahead);
        let news = self.urgent.is_none_or(|known| known < end);
        if news {
            self.urgent = Some(end);
        }
        news
    }

    /// Bytes to be read up to the end of the urgent data.
    pub fn urgent_mark(&self) -> Option<u32> {
        self.urgent.map(|end| (end - self.consumed()) as u32)
    }

    /// The offset up to which the application read.
    fn consumed(&self) -> u64 {
        self.nxt - u64::from(self.ready.len())
    }

    /// The peer's FIN lies `ahead` bytes beyond RCV.NXT. Of a peer that contradicts itself counts what came
    /// first, as SACK may have named it: a FIN in another place, or in front of text that is held, is not
    /// held. In order it will end the stream all the same. Returns whether this one is held.
    pub fn note_fin(&mut self, ahead: u32) -> bool {
        let at = self.nxt + u64::from(ahead);
        let is_behind = self.beyond.as_ref().is_some_and(|beyond| beyond.end() > at);
        if is_behind || self.fin.is_some_and(|known| known != at) {
            return false;
        }
        self.fin = Some(at);
        if ahead > 0 {
            // A FIN is held like text: what comes before it fills a gap, and is acknowledged at once.
            self.beyond.get_or_insert_default();
            self.note_recent(at);
        }
        true
    }

    /// The part of the text that begins `ahead` bytes beyond RCV.NXT which lies in front of the peer's
    /// FIN: nothing behind that is of the stream.
    #[inline]
    pub fn up_to_fin(&self, ahead: u32, text: Text) -> Text {
        let Some(fin) = self.fin else { return text };
        cold_path();
        let left = fin.saturating_sub(self.nxt + u64::from(ahead));
        Text { take: u64::from(text.take).min(left) as u32, ..text }
    }

    /// True if the peer's FIN arrived and waits for what lies before it.
    #[inline]
    pub const fn awaits_fin(&self) -> bool {
        self.fin.is_some()
    }

    /// True if the peer's FIN is the next number expected; it is then taken.
    pub fn take_fin(&mut self) -> bool {
        let due = self.fin == Some(self.nxt);
        if due {
            self.end();
        }
        due
    }

    /// Nothing more will come: what is in order can be read, and what waits for more goes. Urgent
    /// data end where the stream does, whatever the peer said.
    pub fn end(&mut self) {
        if self.beyond.is_some() {
            self.forget_beyond();
        }
        self.fin = None;
        if let Some(end) = self.urgent {
            cold_path();
            let consumed = self.consumed();
            self.urgent = Some(end.min(self.nxt)).filter(|end| *end > consumed);
        }
    }

    /// Forgets the text that is held out of order.
    #[inline(never)]
    fn forget_beyond(&mut self) {
        self.beyond = None;
        // What changed of it last is nothing for another connection.
        self.recent = [0; RECENT];
    }

    /// True if text is held out of order, or the FIN.
    #[inline]
    pub fn has_held(&self) -> bool {
        self.beyond.is_some()
    }

    /// Releases the memory of held text, if none is held any more.
    fn release(&mut self) {
        let empty = self.beyond.as_ref().is_some_and(|beyond| beyond.ranges() == 0);
        if empty && self.held_fin().is_none() {
            self.beyond = None;
        }
    }

    /// The offset of the FIN, if something before it is missing.
    fn held_fin(&self) -> Option<u64> {
        self.fin.filter(|fin| *fin > self.nxt)
    }

    /// Names the ranges held, at most until there are `most` blocks: first the one that a duplicate is
    /// part of that `blocks` begins with (RFC 2883 4), then the one that changed last (RFC 2018 4). Behind
    /// those that changed recently stand the first of the others: when the gaps in front were
    /// filled, nothing else would tell the sender of them. What a handshake holds back is none: RFC 2018 3,
    /// "the bytes just below the block, (Left Edge of Block - 1), and just above the block, (Right Edge of
    /// Block), have not been received."
    pub fn sack_blocks(&self, nxt: SeqNum, most: usize, blocks: &mut SackBlocks) {
        let recent = self.recent.iter().filter_map(|at| self.range_around(*at));
        let beyond = self.beyond.iter().flat_map(|beyond| beyond.iter().map(|(start, _)| start));
        // At most RECENT of the first so many are among the recent ones, and of the rest no more fit.
        let others = beyond.chain(self.held_fin()).take(2 * RECENT);
        let others = others.filter_map(|at| self.range_around(at));
        let number = |offset: u64| nxt + (offset - self.nxt) as u32;
        let before = blocks.as_slice().len();
        let duplicate = blocks.as_slice().first().filter(|block| !block.left.before(nxt));
        let around = duplicate.map(|block| self.nxt + u64::from(block.left.offset_from(nxt)));
        let around = around.and_then(|at| self.range_around(at));
        let named = around.into_iter().chain(recent).chain(others);
        for (start, end) in named.filter(|(start, _)| *start > self.nxt) {
            if blocks.as_slice().len() >= most {
                return;
            }
            let block = SackBlock { left: number(start), right: number(end) };
            if !blocks.as_slice().iter().skip(before).any(|named| *named == block) {
                blocks.push(block);
            }
        }
    }

    /// The held range that the byte at `at` lies in. A FIN held behind it is its last number, as a
    /// FIN without text in front is a range of its own.
    fn range_around(&self, at: u64) -> Option<(u64, u64)> {
        let fin = self.held_fin();
        let around = self.beyond.as_ref().and_then(|beyond| beyond.around(at));
        let range = around.map(|(start, end)| (start, end + u64::from(fin == Some(end))));
        let lone = fin.filter(|fin| *fin == at).map(|fin| (fin, fin + 1));
        range.filter(|(_, end)| at < *end).or(lone)
    }

    /// Releases everything.
    pub fn clear(&mut self) {
        self.ready.clear();
        if self.beyond.is_some() {
            self.forget_beyond();
        }
        self.nxt = 0;
        self.recent = [0; RECENT];
        self.fin = None;
        self.urgent = None;
    }

    /// The range around `at` changed: it moves to the front, from wherever it stood. A range that
    /// grows segment by segment must not push the others out (RFC 2018 4: "The data receiver SHOULD
    /// include as many distinct SACK blocks as possible in the SACK option").
    fn note_recent(&mut self, at: u64) {
        let (start, end) = self.range_around(at).unwrap_or((at, at));
        let mut recent = [at; RECENT];
        let others =
            self.recent.iter().copied().filter(|other| {
                !(start..end).contains(other) && self.range_around(*other).is_some()
            });
        for (place, other) in recent.iter_mut().skip(1).zip(others) {
            *place = other;
        }
        self.recent = recent;
    }
}

/// The part of a payload that lies in the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Bytes of the payload before it.
    pub skip: u32,
    /// Bytes of the payload that lie in the window.
    pub take: u32,
}

#[cfg(test)]
mod tests;
