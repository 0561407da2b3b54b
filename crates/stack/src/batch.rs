//! Segments on their way to a device.

use alloc::boxed::Box;

use whimbrel_base::packet::TxSegment;

/// A queue of segments between [`Shard::tx`](crate::Shard::tx), which fills it, and a device,
/// which empties it. Its places are used again and again: nothing is allocated after the start.
#[derive(Debug)]
pub struct TxBatch {
    places: Box<[TxSegment]>,
    sent: usize,
    filled: usize,
}

impl TxBatch {
    /// A batch of `places` segments (about 730 bytes each). Of 16, what [`Shard::tx`](crate::Shard::tx) wrote
    /// is still in a first-level cache of 32 KiB when the device reads it.
    pub fn new(places: usize) -> Self {
        Self { places: (0..places).map(|_| TxSegment::new()).collect(), sent: 0, filled: 0 }
    }

    /// The segments not yet sent, oldest first.
    pub fn pending(&self) -> &[TxSegment] {
        self.places.get(self.sent..self.filled).unwrap_or_default()
    }

    /// The first `count` of the pending segments were sent.
    pub fn consume(&mut self, count: usize) {
        let end = (self.sent + count).min(self.filled);
        let sent = self.places.get_mut(self.sent..end).unwrap_or_default();
        sent.iter_mut().for_each(TxSegment::clear);
        self.sent = end;
        if self.sent == self.filled {
            self.sent = 0;
            self.filled = 0;
        }
    }

    /// Hands each pending segment to `send`, the oldest first, and empties the batch. Returns their number.
    #[inline]
    pub fn drain(&mut self, mut send: impl FnMut(&TxSegment)) -> usize {
        let pending = self.places.get_mut(self.sent..self.filled).unwrap_or_default();
        let count = pending.len();
        for segment in pending {
            send(segment);
            segment.clear();
        }
        (self.sent, self.filled) = (0, 0);
        count
    }

    /// True if every segment was sent.
    pub fn is_empty(&self) -> bool {
        self.sent == self.filled
    }

    /// True if no place is left.
    pub fn is_full(&self) -> bool {
        self.filled == self.places.len()
    }

    /// Fills the next place by `fill`, which says whether it wrote a segment. `None` when full.
    pub fn fill(&mut self, fill: impl FnOnce(&mut TxSegment) -> bool) -> Option<bool> {
        let place = self.places.get_mut(self.filled)?;
        let filled = fill(place);
        if filled {
            self.filled += 1;
        } else {
            Self::empty(place);
        }
        Some(filled)
    }

    #[inline(never)]
    fn empty(place: &mut TxSegment) {
        place.clear();
    }
}

#[cfg(test)]
mod tests;
