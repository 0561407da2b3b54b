//! What is in flight: each transmission's time, and what became of it.
//!
//! Everything is in stream offsets of 64 bits, which count sequence numbers: FIN takes one, SYN is not
//! part of it. Nothing here decides: [`crate::recovery`] asks, and judges.
//!
//! ```text
//!      una                              end        Offsets between:
//!       |  sent: first transmissions     |         sacked   the peer named them as held
//!       +------+------+------+------+----+         lost     they are taken for lost, and not sent again
//!       | lost |sacked|repair|sacked|    |         repairs  they were sent again
//!       +------+------+------+------+----+         none     they are under way
//! ```

mod ranges;
mod repairs;

use alloc::collections::VecDeque;
use core::ops::Range;

use whimbrel_base::Instant;

pub use ranges::Ranges;
use repairs::Repairs;

/// The first transmission of a segment, or of a super-segment. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    /// One past its last octet.
    end: u64,
    /// Octets of each of its segments, the last aside.
    mss: u16,
}

/// What was sent and is not acknowledged. It takes 24 octets for each (super-)segment, and some 100 for
/// each hole.
#[derive(Debug, Default)]
pub struct Flight {
    una: u64,
    end: u64,
    sent: VecDeque<Sent>,
    sacked: Ranges,
    lost: Ranges,
    repairs: Repairs,
    /// What was ever sent again, sooner or later.
    ever: Ranges,
    /// The first transmissions below this were judged: they are lost, or not here any more.
    judged: u64,
    /// One past the highest offset that was acknowledged in any way (RFC 8985 5.3: RACK.fack).
    fack: u64,
}

/// When something was sent, and where it ended: what comes later in this order was sent later.
pub type Transmission = (Instant, u64);

/// What one acknowledgment delivered: what the peer had not named before.
#[derive(Clone, Copy, Default, Debug)]
pub struct Delivered {
    /// How many offsets.
    pub octets: u64,
    /// Of what was sent once, the transmission that was the last to leave.
    pub once: Option<Transmission>,
    /// When the first to leave of it was sent, unless something that was sent again arrived with it, for
    /// which it may have waited (RFC 6298 3).
    pub once_first: Option<Instant>,
    /// Something of it was sent again.
    pub is_ambiguous: bool,
    /// The lowest offset of what was sent once.
    pub once_from: Option<u64>,
    /// Of what was sent again, the transmission that was the last to leave.
    pub again: Option<Transmission>,
    /// Something that was sent once arrived after something behind it.
    pub is_reordered: bool,
    /// The most octets that are known to have arrived in one segment.
    pub segment: u16,
}

/// What became of a judgment by age.
#[derive(Clone, Copy, Default, Debug)]
pub struct Judged {
    /// Something is lost that was not.
    pub is_lost: bool,
    /// A repair was lost.
    pub repair_is_lost: bool,
    /// When the last was sent that is to be judged later.
    pub pending: Option<Instant>,
}

/// What can be asked.
impl Flight {
    /// SND.UNA.
    #[inline]
    pub const fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Whether nothing of it was lost, sent again or named as held.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.sacked.is_empty() && self.lost.is_empty() && self.ever.is_empty()
    }

    /// Octets that are thought to be in the network: RFC 6675's pipe, but for what was sent twice and
    /// is not lost, which counts once.
    #[inline]
    pub fn pipe(&self) -> u32 {
        (self.end - self.una - self.sacked.octets() - self.lost.octets()) as u32
    }

    /// What the peer named as held.
    pub const fn sacked(&self) -> &Ranges {
        &self.sacked
    }

    /// What is lost and not sent again.
    #[inline]
    pub const fn lost(&self) -> &Ranges {
        &self.lost
    }

    /// Octets that were sent again, and are thought to be in the network.
    pub fn repaired(&self) -> u64 {
        self.repairs.octets()
    }

    /// The first transmission that the offset is part of.
    fn record(&self, offset: u64) -> Option<&Sent> {
        self.sent.get(self.place(offset))
    }

    fn place(&self, offset: u64) -> usize {
        self.sent.partition_point(|sent| sent.end <= offset)
    }

    fn start_of(&self, place: usize) -> u64 {
        let before = place.checked_sub(1).and_then(|before| self.sent.get(before));
        before.map_or(self.una, |sent| sent.end).max(self.una)
    }

    /// The segment at SND.UNA, as it was sent.
    pub fn first_segment(&self) -> Range<u64> {
        let end = self
            .sent
            .front()
            .map_or(self.una, |first| first.end.min(self.una + u64::from(first.mss.max(1))));
        self.una..end
    }

    /// The last segment, as it was sent.
    pub fn last_segment(&self) -> Range<u64> {
        let Some(last) = self.sent.back() else { return self.end..self.end };
        let start = self.start_of(self.sent.len() - 1);
        let (len, mss) = (last.end - start, u64::from(last.mss.max(1)));
        let odd = if len % mss == 0 { mss.min(len) } else { len % mss };
        last.end - odd..last.end
    }

    /// When the segment at SND.UNA was sent first.
    #[inline]
    pub fn first_sent(&self) -> Option<Instant> {
        self.sent.front().map(|first| first.at)
    }

    /// When something was sent last for the first time.
    pub fn last_sent(&self) -> Option<Instant> {
        self.sent.back().map(|last| last.at)
    }

    /// Whether all of it is one segment.
    #[inline]
    pub fn is_one_segment(&self) -> bool {
        self.sent.front().is_none_or(|first| self.end - self.una <= u64::from(first.mss.max(1)))
    }

    /// Bytes that it takes beside itself.
    pub fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>()
            + (self.sacked.len() + self.lost.len() + self.ever.len()) * HOLE
    }
}

/// What happens.
impl Flight {
    /// `range` leaves, in segments of `mss` octets: for the first time, or again, or first the one and then
    /// the other. Returns how many octets were sent before.
    #[inline]
    pub fn transmit(&mut self, range: Range<u64>, mss: u16, at: Instant) -> u64 {
        let again = if range.start < self.end {
            self.repair(range.start..range.end.min(self.end), at)
        } else {
            0
        };
        if range.end > self.end {
            self.end = range.end;
            self.sent.push_back(Sent { at, end: range.end, mss });
        }
        again
    }

    #[cold]
    fn repair(&mut self, range: Range<u64>, at: Instant) -> u64 {
        self.lost.remove(range.clone());
        self.repairs.insert(range.clone(), at);
        self.ever.insert(range.clone());
        range.end - range.start
    }

    /// All below `to` is acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, to: u64, delivered: &mut Delivered) {
        if self.is_plain() {
            delivered.octets += to.min(self.end) - self.una;
            self.pop(to, delivered);
            delivered.once_from = Some(self.una);
            self.fack = to;
        } else {
            self.acknowledge_with_holes(to, delivered);
        }
        self.una = to;
        self.end = self.end.max(to);
    }

    #[inline(never)]
    fn acknowledge_with_holes(&mut self, to: u64, delivered: &mut Delivered) {
        let mut at = self.una;
        while let Some(gap) = self.sacked.gap(at..to.min(self.end)) {
            at = gap.end;
            self.deliver(gap, delivered);
        }
        for ranges in [&mut self.sacked, &mut self.lost, &mut self.ever] {
            ranges.remove_below(to);
        }
        let mut ended = Delivered::default();
        self.pop(to, &mut ended);
        delivered.segment = ended.segment;
    }

    /// The records below `to` go.
    #[inline]
    fn pop(&mut self, to: u64, delivered: &mut Delivered) {
        let mut start = self.una;
        while let Some(first) = self.sent.front() {
            let whole = first.end <= to;
            let end = if whole { first.end } else { to };
            if end > start {
                let octets = (end - start).min(u64::from(first.mss)) as u16;
                // Of a segment that is acknowledged in part nobody knows whether it came as one.
                if whole || octets == first.mss {
                    delivered.segment = delivered.segment.max(octets);
                }
                delivered.once_first.get_or_insert(first.at);
                delivered.once = Some((first.at, end));
            }
            if !whole {
                return;
            }
            start = end;
            self.sent.pop_front();
        }
    }

    /// The peer names `range` as held, which lies between SND.UNA and SND.NXT.
    pub fn sack(&mut self, range: Range<u64>, delivered: &mut Delivered) {
        let mut at = range.start;
        while let Some(gap) = self.sacked.gap(at..range.end) {
            at = gap.end;
            self.deliver(gap, delivered);
        }
        if at > range.start {
            self.sacked.insert(range);
        }
    }

    /// `range` arrived, and was not known to have.
    fn deliver(&mut self, range: Range<u64>, delivered: &mut Delivered) {
        delivered.octets += range.end - range.start;
        if let Some(once) = self.ever.gap(range.clone()) {
            // Of several parts the first is looked at: what is behind it was sent later, if at all.
            let at = self.record(once.end - 1).map(|sent| (sent.at, once.end));
            delivered.once = delivered.once.max(at);
            let first = self.record(once.start).map(|sent| sent.at);
            delivered.once_first = [delivered.once_first, first].into_iter().flatten().min();
            delivered.is_ambiguous |= once != range;
            let from = delivered.once_from.map_or(once.start, |from| from.min(once.start));
            delivered.once_from = Some(from);
            delivered.is_reordered |= once.end < self.fack;
        } else {
            delivered.is_ambiguous = true;
        }
        if delivered.is_ambiguous {
            delivered.once_first = None;
        }
        self.fack = self.fack.max(range.end);
        self.lost.remove(range.clone());
        delivered.again = delivered.again.max(self.repairs.remove(range));
    }

    /// The peer let go of what it named: it may be lost like anything else.
    pub fn forget_sacked(&mut self) {
        self.sacked.clear();
        (self.judged, self.fack) = (self.una, self.una);
    }

    /// Nothing is lost after all, but what is judged so from now on.
    pub fn forget_lost(&mut self) {
        self.lost.clear();
        self.judged = self.una;
    }

    /// All of it counts as unsent.
    pub fn forget_all(&mut self) {
        let una = self.una;
        self.clear();
        (self.una, self.end, self.fack) = (una, una, una);
    }

    /// Lets go of everything, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        self.sent.clear();
        if !self.is_plain() {
            self.sacked.clear();
            self.lost.clear();
            self.ever.clear();
            self.repairs.clear();
        }
        (self.una, self.end, self.judged, self.fack) = (0, 0, 0, 0);
    }
}

/// What is lost.
impl Flight {
    /// `range` is lost, but for what the peer holds.
    pub fn lose(&mut self, range: Range<u64>) {
        self.repairs.remove(range.clone());
        self.lose_once(range);
    }

    /// What was sent once of `range` is lost, but for what the peer holds.
    fn lose_once(&mut self, range: Range<u64>) -> bool {
        let before = self.lost.octets();
        let mut at = range.start;
        while let Some(missing) = self.sacked.gap(at..range.end) {
            at = missing.end;
            let mut from = missing.start;
            while let Some(once) = self.repairs.gap(from..missing.end) {
                from = once.end;
                self.lost.insert(once);
            }
        }
        self.lost.octets() > before
    }

    /// What was sent before `rack`, and not after `limit`, is lost (RFC 8985 6.2).
    pub fn judge(&mut self, rack: Transmission, limit: Instant) -> Judged {
        let mut judged = Judged::default();
        self.judge_once(rack, limit, &mut judged);
        while let Some((at, range)) =
            self.repairs.oldest().filter(|(at, range)| (*at, range.end) < rack)
        {
            if at > limit {
                judged.pending = judged.pending.max(Some(at));
                break;
            }
            self.lose(range);
            (judged.is_lost, judged.repair_is_lost) = (true, true);
        }
        judged
    }

    fn judge_once(&mut self, rack: Transmission, limit: Instant, judged: &mut Judged) {
        self.judged = self.judged.max(self.una);
        let mut place = self.place(self.judged);
        while let Some(Sent { at, end, .. }) = self.sent.get(place).copied() {
            // Of a super-segment that left together with what was delivered, its front.
            let end = if (at, end) <= rack { end } else { end.min(rack.1) };
            if at > rack.0 || end <= self.judged {
                return;
            }
            if at > limit {
                judged.pending = self.last_before(rack);
                return;
            }
            judged.is_lost |= self.lose_once(self.judged..end);
            self.judged = end;
            place += 1;
        }
    }

    /// When the last was sent of what left before `rack`, was sent once and did not arrive.
    fn last_before(&self, rack: Transmission) -> Option<Instant> {
        let behind = self.sent.partition_point(|sent| (sent.at, sent.end) <= rack);
        // A segment that left with the delivered one, behind it: its record is not whole below `rack`.
        let mut places = (0..self.sent.len().min(behind + 1)).rev().take(LOOKED_AT);
        let missing = |place: &usize| {
            let Some(sent) = self.sent.get(*place) else { return false };
            let end = if sent.at < rack.0 { sent.end } else { sent.end.min(rack.1) };
            let start = self.start_of(*place).max(self.judged);
            sent.at <= rack.0 && start < end && self.sacked.gap(start..end).is_some()
        };
        let found = places.clone().find(missing).and_then(|place| self.sent.get(place));
        // Farther behind it is a little later than need be.
        let beyond = places.next_back().filter(|place| self.start_of(*place) > self.judged);
        found.map(|sent| sent.at).or_else(|| beyond.map(|_| rack.0))
    }

    /// The retransmission timer ran out: the segment at SND.UNA is lost, and what was sent until `limit`
    /// (RFC 8985 6.3).
    pub fn lose_on_timeout(&mut self, limit: Instant) {
        self.lose(self.first_segment());
        self.judge((limit, u64::MAX), limit);
    }

    /// What was sent in segments of more than `most` octets is lost.
    pub fn lose_larger(&mut self, most: u16) {
        for place in 0..self.sent.len() {
            let (start, Some(sent)) = (self.start_of(place), self.sent.get(place).copied()) else {
                return;
            };
            if (sent.end - start).min(u64::from(sent.mss)) > u64::from(most) {
                self.lose(start..sent.end);
            }
        }
    }
}

/// Bytes that a range takes in a tree of them, about.
const HOLE: usize = 32;
/// So many records are looked at for one that did not arrive.
const LOOKED_AT: usize = 8;

#[cfg(test)]
mod tests;
