//! The amount of memory a shard holds for its peers and applications, and what follows from that.
//!
//! Counted is what is pinned: the chunks behind text that was not read, whatever of them is text; what
//! waits to be sent or acknowledged, by its length, and what is remembered of its transmissions; and
//! records. Text is accounted for as it comes and goes, by one difference for each connection that is
//! touched; records, of which each is small, are looked at once a millisecond.
//!
//! Windows are announced long before they are filled, and all of them at once would be more than any
//! budget. What peers can bring in one burst is therefore not looked at after it came, but shared out
//! before: of each connection [`Budget::LEAST`] counts as held although it holds less, and once memory is
//! short none may hold more than a share of what is left. The first connection takes a part of that,
//! never all of it; the last has what was kept for it.
//!
//! Rejected: to refuse those who left text unread for a while. A burst of ten thousand connections, ten
//! segments each, was there before the while was over.

use crate::Counters;

/// The distance of a shard from its budget.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Pressure {
    /// Less than 75 % of the budget is taken.
    #[default]
    None,
    /// From 75 % on: no buffer grows by itself.
    High,
    /// From 90 % on: text out of order is refused, the newest first, which is what arrives, and text in order
    /// beyond a share of what is left: [`Budget::share`]. The buffer of an application that leaves text unread
    /// loses what it grew by, and may hold four segments. A send buffer has twice what is in flight, and no
    /// more than its floor.
    Tight,
    /// From 100 % on: each connection has four segments of window and an initial window of send
    /// buffer, no half-open entry is made where a cookie will do, and of records in TIME-WAIT one goes
    /// for each that comes.
    Full,
}

/// The account of a shard.
#[derive(Debug)]
pub struct Budget {
    /// The bytes that may be held.
    bytes: u64,
    /// The bytes that connections hold beyond [`Budget::ALLOWANCE`] each.
    text: u64,
    /// Of that, what they hold beyond [`Budget::LEAST`] each.
    excess: u64,
    /// All else, as of when it was last looked at.
    records: u64,
    /// The bytes that were to be kept then for connections that hold little.
    wanted: u64,
    /// The bytes that are kept for them.
    kept: u64,
    pressure: Pressure,
}

/// The account of a shard that may hold whatever it comes to.
impl Default for Budget {
    fn default() -> Self {
        Self {
            bytes: u64::MAX,
            text: 0,
            excess: 0,
            records: 0,
            wanted: 0,
            kept: 0,
            pressure: Pressure::None,
        }
    }
}

impl Budget {
    /// Text of a connection up to this, bytes, counts as part of its record. What most short
    /// connections hold at a time is less, and is not accounted for piece by piece.
    pub const ALLOWANCE: u32 = 512;

    /// Segments of window that a connection has while all of the budget is used.
    pub const MEMORY_LIMITED_SEGMENTS: u32 = 4;

    /// The bytes that each connection may hold at any time: two segments of Ethernet's with what they pin, so
    /// that the second draws an acknowledgment at once.
    pub const LEAST: u32 = 4096;

    /// From now on so many bytes may be held.
    pub fn set_bytes(&mut self, bytes: u64, counters: &mut Counters) {
        self.bytes = bytes;
        self.note_records(self.records, self.wanted, counters);
    }

    /// The bytes that are held.
    pub const fn held(&self) -> u64 {
        self.text + self.records
    }

    /// The bytes of text that connections hold, but for [`Budget::ALLOWANCE`] each.
    pub const fn text(&self) -> u64 {
        self.text
    }

    /// The bytes that count as held: of each connection [`Budget::LEAST`] at least, as long as that is no more than
    /// half of what records leave of 90 % of the budget. Connections that are idle alone are so never what
    /// memory is short for.
    const fn taken(&self) -> u64 {
        let small = self.text - self.excess;
        self.records + self.excess + if small > self.kept { small } else { self.kept }
    }

    /// The number of bytes of text a connection may hold at [`Pressure::Tight`] whose application has read so
    /// many, and does not fall behind.
    ///
    /// At least [`Budget::least_share`], and of the last fortieth of the budget, too, for an application
    /// that has shown that it reads: twice what it read, as in slow start, and up to half of what is left.
    pub fn share(&self, has_read: u64) -> u32 {
        let left = self.bytes.saturating_sub(self.taken());
        let shown = has_read.saturating_mul(2).min(left / 2);
        shown.max(u64::from(self.least_share())).min(u64::from(u32::MAX)) as u32
    }

    /// The share of an application that has read nothing yet: a sixteenth of what is left of 97.5 % of the
    /// budget, and [`Budget::LEAST`] at least.
    pub fn least_share(&self) -> u32 {
        let left = (self.bytes / 40 * 39).saturating_sub(self.taken());
        (left / 16).clamp(u64::from(Self::LEAST), u64::from(u32::MAX)) as u32
    }

    /// The distance of that from the budget.
    #[inline]
    pub const fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// True if all that may be held is.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.pressure == Pressure::Full
    }

    /// So many bytes of records are held, and so many are to be kept for connections that hold little: of
    /// each [`Budget::LEAST`], and what holds it where that is no record yet.
    pub fn note_records(&mut self, bytes: u64, wanted: u64, counters: &mut Counters) {
        (self.records, self.wanted) = (bytes, wanted);
        let most = (self.bytes / 10 * 9).saturating_sub(bytes) / 2;
        self.kept = wanted.min(most);
        self.update_pressure(counters);
    }

    /// A connection that held `before` bytes of text holds `after`.
    pub(crate) fn move_text(&mut self, before: u32, after: u32, counters: &mut Counters) {
        self.text = self.text + u64::from(after) - u64::from(before);
        self.excess = self.excess + excess(after) - excess(before);
        self.update_pressure(counters);
    }

    /// A connection holds these bytes no longer. Pressure falls when the account is looked at next.
    #[inline]
    pub(crate) fn release_text(&mut self, bytes: u32) {
        self.text -= u64::from(bytes);
        self.excess -= excess(bytes);
    }

    #[inline]
    fn update_pressure(&mut self, counters: &mut Counters) {
        let reached = self.reached(self.taken());
        if reached != self.pressure {
            self.turn(reached, counters);
        }
    }

    /// The level in which so much is.
    fn reached(&self, taken: u64) -> Pressure {
        match taken {
            _ if taken < self.bytes / 4 * 3 => Pressure::None,
            _ if taken < self.bytes / 10 * 9 => Pressure::High,
            _ if taken < self.bytes => Pressure::Tight,
            _ => Pressure::Full,
        }
    }

    #[cold]
    fn turn(&mut self, reached: Pressure, counters: &mut Counters) {
        if reached < self.pressure {
            // It is left a sixteenth below where it began: around one of its ends it would come and
            // go with each segment.
            self.pressure = self.pressure.min(self.reached(self.taken() + self.bytes / 16));
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

/// The bytes beyond [`Budget::LEAST`] of a connection that holds so many.
#[inline]
const fn excess(bytes: u32) -> u64 {
    bytes.saturating_sub(Budget::LEAST) as u64
}

#[cfg(test)]
mod tests;
