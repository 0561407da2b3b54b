//! The flight: each transmission's time, and what became of it.
//!
//! Everything is in stream offsets of 64 bits, which count sequence numbers: FIN takes one, SYN is not
//! part of it. Nothing here decides: `recovery` asks, and judges.
//!
//! ```text
//!      una                              end        Offsets between:
//!       |  sent: first transmissions     |         sacked   the peer named them as held
//!       +------+------+------+------+----+         lost     they are taken for lost, and not sent again
//!       | lost |sacked|repair|sacked|    |         repairs  they were sent again
//!       +------+------+------+------+----+         none     they are under way
//! ```

mod check;
mod holes;
mod ranges;
mod rates;
mod records;
mod repairs;

use alloc::boxed::Box;
use core::ops::Range;

use whimbrel_base::{Instant, Micros};

use crate::cc::{LostText, Rate};
use holes::Holes;
pub use ranges::Ranges;
use rates::{Rates, Snapshot};
use records::Records;

/// Text that was sent and is not acknowledged. It takes 24 bytes for each (super-)segment, and some 100 for
/// each hole.
#[derive(Debug, Default)]
pub struct Flight {
    records: Records,
    /// There while something is missing, or was sent again, or the delivery rate is sampled.
    holes: Option<Box<Holes>>,
}

/// When something was sent, and where it ended: what comes later in this order was sent later.
pub type Transmission = (Instant, u64);

/// The text that one acknowledgment newly reports as delivered.
#[derive(Clone, Copy, Default, Debug)]
pub struct Delivered {
    /// The number of offsets that it delivered; FIN counts as one.
    pub bytes: u64,
    /// Of what was sent once, the transmission that was the last to leave.
    pub once: Option<Transmission>,
    /// Of what was sent once, when the first to leave was sent.
    pub once_first: Option<Instant>,
    /// Something of it was sent again. Without SACK the rest may have waited for that (RFC 6298 3).
    pub is_ambiguous: bool,
    /// The lowest offset of what was sent once.
    pub once_from: Option<u64>,
    /// Of what was sent again, the transmission that was the last to leave.
    pub again: Option<Transmission>,
    /// Something that was sent once arrived after something behind it.
    pub is_reordered: bool,
    /// The most bytes that are known to have arrived in one segment.
    pub segment: u16,
}

/// The outcome of a judgment by age.
#[derive(Clone, Copy, Default, Debug)]
pub struct LossFound {
    /// Something is lost that was not.
    pub is_lost: bool,
    /// A repair was lost.
    pub repair_is_lost: bool,
    /// When the last was sent that is to be judged later.
    pub pending: Option<Instant>,
}

/// Queries.
impl Flight {
    /// SND.UNA as an offset: the first that is not acknowledged.
    #[inline]
    pub const fn una(&self) -> u64 {
        self.records.una
    }

    /// The offset behind what was sent, SND.MAX: the first that never left.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.records.end
    }

    /// True if nothing of it is left.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.records.end <= self.records.una
    }

    /// True if nothing of it was lost, sent again or named as held, and it is not sampled.
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.holes.is_none()
    }

    /// True if nothing of it was lost, sent again or named as held.
    pub fn is_whole(&self) -> bool {
        let una = self.records.una;
        self.holes.as_ref().is_none_or(|holes| holes.rates.is_some() && holes.are_none(una))
    }

    /// Bytes that are thought to be in the network: RFC 6675's pipe, but for what was sent twice and
    /// is not lost, which counts once.
    #[inline]
    pub fn pipe(&self) -> u32 {
        let gone = self.holes.as_ref().map_or(0, |holes| holes.gone());
        (self.end() - self.una() - gone) as u32
    }

    /// The ranges that the peer named as held.
    #[inline]
    pub fn sacked(&self) -> &Ranges {
        self.holes.as_ref().map_or(&NOTHING, |holes| &holes.sacked)
    }

    /// The ranges that are lost and not sent again.
    #[inline]
    pub fn lost(&self) -> &Ranges {
        self.holes.as_ref().map_or(&NOTHING, |holes| &holes.lost)
    }

    /// True if something is lost and not sent again.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| !holes.lost.is_empty())
    }

    /// True if part of the flight was already there when [`Flight::forget_lost`] was called.
    #[inline]
    pub fn was_undone(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| self.records.una < holes.undone_end)
    }

    /// True if the byte at SND.UNA was sent again, and is thought to be in the network.
    pub fn first_is_repaired(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| holes.is_repaired(self.records.una))
    }

    /// Bytes that were sent again, and are thought to be in the network.
    pub fn repaired(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.repaired())
    }

    /// The segment at SND.UNA, as it was sent.
    #[inline]
    pub fn first_segment(&self) -> Range<u64> {
        self.records.first_segment()
    }

    /// The last segment, as it was sent.
    #[inline]
    pub fn last_segment(&self) -> Range<u64> {
        self.records.last_segment()
    }

    /// When the segment at SND.UNA was sent first.
    #[inline]
    pub fn first_sent(&self) -> Option<Instant> {
        self.records.sent.front().map(|first| first.at)
    }

    /// When something was sent last for the first time.
    #[inline]
    pub fn last_sent(&self) -> Option<Instant> {
        self.records.sent.back().map(|last| last.at)
    }

    /// Returns the bytes that it has allocated.
    pub fn memory(&self) -> usize {
        self.records.memory() + self.holes.as_ref().map_or(0, |holes| holes.memory())
    }
}

/// Reports of the sender: text that leaves, acknowledgments that arrive.
impl Flight {
    /// `range` leaves, in segments of `mss` bytes: for the first time, or again, or first the one and then
    /// the other. Returns how many bytes were sent before.
    #[inline]
    pub fn transmit(&mut self, range: Range<u64>, mss: u16, at: Instant) -> u64 {
        let again = if range.start < self.end() {
            self.repair(range.start..range.end.min(self.end()), at)
        } else {
            0
        };
        self.records.push(range.end, mss, at);
        again
    }

    #[cold]
    fn repair(&mut self, range: Range<u64>, at: Instant) -> u64 {
        let before = self.pipe();
        self.holes().repair(range.clone(), at);
        let repaired = self.pipe() - before;
        if let Some(rates) = self.rates() {
            rates.repaired = repaired;
        }
        range.end - range.start
    }

    fn holes(&mut self) -> &mut Holes {
        let una = self.records.una;
        self.holes.get_or_insert_with(|| Box::new(Holes::new(una)))
    }

    /// All below `to` is acknowledged.
    // Always: what was delivered stays in registers then.
    #[inline(always)]
    pub fn acknowledge(&mut self, to: u64, delivered: &mut Delivered) {
        if self.holes.is_none() {
            // Nothing is missing, as nearly always: all of it was sent once, and none was named before.
            delivered.bytes += to.min(self.end()) - self.una();
            delivered.once_from = Some(self.una());
            self.records.pop(to, delivered);
        } else {
            *delivered = self.acknowledge_with_holes(to, *delivered);
        }
    }

    // By value: by reference it would stand in memory for all that have no holes, too.
    #[inline(never)]
    fn acknowledge_with_holes(&mut self, to: u64, mut delivered: Delivered) -> Delivered {
        if let Some(holes) = &mut self.holes {
            holes.acknowledge(&self.records, to, &mut delivered);
            self.holes =
                self.holes.take().filter(|holes| holes.rates.is_some() || !holes.are_none(to));
        }
        // What is delivered is known from the holes; the records would count again what was named before.
        // Only they know how large a segment was.
        let mut ended = Delivered::default();
        self.records.pop(to, &mut ended);
        delivered.segment = ended.segment;
        let left = self.records.sent.len();
        if let Some(rates) = self.rates() {
            let gone = rates.sent.len().saturating_sub(left);
            rates.sent.drain(..gone);
        }
        delivered
    }

    /// Without SACK: a duplicate acknowledgment tells of a segment that arrived, beyond the first, and beyond `credit`
    /// bytes behind that. Which one is not known: the next is taken for it. Returns its bytes, 0 if there is none.
    pub fn credit(&mut self, credit: u64) -> u64 {
        let from = self.first_segment().end + credit;
        let place = self.records.place(from);
        let Some(sent) = self.records.sent.get(place) else { return 0 };
        let segment = self.records.segment_from(place, from);
        let transmission = (sent.at, segment.end);
        if let Some(rates) = self.rates() {
            let snapshot = rates.of(place);
            rates.on_delivered(segment.end - from, [(transmission, snapshot)]);
        }
        segment.end - from
    }

    /// Of what was acknowledged last, `bytes` had been [credited](Flight::credit).
    pub fn discount(&mut self, bytes: u64) {
        if let Some(rates) = self.rates() {
            rates.discount(bytes);
        }
    }

    /// The peer names `range` as held, which lies between SND.UNA and SND.NXT. It is not listened to if it
    /// names more ranges than there are segments.
    pub fn sack(&mut self, range: Range<u64>, delivered: &mut Delivered) {
        if self.sacked().len() as u64 >= self.records.segments().max(LEAST_RANGES) {
            return;
        }
        let una = self.records.una;
        let holes = self.holes.get_or_insert_with(|| Box::new(Holes::new(una)));
        holes.sack(&self.records, range, delivered);
    }

    /// Forgets the ranges that the peer acknowledged by SACK and dropped (reneged): they may be lost.
    pub fn forget_sacked(&mut self) {
        let una = self.records.una;
        self.holes().forget_sacked(una);
    }

    /// Nothing is lost after all, but what is judged so from now on.
    pub fn forget_lost(&mut self) {
        if let Some(holes) = &mut self.holes {
            holes.forget_lost(&self.records);
        }
    }

    /// All of it counts as unsent.
    pub fn forget_all(&mut self) {
        let una = self.una();
        let rates = self.holes.as_mut().and_then(|holes| holes.rates.take());
        self.clear();
        (self.records.una, self.records.end) = (una, una);
        if let Some(mut rates) = rates {
            rates.forget_sent();
            self.holes().rates = Some(rates);
        }
    }

    /// Clears everything, and keeps the memory that a short connection needs.
    #[inline]
    pub fn clear(&mut self) {
        self.records.clear();
        if self.holes.is_some() {
            self.holes = None;
        }
    }
}

/// Samples of the delivery rate.
impl Flight {
    fn rates(&mut self) -> Option<&mut Rates> {
        self.holes.as_mut()?.rates.as_deref_mut()
    }

    /// True if what leaves from now on is sampled.
    pub fn is_sampled(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| holes.rates.is_some())
    }

    /// From now on the delivery rate is sampled, or not any more.
    pub fn set_sampled(&mut self, is_sampled: bool) {
        if is_sampled == self.is_sampled() {
            return;
        }
        let transmissions = self.records.sent.len();
        self.holes().rates = is_sampled.then(|| Box::new(Rates::new(transmissions)));
        let una = self.records.una;
        self.holes = self.holes.take().filter(|holes| is_sampled || !holes.are_none(una));
    }

    /// Takes a sample of the delivery for `range`, if it is sampled: the range has just been handed to
    /// [`Flight::transmit`], which returned `again`. `in_flight` bytes are out since.
    #[inline(never)]
    pub fn sample(&mut self, range: &Range<u64>, again: u64, in_flight: u32, at: Instant) {
        let records = self.records.sent.len();
        let Some(holes) = &mut self.holes else { return };
        let Some(rates) = &mut holes.rates else { return };
        let new = (range.end - range.start - again) as u32;
        let before = in_flight.saturating_sub(new + core::mem::take(&mut rates.repaired));
        let snapshot = rates.on_sent(before, in_flight, at);
        if again > 0 {
            holes.repairs.set_snapshot(range.start, snapshot);
        }
        if rates.sent.len() < records {
            rates.sent.resize(records - 1, Snapshot::NONE);
            rates.sent.push_back(snapshot);
        } else if let Some(last) = rates.sent.back_mut().filter(|_| new > 0) {
            // It joined the record of another.
            *last = Snapshot::NONE;
        }
    }

    /// The application has no more to send than the `in_flight` bytes that are out.
    pub fn note_app_limited(&mut self, in_flight: u32) {
        if let Some(rates) = self.rates() {
            rates.on_app_limited(in_flight);
        }
    }

    /// The sample of the acknowledgment that arrived `now`, once the flight knows of it. `min_rtt` is the least
    /// round trip; `sack`: selective acknowledgments were negotiated.
    pub fn take_rate(&mut self, now: Instant, min_rtt: Option<Micros>, sack: bool) -> Option<Rate> {
        self.rates()?.take(now, min_rtt, sack)
    }

    /// Takes the report of the transmission that was judged lost first, of those not taken yet.
    pub fn next_loss(&mut self, sack: bool) -> Option<LostText> {
        Some(LostText { sack, ..self.rates()?.next_loss()? })
    }
}

/// Marking bytes as lost: by RACK, by duplicates, by a time-out.
impl Flight {
    /// `range` is lost, but for what the peer holds.
    pub fn lose(&mut self, range: Range<u64>) {
        let una = self.records.una;
        let holes = self.holes.get_or_insert_with(|| Box::new(Holes::new(una)));
        holes.lose(&self.records, range);
    }

    /// Marks as lost what was sent before `rack` and not after `limit` (RFC 8985 6.2).
    pub fn detect_loss(&mut self, rack: Transmission, limit: Instant) -> LossFound {
        let is_older = self.records.sent.front().is_some_and(|first| first.at <= rack.0);
        if self.holes.is_none() && !is_older {
            return LossFound::default();
        }
        let una = self.records.una;
        let holes = self.holes.get_or_insert_with(|| Box::new(Holes::new(una)));
        let found = holes.detect_loss(&self.records, rack, limit);
        if holes.rates.is_none() && holes.are_none(una) {
            self.holes = None;
        }
        found
    }

    /// The retransmission timer ran out: the segment at SND.UNA is lost, and what was sent until `limit`
    /// (RFC 8985 6.3).
    pub fn lose_on_timeout(&mut self, limit: Instant) {
        self.lose(self.first_segment());
        self.detect_loss((limit, u64::MAX), limit);
    }

    /// Marks as lost what was sent in segments of more than `most` bytes. It is no loss to a congestion control.
    pub fn lose_larger(&mut self, most: u16) {
        for place in 0..self.records.sent.len() {
            if let Some(range) = self.records.larger(place, most) {
                self.lose(range);
            }
        }
        self.forget_loss_reports();
    }

    /// Forgets the reports of losses that were not taken: too big for the path, they are none to a congestion control.
    pub fn forget_loss_reports(&mut self) {
        if let Some(rates) = self.rates() {
            rates.forget_losses();
        }
    }
}

/// So many ranges may be named whatever is in flight.
const LEAST_RANGES: u64 = 64;
static NOTHING: Ranges = Ranges::NONE;

#[cfg(test)]
mod tests;
