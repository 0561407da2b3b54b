//! Marks of the network (RFC 3168 6.1.2): a window of text has one reduction, for all that was marked or lost.

use super::State;
use super::rate_limited::loss_of_used;
use crate::cc::Control;
use crate::flight::Flight;

impl State {
    /// True if marks of the network reduced the window, and not all that was out then is acknowledged, and
    /// something behind it.
    #[inline]
    pub(in crate::recovery) fn is_reduced(&self, flight: &Flight) -> bool {
        self.reduced.is_some_and(|end| flight.una() <= end)
    }

    /// The peer echoes a mark of the network. Returns true if the window is reduced for it.
    pub(in crate::recovery) fn on_ecn(
        &mut self,
        flight: &Flight,
        control: &mut Control<'_>,
        ack: u64,
        mss: u32,
    ) -> bool {
        // RFC 3168 6.1.2: "TCP should not react to congestion indications more than once every window of
        // data", "a series of dropped and/or CE packets". Of an older window is all up to where it ended.
        let is_of_reduced =
            [self.recover, self.reduced].into_iter().flatten().any(|end| ack <= end);
        if is_of_reduced || flight.end() == flight.una() {
            return false;
        }
        self.reduced = Some(flight.end());
        // This congestion is no mistake: an earlier loss that was one does not give the window back.
        self.undo = None;
        control.on_ecn(&loss_of_used(flight, control, mss));
        true
    }

    /// Something was lost: the window is reduced, unless marks of the network did that already.
    pub(super) fn tell_loss_event(&mut self, flight: &Flight, control: &mut Control<'_>, mss: u32) {
        // RFC 3168 6.1.2: "the TCP sender's congestion window should be reduced only once in response to a
        // series of dropped and/or CE packets from a single window of data." An algorithm that sets cwnd
        // itself must know that recovery begins.
        if !self.is_reduced(flight) || control.sets_cwnd_in_recovery() {
            let loss = loss_of_used(flight, control, mss);
            self.tell_loss(flight, control, &loss);
        }
    }
}
