//! Losses of a flow that its application limits: the window goes by what was in use (RFC 7661 4.4.1).

use super::{State, loss};
use crate::cc::{Control, Loss};
use crate::flight::Flight;

impl State {
    /// Something is lost, and `loss` says what was in use.
    pub(super) fn tell_loss(&mut self, flight: &Flight, control: &mut Control<'_>, loss: &Loss) {
        let is_limited = control.unvalidated_pipe_ack(flight.una() as u32).is_some()
            && loss.in_flight < control.window.cwnd / 2
            && !control.sets_cwnd_in_recovery();
        self.rate_limited = is_limited.then_some(loss.in_flight);
        self.repaired = 0;
        control.on_loss_event(loss);
        if is_limited {
            // RFC 7661 4.4.1: "calculate a safe cwnd for loss recovery using the method below: cwnd =
            // (Max(pipeACK,LossFlightSize))/2."
            let safe = (loss.in_flight / 2).max(2 * loss.mss);
            control.window.ssthresh = control.window.ssthresh.min(safe);
        }
    }

    /// A recovery ends. RFC 7661 4.4.1: "At the end of the recovery phase, the TCP sender MUST reset the cwnd using the
    /// method below: cwnd = (Max(pipeACK,LossFlightSize) - R)/2."
    pub(super) fn end_rate_limited(&mut self, control: &mut Control<'_>, mss: u32) {
        let Some(used) = self.rate_limited.take() else { return };
        let repaired = u32::try_from(self.repaired).unwrap_or(u32::MAX);
        // "The calculated cwnd value MUST NOT be reduced below 1 TCP Maximum Segment Size (MSS)."
        let safe = (used.saturating_sub(repaired) / 2).max(mss);
        control.window.cwnd = control.window.cwnd.min(safe);
        // "Step 6 in Section 3.2 of RFC 5681 assigns the ssthresh a value equal to cwnd at the end of the loss
        // recovery"; no threshold is less than two segments.
        control.window.ssthresh = control.window.cwnd.max(2 * mss);
    }
}

/// The flight when something is lost or marked: in the non-validated phase as much as the path was seen to carry in a
/// round trip, if that is more. RFC 7661 4.4.1: "cwnd = (Max(pipeACK,LossFlightSize))/2." In the validated phase RFC 5681
/// 3.1 goes by FlightSize alone.
pub(super) fn loss_of_used(flight: &Flight, control: &Control<'_>, mss: u32) -> Loss {
    let loss = loss(flight, control, mss);
    let carried = control.unvalidated_pipe_ack(flight.una() as u32).unwrap_or_default();
    Loss { in_flight: loss.in_flight.max(carried), mss }
}
