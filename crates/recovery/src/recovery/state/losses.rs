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
        named.max(bytes.div_ceil(u64::from(mss.max(1))) as u32).max(u32::from(self.dup_acks))
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

    /// Without SACK: three duplicates tell of a loss, and in fast recovery whatever acknowledges a part.
    pub(super) fn count_duplicates(&mut self, flight: &mut Flight, acked: &Acked) -> bool {
        match self.phase {
            Phase::Open if acked.is_duplicate => {
                self.dup_acks = self.dup_acks.saturating_add(1);
                // RFC 6582 3.2 step 2: "the Cumulative Acknowledgment field covers more than recover"
                let covers_more = self.recover.is_none_or(|recover| flight.una() > recover);
                if u32::from(self.dup_acks) < DUP_THRESH {
                    return false;
                }
                if !covers_more {
                    // RFC 3042 2 lets two new segments out, no more.
                    self.dup_acks = 2;
                    return false;
                }
            }
            Phase::FastRecovery if acked.is_duplicate => {
                self.dup_acks = self.dup_acks.saturating_add(1);
                return false;
            }
            // What ends within a repair tells of no further loss: byte by byte, each acknowledgment would
            // have a segment sent again.
            Phase::FastRecovery if acked.advances && !flight.first_is_repaired() => {
                // RFC 6937 2: what duplicates told of is part of what is acknowledged now.
                let acked = acked.text.div_ceil(acked.path.mss.max(1)).saturating_sub(1);
                self.dup_acks = self.dup_acks.saturating_sub(acked.min(255) as u8);
            }
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
