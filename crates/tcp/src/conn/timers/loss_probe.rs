//! When the end of what is in flight is asked for: the tail loss probe of RFC 8985 7.

use whimbrel_base::Instant;

use crate::Context;
use crate::conn::{Connection, Flags};
use crate::send::SendTimer;

impl Connection {
    /// When the end of what is in flight is asked for, if it was sent `at` (RFC 8985 7.2).
    #[inline]
    pub(super) fn probe_due(&self, cx: &Context, at: Instant) -> Option<Instant> {
        let may_probe = !self.sender.has_syn()
            && self.queue().is_none_or(|queue| queue.recovery.may_probe(&queue.flight));
        may_probe.then(|| self.probe_wait(cx)).flatten().map(|wait| at.after_micros(wait))
    }

    /// PTO (RFC 8985 7.2), microseconds, if there is text or a FIN behind it to ask for, and SACK to tell.
    #[inline(always)]
    pub(super) fn probe_wait(&self, cx: &Context) -> Option<u64> {
        let asks =
            cx.tunables.loss_probe && self.flags.has(Flags::SACK) && !self.sender.rtt().is_probed();
        let is_empty = self.queue().is_none_or(|queue| queue.flight.is_empty());
        if !asks || is_empty && !self.sender.may_probe_fin() {
            return None;
        }
        let Some(srtt) = self.sender.rtt().srtt_micros() else {
            // "when there is no SRTT estimate available, the PTO SHOULD be 1 second."
            return Some(FIRST_PROBE_MICROS);
        };
        // "when the FlightSize is one segment, the sender MAY inflate the PTO by TLP.max_ack_delay": as
        // much as the retransmission timer allows for that. So does every flight whose acknowledgment
        // RFC 9293 3.8.6.3 lets a receiver delay: one of less than two full segments.
        let may_be_delayed = self.sender.seq().in_flight() < 2 * u32::from(self.sender.mss());
        let allowed = if may_be_delayed { cx.tunables.min_rto.get() } else { LEAST_PROBE_MICROS };
        Some(2 * u64::from(srtt) + u64::from(allowed))
    }

    /// The end of what is in flight may be lost, unless more was sent since.
    pub(super) fn on_probe_timeout(&mut self, cx: &Context) {
        let Some(sent) = self.queue().and_then(|queue| queue.flight.last_sent()) else {
            return self.on_fin_probe_timeout(cx);
        };
        let due = self.probe_due(cx, sent);
        let expiry = self.queue().and_then(|queue| queue.flight.first_sent());
        let expiry = expiry.map(|at| self.sender.rtt().due(at, &cx.tunables));
        match due.map(|due| expiry.map_or(due, |expiry| due.min(expiry))) {
            // "The sender SHOULD start or restart a loss probe PTO timer after transmitting new data".
            Some(due) if due > cx.now => {
                self.sender.set_timer(SendTimer::LossProbe);
                self.timers.sender = due;
            }
            Some(_) => {
                self.sender.on_probe_timeout();
            }
            None => self.time_flight(cx),
        }
    }

    /// FIN alone is in flight, behind which nothing was sent.
    fn on_fin_probe_timeout(&mut self, cx: &Context) {
        match self.probe_due(cx, cx.now) {
            Some(_) => self.sender.on_probe_timeout(),
            None => self.time_flight(cx),
        }
    }
}

/// RFC 8985 7.2: without an estimate of the round trip.
const FIRST_PROBE_MICROS: u64 = 1_000_000;
/// What a probe waits beyond two round trips, for timers and threads that are late: as Linux.
const LEAST_PROBE_MICROS: u32 = 2_000;
