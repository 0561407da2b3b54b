//! F-RTO (RFC 5682): whether the original of what a time-out sent again arrives after all.

use super::State;
use crate::cc::Control;
use crate::flight::Flight;
use crate::recovery::{Acked, Path};

/// F-RTO (RFC 5682 3.1) after a time-out.
#[derive(Clone, Copy, Debug)]
pub(in crate::recovery) struct Frto {
    /// SND.NXT when the timer ran out.
    pub(in crate::recovery) recover: u64,
    /// One past the segment that it sent again.
    pub(in crate::recovery) repair_end: u64,
    /// New text was sent to see what comes back (step 3).
    pub(in crate::recovery) is_probing: bool,
}

impl State {
    /// RFC 5682 2.1 and 3.1, steps 2 and 3, where what arrived did not end it.
    pub(super) fn step_frto(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked) {
        let Some(frto) = &mut self.frto else { return };
        let Path { sack, mss, .. } = acked.path;
        // Step 2a without SACK: "the acknowledgment does not acknowledge all of the data that was
        // retransmitted in step 1".
        let acks_repair = acked.advances && flight.una() >= frto.repair_end;
        if !frto.is_probing && acks_repair && acked.can_send_new {
            // Step 2b: "transmit up to two new (previously unsent) segments and proceed to step 3."
            frto.is_probing = true;
            self.prefers_new = true;
            return;
        }
        if !acked.advances && !frto.is_probing && (sack || !acked.is_duplicate) {
            // Step 2 with SACK: "Stay in step 2 and wait for the next new acknowledgment."
            return;
        }
        let is_refused = frto.is_probing && acked.is_duplicate && !sack;
        if is_refused && !control.sets_cwnd_in_recovery() {
            // Step 3a: "set the congestion window to no more than 3 * MSS". Two of them are new text that
            // is not known to have arrived: a smaller window would stop the sender.
            control.window.cwnd = 3 * mss;
        }
        // Steps 2a and 3a: what was lost is repaired in slow start.
        (self.frto, self.prefers_new) = (None, false);
    }
}
