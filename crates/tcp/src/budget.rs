//! How much memory a shard holds for its peers and applications, and what follows from that.
//!
//! Counted is what is pinned: the chunks behind text that was not read, whatever of them is text; what
//! waits to be sent or acknowledged, by its length, and what is remembered of its transmissions; and
//! records. Text is accounted for as it comes and goes, by one difference for each connection that is
//! touched; records, of which each is small, are looked at once a millisecond.

use crate::Counters;

/// How near a shard is to its budget.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Pressure {
    /// Less than 75 % of the budget is held.
    #[default]
    None,
    /// From 75 % on: no buffer grows by itself.
    High,
    /// From 90 % on: text out of order is refused, the newest first, which is what arrives. Of whoever
    /// leaves text unread the buffer loses what it grew by, and text beyond four segments is refused; of
    /// whoever does not, nothing. A send buffer has twice what is in flight, and no more than its floor.
    Tight,
    /// From 100 % on: each connection has four segments of window and an initial window of send
    /// buffer, no half-open entry is made where a cookie will do, and of records in TIME-WAIT one goes
    /// for each that comes.
    Full,
}

/// The account of a shard.
#[derive(Debug)]
pub struct Budget {
    /// What may be held, bytes.
    bytes: u64,
    /// What connections hold beyond [`Budget::ALLOWANCE`] each.
    text: u64,
    /// All else, as of when it was last looked at.
    records: u64,
    pressure: Pressure,
}

/// The account of a shard that may hold whatever it comes to.
impl Default for Budget {
    fn default() -> Self {
        Self { bytes: u64::MAX, text: 0, records: 0, pressure: Pressure::None }
    }
}

impl Budget {
    /// Text of a connection up to this, bytes, counts as part of its record. What most short
    /// connections hold at a time is less, and is not accounted for piece by piece.
    pub const ALLOWANCE: u32 = 512;

    /// Segments of window that a connection has while all of the budget is used.
    pub const PINCHED_SEGMENTS: u32 = 4;

    /// From now on so many bytes may be held.
    pub fn set_bytes(&mut self, bytes: u64, counters: &mut Counters) {
        self.bytes = bytes;
        self.update_pressure(counters);
    }

    /// What is held, bytes.
    pub const fn held(&self) -> u64 {
        self.text + self.records
    }

    /// What connections hold of text, bytes, but for [`Budget::ALLOWANCE`] each.
    pub const fn text(&self) -> u64 {
        self.text
    }

    /// How near that is to what may be held.
    #[inline]
    pub const fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// Whether all that may be held is.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.pressure == Pressure::Full
    }

    /// So many bytes of records are held.
    pub fn note_records(&mut self, bytes: u64, counters: &mut Counters) {
        self.records = bytes;
        self.update_pressure(counters);
    }

    /// A connection that held `before` bytes of text holds `after`.
    pub(crate) fn move_text(&mut self, before: u32, after: u32, counters: &mut Counters) {
        self.text = self.text + u64::from(after) - u64::from(before);
        self.update_pressure(counters);
    }

    /// A connection holds these bytes no longer. Pressure falls when the account is looked at next.
    #[inline]
    pub(crate) fn release_text(&mut self, bytes: u32) {
        self.text -= u64::from(bytes);
    }

    #[inline]
    fn update_pressure(&mut self, counters: &mut Counters) {
        let reached = self.reached(self.held());
        if reached != self.pressure {
            self.turn(reached, counters);
        }
    }

    /// The level in which so much is.
    fn reached(&self, held: u64) -> Pressure {
        match held {
            _ if held < self.bytes / 4 * 3 => Pressure::None,
            _ if held < self.bytes / 10 * 9 => Pressure::High,
            _ if held < self.bytes => Pressure::Tight,
            _ => Pressure::Full,
        }
    }

    #[cold]
    fn turn(&mut self, reached: Pressure, counters: &mut Counters) {
        if reached < self.pressure {
            // It is left a sixteenth below where it began: around one of its ends it would come and
            // go with each segment.
            self.pressure = self.pressure.min(self.reached(self.held() + self.bytes / 16));
            return;
        }
        let levels = [
            (Pressure::High, &mut counters.mem_high),
            (Pressure::Tight, &mut counters.mem_tight),
            (Pressure::Full, &mut counters.mem_full),
        ];
        for (level, count) in levels {
            *count += u64::from(self.pressure < level && level <= reached);
        }
        self.pressure = reached;
    }
}

#[cfg(test)]
mod tests;
