//! The parts of a flight that are not as they were sent: named as held, lost, or sent again.

use alloc::boxed::Box;
use core::ops::Range;

use whimbrel_base::Instant;

use super::ranges::Ranges;
use super::rates::Rates;
use super::records::{Records, Sent};
use super::repairs::Repairs;
use super::{Delivered, LossFound, Transmission};

/// The missing text, and the text held beyond it.
#[derive(Debug)]
pub(super) struct Holes {
    pub(super) sacked: Ranges,
    pub(super) lost: Ranges,
    pub(super) repairs: Repairs,
    /// Text that was ever sent again.
    ever: Ranges,
    /// The first transmissions below this were judged: they are lost, or not here any more.
    judged: u64,
    /// One past the highest offset that was acknowledged in any way (RFC 8985 5.3: RACK.fack).
    fack: u64,
    /// Offset below which the peer has reneged, and its SACK blocks are ignored.
    reneged: u64,
    /// SND.NXT when what was lost was forgotten last.
    pub(super) undone_end: u64,
    /// There while the algorithm asks for samples of the delivery rate.
    pub(super) rates: Option<Box<Rates>>,
}

impl Holes {
    /// None so far; all below `una` is acknowledged.
    pub(super) fn new(una: u64) -> Self {
        Self {
            sacked: Ranges::NONE,
            lost: Ranges::NONE,
            repairs: Repairs::default(),
            ever: Ranges::NONE,
            judged: una,
            fack: una,
            reneged: una,
            undone_end: una,
            rates: None,
        }
    }

    /// True if nothing is left to be known, all below `una` being acknowledged.
    pub(super) const fn are_none(&self, una: u64) -> bool {
        self.sacked.is_empty()
            && self.lost.is_empty()
            && self.ever.is_empty()
            && una >= self.reneged
            && una >= self.undone_end
    }

    /// Bytes that are not in the network.
    #[inline]
    pub(super) const fn gone(&self) -> u64 {
        self.sacked.bytes() + self.lost.bytes()
    }

    /// True if the byte was sent again, and is thought to be in the network.
    pub(super) fn is_repaired(&self, offset: u64) -> bool {
        self.repairs.gap(offset..offset + 1).is_none()
    }

    /// Bytes that were sent again, and are thought to be in the network.
    pub(super) fn repaired(&self) -> u64 {
        self.repairs.bytes()
    }

    /// Bytes that they take.
    pub(super) fn memory(&self) -> usize {
        let ranges = self.sacked.len() + self.lost.len() + self.ever.len() + 2 * self.repairs.len();
        size_of::<Self>() + ranges * HOLE + self.rates.as_ref().map_or(0, |rates| rates.memory())
    }

    /// `range`, which was lost, leaves again `at` this time: it is under way, and lost no more.
    pub(super) fn repair(&mut self, range: Range<u64>, at: Instant) {
        self.lost.remove(range.clone());
        self.repairs.insert(range.clone(), at);
        self.ever.insert(range);
    }

    /// All below `to` is acknowledged; the records know nothing of it.
    pub(super) fn acknowledge(&mut self, records: &Records, to: u64, delivered: &mut Delivered) {
        self.deliver_gaps(records, records.una..to.min(records.end), delivered);
        for ranges in [&mut self.sacked, &mut self.lost, &mut self.ever] {
            ranges.remove_below(to);
        }
    }

    /// The peer names `range` as held.
    pub(super) fn sack(&mut self, records: &Records, range: Range<u64>, delivered: &mut Delivered) {
        // A peer that alternately acknowledges and reneges would otherwise cause the whole flight to be
        // examined and retransmitted at every second acknowledgment.
        let range = range.start.max(self.reneged)..range.end;
        if range.is_empty() {
            return;
        }
        self.deliver_gaps(records, range.clone(), delivered);
        self.sacked.insert(range);
    }

    /// Whatever of `range` was not known to have arrived did.
    fn deliver_gaps(&mut self, records: &Records, range: Range<u64>, delivered: &mut Delivered) {
        let mut at = range.start;
        while let Some(gap) = self.sacked.gap(at..range.end) {
            at = gap.end;
            self.deliver(records, gap, delivered);
        }
    }

    fn deliver(&mut self, records: &Records, range: Range<u64>, delivered: &mut Delivered) {
        delivered.bytes += range.end - range.start;
        let once = self.ever.gap(range.clone());
        let mut latest = None;
        delivered.is_ambiguous |= once.as_ref() != Some(&range);
        if let Some(once) = once {
            // Of several parts the first is looked at: what is behind it was sent later, if at all.
            latest = records.of(once.end - 1).map(|sent| (sent.at, once.end));
            delivered.once = delivered.once.max(latest);
            let first = records.of(once.start).map(|sent| sent.at);
            delivered.once_first = [delivered.once_first, first].into_iter().flatten().min();
            let from = delivered.once_from.map_or(once.start, |from| from.min(once.start));
            delivered.once_from = Some(from);
            delivered.is_reordered |= once.end < self.fack;
        }
        self.fack = self.fack.max(range.end);
        self.lost.remove(range.clone());
        let bytes = range.end - range.start;
        let again = self.repairs.remove(range);
        delivered.again = delivered.again.max(again.map(|again| (again.at, again.end)));
        if let Some(rates) = &mut self.rates {
            let once = latest.map(|latest| (latest, rates.of(records.place(latest.1 - 1))));
            let again = again.map(|again| ((again.at, again.end), again.snapshot));
            rates.on_delivered(bytes, [once, again].into_iter().flatten());
        }
    }

    /// Forgets the SACK blocks of a peer that reneged: from `una` on all may be lost.
    pub(super) fn forget_sacked(&mut self, una: u64) {
        self.reneged = self.sacked.end().unwrap_or(una);
        self.sacked.clear();
        (self.judged, self.fack) = (una, una);
    }

    /// Nothing is lost, but what is judged so from now on.
    pub(super) fn forget_lost(&mut self, records: &Records) {
        self.lost.clear();
        self.judged = records.una;
        self.undone_end = records.end;
    }
}

/// Marking bytes as lost, by whatever rule found them.
impl Holes {
    /// `range` is lost, but for what the peer holds.
    pub(super) fn lose(&mut self, records: &Records, range: Range<u64>) {
        self.lose_once(records, range.clone());
        while let Some(repair) = self.repairs.remove_last(range.clone()) {
            // What the peer holds is not under way again.
            self.lost.insert(repair.start..repair.end);
            if let Some(rates) = &mut self.rates {
                rates.on_lost(repair.end - repair.start, repair.snapshot);
            }
        }
    }

    /// Tells the samples of what is lost of `range`, which was sent once, and was not lost before.
    fn note_lost(&mut self, records: &Records, range: Range<u64>) {
        let Some(rates) = &mut self.rates else { return };
        let mut at = range.start;
        while let Some(gap) = self.lost.gap(at..range.end) {
            let place = records.place(gap.start);
            let end = records.sent.get(place).map_or(gap.end, |sent| sent.end.min(gap.end));
            rates.on_lost(end - gap.start, rates.of(place));
            at = end;
        }
    }

    /// Marks `range` as lost, but for what is under way again and what the peer holds.
    fn lose_once(&mut self, records: &Records, range: Range<u64>) -> bool {
        let before = self.lost.bytes();
        let mut at = range.start;
        while let Some(missing) = self.sacked.gap(at..range.end) {
            at = missing.end;
            let mut from = missing.start;
            while let Some(once) = self.repairs.gap(from..missing.end) {
                from = once.end;
                self.note_lost(records, once.clone());
                self.lost.insert(once);
            }
        }
        self.lost.bytes() > before
    }

    /// Marks as lost what was sent before `rack` and not after `limit` (RFC 8985 6.2).
    pub(super) fn detect_loss(
        &mut self,
        records: &Records,
        rack: Transmission,
        limit: Instant,
    ) -> LossFound {
        let mut found = LossFound::default();
        self.detect_lost_originals(records, rack, limit, &mut found);
        let oldest =
            |repairs: &Repairs| repairs.oldest().filter(|(at, range)| (*at, range.end) < rack);
        while let Some((at, range)) = oldest(&self.repairs) {
            if at > limit {
                found.pending = found.pending.max(Some(at));
                break;
            }
            self.lose(records, range);
            (found.is_lost, found.repair_is_lost) = (true, true);
        }
        found
    }

    fn detect_lost_originals(
        &mut self,
        records: &Records,
        rack: Transmission,
        limit: Instant,
        found: &mut LossFound,
    ) {
        self.judged = self.judged.max(records.una);
        // Times and ends grow from each transmission to the next, so that those to be judged are the first.
        let is_old = |sent: &Sent| sent.at <= limit && (sent.at, sent.end) <= rack;
        let behind = records.sent.partition_point(is_old).max(records.place(self.judged));
        let mut until = records.start_of(behind);
        let mut is_pending = false;
        if let Some(sent) = records.sent.get(behind).filter(|sent| sent.at <= rack.0) {
            // Of a super-segment that left together with what was delivered, its front.
            let is_whole = (sent.at, sent.end) <= rack;
            let end = if is_whole { sent.end } else { sent.end.min(rack.1) };
            if sent.at <= limit {
                until = until.max(end);
            } else {
                is_pending = end > self.judged;
            }
        }
        if until > self.judged {
            found.is_lost |= self.lose_once(records, self.judged..until);
            self.judged = until;
        }
        if is_pending {
            found.pending = self.last_before(records, rack);
        }
    }

    /// When the last was sent of what left before `rack`, was sent once and did not arrive.
    fn last_before(&self, records: &Records, rack: Transmission) -> Option<Instant> {
        let behind = records.sent.partition_point(|sent| (sent.at, sent.end) <= rack);
        // A segment that left with the delivered one, behind it: its record is not whole below `rack`.
        let mut places = (0..records.sent.len().min(behind + 1)).rev().take(LOOKED_AT);
        let missing = |place: &usize| {
            let Some(sent) = records.sent.get(*place) else { return false };
            let end = if sent.at < rack.0 { sent.end } else { sent.end.min(rack.1) };
            let start = records.start_of(*place).max(self.judged);
            sent.at <= rack.0 && start < end && self.sacked.gap(start..end).is_some()
        };
        let found = places.clone().find(missing).and_then(|place| records.sent.get(place));
        // Farther behind it is a little later than need be.
        let beyond = places.next_back().filter(|place| records.start_of(*place) > self.judged);
        found.map(|sent| sent.at).or_else(|| beyond.map(|_| rack.0))
    }
}

/// Bytes that a range takes in a tree of them, about.
const HOLE: usize = 32;
/// So many records are looked at for one that did not arrive.
const LOOKED_AT: usize = 8;
