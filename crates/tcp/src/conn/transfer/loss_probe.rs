//! When the end of what is in flight is asked for: the tail loss probe of RFC 8985 7.

use whimbrel_base::Instant;

use crate::Context;
use crate::conn::Flags;
use crate::conn::transfer::Transfer;

impl Transfer {
    /// When the end of what is in flight is asked for, if it was sent `at` (RFC 8985 7.2).
    #[inline]
    pub(in crate::conn) fn probe_due(&self, cx: &Context, at: Instant) -> Option<Instant> {
        let may_probe = !self.tcb.sender.has_syn()
            && self.tcb.queue().is_none_or(|queue| queue.recovery.may_probe(&queue.flight));
        may_probe.then(|| self.probe_wait(cx)).flatten().map(|wait| at.after_micros(wait))
    }

    /// PTO (RFC 8985 7.2), microseconds, if there is text or a FIN behind it to ask for, and SACK to tell.
    #[inline(always)]
    pub(in crate::conn) fn probe_wait(&self, cx: &Context) -> Option<u64> {
        let asks = cx.tunables.loss_probe
            && self.tcb.flags.has(Flags::SACK)
            && !self.tcb.sender.rtt().is_probed();
        let is_empty = self.tcb.queue().is_none_or(|queue| queue.flight.is_empty());
        if !asks || is_empty && !self.tcb.sender.may_probe_fin() {
            return None;
        }
        let Some(srtt) = self.tcb.sender.rtt().srtt_micros() else {
            // "when there is no SRTT estimate available, the PTO SHOULD be 1 second."
            return Some(FIRST_PROBE_MICROS);
        };
        // "when the FlightSize is one segment, the sender MAY inflate the PTO by TLP.max_ack_delay": as
        // much as the retransmission timer allows for that. So does every flight whose acknowledgment
        // RFC 9293 3.8.6.3 lets a receiver delay: one of less than two full segments.
        let may_be_delayed =
            self.tcb.sender.seq().in_flight() < 2 * u32::from(self.tcb.sender.mss());
        let allowed = if may_be_delayed { cx.tunables.min_rto.get() } else { LEAST_PROBE_MICROS };
        Some(2 * u64::from(srtt) + u64::from(allowed))
    }
}

/// RFC 8985 7.2: without an estimate of the round trip.
const FIRST_PROBE_MICROS: u64 = 1_000_000;

/// The wait of a probe beyond two round trips, for timers and threads that are late: as Linux.
const LEAST_PROBE_MICROS: u32 = 2_000;
