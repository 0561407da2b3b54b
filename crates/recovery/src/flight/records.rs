//! First transmissions, in the order of time and sequence.

use core::ops::Range;

use whimbrel_base::{InlineQueue, Instant, cold_path};

use super::Delivered;

/// The first transmission of a segment, or of a super-segment. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// One past its last byte.
    pub(super) end: u64,
    /// Bytes of each of its segments, the last aside.
    mss: u16,
}

/// The first transmissions of what is not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) una: u64,
    pub(super) end: u64,
    pub(super) sent: InlineQueue<Sent>,
}

impl Records {
    /// All below `end` was sent, the rest of it now.
    #[inline]
    pub(super) fn push(&mut self, end: u64, mss: u16, at: Instant) {
        if end <= self.end {
            return;
        }
        self.end = end;
        if self.sent.len() >= MANY && self.are_small() {
            cold_path();
            // A sender of single bytes would have more records than text. Text that joins a record
            // counts as sent with it.
            if let Some(last) = self.sent.back_mut() {
                last.end = end;
                return;
            }
        }
        self.sent.push_back(Sent { at, end, mss });
    }

    /// All below `to` is acknowledged.
    #[inline(always)]
    pub(super) fn pop(&mut self, to: u64, delivered: &mut Delivered) {
        if let Some(only) = self.sent.only()
            && only.end <= to
        {
            // Nearly each flight of a short connection.
            if only.end > self.una {
                delivered.segment = (only.end - self.una).min(u64::from(only.mss)) as u16;
                delivered.once_first = Some(only.at);
                delivered.once = Some((only.at, only.end));
            }
            self.sent.clear();
            (self.una, self.end) = (to, self.end.max(to));
            return;
        }
        self.pop_each(to, delivered);
    }

    /// Takes off all below `to`, of several transmissions or of a part of one.
    // Always: called by reference, what was delivered would stand in memory for a single one, too.
    #[inline(always)]
    fn pop_each(&mut self, to: u64, delivered: &mut Delivered) {
        let mut start = self.una;
        while let Some(first) = self.sent.front() {
            let whole = first.end <= to;
            let end = if whole { first.end } else { to };
            if end > start {
                let bytes = (end - start).min(u64::from(first.mss)) as u16;
                // A segment acknowledged in part may have arrived in pieces.
                if whole || bytes == first.mss {
                    delivered.segment = delivered.segment.max(bytes);
                }
                delivered.once_first.get_or_insert(first.at);
                delivered.once = Some((first.at, end));
            }
            if !whole {
                break;
            }
            start = end;
            self.sent.pop_front();
        }
        self.una = to;
        self.end = self.end.max(to);
    }

    /// About how many segments they were, at least.
    pub(super) fn segments(&self) -> u64 {
        let mss = self.sent.back().map_or(1, |last| last.mss.max(1));
        (self.end - self.una) / u64::from(mss) + self.sent.len() as u64
    }

    /// True if they have fewer than 64 bytes each.
    fn are_small(&self) -> bool {
        (self.end - self.una) / SMALL < self.sent.len() as u64
    }

    /// The first transmission that the offset is part of.
    pub(super) fn of(&self, offset: u64) -> Option<&Sent> {
        self.sent.get(self.place(offset))
    }

    pub(super) fn place(&self, offset: u64) -> usize {
        self.sent.partition_point(|sent| sent.end <= offset)
    }

    pub(super) fn start_of(&self, place: usize) -> u64 {
        let before = place.checked_sub(1).and_then(|before| self.sent.get(before));
        before.map_or(self.una, |sent| sent.end).max(self.una)
    }

    /// The segment at SND.UNA, as it was sent.
    pub(super) fn first_segment(&self) -> Range<u64> {
        self.segment_from(0, self.una)
    }

    /// As much from `start` on of the transmission at `place` as a segment of it has at most.
    pub(super) fn segment_from(&self, place: usize, start: u64) -> Range<u64> {
        let sent = self.sent.get(place);
        let end = sent.map_or(start, |sent| sent.end.min(start + u64::from(sent.mss.max(1))));
        start..end
    }

    /// The last segment, as it was sent.
    pub(super) fn last_segment(&self) -> Range<u64> {
        let Some(last) = self.sent.back() else { return self.end..self.end };
        let start = self.start_of(self.sent.len() - 1);
        let (len, mss) = (last.end - start, u64::from(last.mss.max(1)));
        let odd = if len.is_multiple_of(mss) { mss.min(len) } else { len % mss };
        last.end - odd..last.end
    }

    /// The transmission at `place`, if its segments have more than `most` bytes.
    pub(super) fn larger(&self, place: usize, most: u16) -> Option<Range<u64>> {
        let (start, sent) = (self.start_of(place), self.sent.get(place)?);
        let is_larger = (sent.end - start).min(u64::from(sent.mss)) > u64::from(most);
        is_larger.then_some(start..sent.end)
    }

    /// Clears everything, and keeps the memory that a short connection needs.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.sent.capacity() > KEPT {
            cold_path();
            self.sent = InlineQueue::new();
        } else if !self.sent.is_empty() {
            self.sent.clear();
        }
        (self.una, self.end) = (0, 0);
    }

    pub(super) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>()
    }
}

/// So many records may be of few bytes each.
const MANY: usize = 1024;
/// So many records have room where none is in use.
const KEPT: usize = 64;
/// Bytes of a transmission that are worth a record, where there are many.
const SMALL: u64 = 64;
