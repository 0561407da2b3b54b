//! Detection of losses: by time with SACK (RACK, RFC 8985 6.2), by counting duplicates without it
//! (RFC 6582 3.2).

use super::State;
use crate::cc::Phase;
use crate::flight::Flight;
use crate::recovery::rack::{self, DUP_THRESH};
use crate::recovery::{Acked, Path};

impl State {
    /// With SACK: what RACK takes for lost by now.
    pub(super) fn find_losses(&mut self, flight: &mut Flight, acked: &Acked) -> bool {
        if acked.delivered.bytes > u64::from(acked.text)
            || !acked.advances && acked.delivered.bytes > 0
        {
            self.sacks = self.sacks.saturating_add(1);
        }
        self.detect_loss(flight, &acked.path)
    }

    pub(super) fn detect_loss(&mut self, flight: &mut Flight, path: &Path) -> bool {
        let window = self.reordering(flight, path);
        let found = self.rack.detect_loss(flight, path.now, &window);
        if found.repair_is_lost {
            self.events.lost_retransmit = true;
        }
        found.is_lost
    }

    /// Segments that the peer is known to hold: those that it named, or as many as duplicates came.
    pub(in crate::recovery) fn segs_sacked(&self, flight: &Flight, mss: u32) -> u32 {
        let bytes = flight.sacked().bytes();
        let named = if bytes == 0 { 0 } else { u32::from(self.sacks) };
        named
            .max(bytes.div_ceil(u64::from(mss.max(1))) as u32)
            .max(self.credit.div_ceil(u64::from(mss.max(1))) as u32)
    }

    pub(super) fn reordering(&self, flight: &Flight, path: &Path) -> rack::Window {
        rack::Window {
            min_rtt: path.min_rtt,
            srtt: path.srtt,
            in_recovery: self.phase != Phase::Open,
            segs_sacked: self.segs_sacked(flight, path.mss),
            reorders: path.reorders,
        }
    }

    /// Without SACK: returns the bytes that an acknowledgment is the first to tell of. RFC 6937 2: "In recovery
    /// without SACK, DeliveredData is estimated to be 1 SMSS on duplicate acknowledgements, and on a subsequent
    /// partial or full ACK, DeliveredData is estimated to be the change in snd.una, minus 1 SMSS for each preceding
    /// duplicate ACK." The segment that was missing is counted in any case, as in Linux.
    pub(super) fn estimate_delivery(&mut self, flight: &mut Flight, acked: &Acked) -> u64 {
        let Acked { delivered, path, .. } = acked;
        if acked.advances {
            let beyond = delivered.bytes.saturating_sub(path.mss.into()).min(self.credit);
            self.credit -= beyond;
            flight.discount(beyond);
            return delivered.bytes - beyond;
        }
        if !acked.is_duplicate || !self.counts_duplicates(flight) {
            return 0;
        }
        let bytes = flight.credit(self.credit);
        self.credit += bytes;
        bytes
    }

    /// Forgets the duplicates and the SACK blocks that were counted: a loss from now on is another.
    pub(super) const fn forget_duplicates(&mut self) {
        (self.sacks, self.dup_acks, self.credit) = (0, 0, 0);
    }

    /// True if a duplicate acknowledgment tells of a segment that arrived. RFC 3042 2 lets two new segments out for
    /// those that begin no recovery, no more.
    fn counts_duplicates(&self, flight: &Flight) -> bool {
        match self.phase {
            Phase::Open => u32::from(self.dup_acks) < DUP_THRESH - 1 || self.covers_more(flight),
            Phase::FastRecovery => true,
            Phase::AfterTimeout => false,
        }
    }

    /// RFC 6582 3.2 step 2: "the Cumulative Acknowledgment field covers more than recover".
    fn covers_more(&self, flight: &Flight) -> bool {
        self.recover.is_none_or(|recover| flight.una() > recover)
    }

    /// Without SACK: three duplicates tell of a loss, and in fast recovery whatever acknowledges a part.
    pub(super) fn count_duplicates(&mut self, flight: &mut Flight, acked: &Acked) -> bool {
        match self.phase {
            Phase::Open if acked.is_duplicate => {
                if u32::from(self.dup_acks) < DUP_THRESH {
                    self.dup_acks += 1;
                }
                if u32::from(self.dup_acks) < DUP_THRESH || !self.covers_more(flight) {
                    return false;
                }
            }
            // What ends within a repair tells of no further loss: byte by byte, each acknowledgment would
            // have a segment sent again.
            Phase::FastRecovery if acked.advances && !flight.first_is_repaired() => {}
            _ => return false,
        }
        flight.lose(flight.first_segment());
        true
    }

    /// RFC 2018 8: what was named as held may be discarded. SND.UNA stands at the start of such text: it
    /// is not held any more, or would have been acknowledged.
    pub(super) fn note_reneging(&mut self, flight: &mut Flight, acked: &Acked) {
        let una = flight.una();
        if acked.advances && flight.sacked().first().is_some_and(|first| first.start <= una) {
            self.events.sack_reneging = true;
            flight.forget_sacked();
        }
    }
}
