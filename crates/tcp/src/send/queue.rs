//! The text of a sender and the state of its transmission.

use core::ops::Range;

use whimbrel_base::Micros;
use whimbrel_recovery::cc::{CcState, Control, Phase, Sent, Window};
use whimbrel_recovery::flight::Flight;
use whimbrel_recovery::{Pacer, PacingRatios, Recovery};

use super::SendBuffer;

/// The half of a sender that a connection has only while something waits to be acknowledged.
// In this order: a pointer to it is one to its text, which is asked for at each step.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SendQueue {
    /// The stream from SND.UNA on.
    pub text: SendBuffer,
    /// The part of it that was sent.
    pub flight: Flight,
    /// The state of loss recovery.
    pub recovery: Recovery,
    /// The state of congestion control other than its window.
    pub cc: CcState,
    /// When text may leave next.
    pub pacer: Pacer,
    /// The end in the flight of the last segment that was smaller than a full one (Minshall).
    pub small_end: u64,
    /// Bytes of text of a probe of the path MTU that is to be sent; 0: none.
    pub mtu_probe: u16,
}

impl SendQueue {
    /// Each part for itself, and the algorithm with the window that it sets.
    #[inline]
    pub fn parts<'a>(
        &'a mut self,
        window: &'a mut Window,
    ) -> (&'a mut Flight, &'a mut Recovery, Control<'a>) {
        let control = Control { window, state: &mut self.cc };
        (&mut self.flight, &mut self.recovery, control)
    }

    /// The algorithm with the window that it sets.
    #[inline]
    pub fn control<'a>(&'a mut self, window: &'a mut Window) -> Control<'a> {
        Control { window, state: &mut self.cc }
    }

    /// True if what is sent may be sampled or paced: the flow has an algorithm of a program's own, or has sent
    /// more than an initial window, which leaves at once.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.flight.end() > INITIAL_BYTES || self.cc.must_stay()
    }

    /// Notes for samples of the delivery rate that this range was sent, `repaired` bytes of it again; `all`: cwnd, if
    /// nothing is unsent.
    #[inline(never)]
    pub fn note_sample(
        &mut self,
        range: &Range<u64>,
        repaired: u64,
        sent: &Sent,
        all: Option<u32>,
    ) {
        self.flight.sample(range, repaired, sent.in_flight, sent.now);
        if let Some(cwnd) = all {
            self.note_all_sent(cwnd);
        }
    }

    /// Notes for samples of the delivery rate that all was sent: unless `cwnd` is full, the application limits the
    /// sender.
    #[inline(never)]
    pub fn note_all_sent(&mut self, cwnd: u32) {
        // draft-ietf-ccwg-bbr, CheckIfApplicationLimited: "if (NoUnsentData() && C.pending_transmissions == 0 &&
        // C.inflight < C.cwnd && C.lost_out <= C.retrans_out)"
        let in_flight = self.recovery.pipe(&self.flight);
        if self.flight.is_sampled() && !self.flight.has_lost() && in_flight < cwnd {
            self.flight.note_app_limited(in_flight);
        }
    }

    /// Notes what the path carries of a flow that has sent more than an initial window without a pause. Returns true if
    /// less than half of cwnd was used for five minutes.
    pub fn note_use(&mut self, window: &mut Window, sent: &Sent) -> bool {
        if self.recovery.phase() != Phase::Open {
            return false;
        }
        let (una, nxt) = (self.flight.una() as u32, self.flight.end() as u32);
        self.control(window).note_use(sent, una, nxt);
        window.is_out_of_date(sent.now.tick())
    }

    /// Notes when the text behind what was just sent may leave: by the algorithm's rate, or by `ratios` of the
    /// window in each round trip of `srtt`, and by the most that was set. Returns true if it has to wait.
    #[inline(never)]
    pub fn pace(
        &mut self,
        window: &mut Window,
        sent: &Sent,
        ratios: Option<PacingRatios>,
        srtt: Micros,
    ) -> bool {
        let rate = self.control(window).pacing_rate();
        let rate = self.pacer.bounded(rate.or_else(|| ratios?.rate(window, srtt)));
        rate.is_some_and(|rate| self.pacer.on_sent(sent.bytes, rate, sent.mss, sent.now))
    }

    /// Clears everything, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        self.text.clear();
        self.end();
    }

    /// Its connection needs it no more: of what was sent nothing is left, or a FIN.
    #[inline]
    pub fn end(&mut self) {
        self.flight.clear();
        self.recovery.forget();
        self.cc.reset();
        (self.mtu_probe, self.small_end) = (0, 0);
        if self.pacer.has_begun() || self.pacer.most().is_some() {
            self.pacer = Pacer::default();
        }
    }

    /// True if a segment that was smaller than a full one is not acknowledged.
    #[inline]
    pub const fn awaits_small(&self) -> bool {
        self.small_end > self.flight.una()
    }

    /// True if nothing is missing, or may have been, and nothing is sampled.
    #[inline]
    pub const fn is_quiet(&self) -> bool {
        self.recovery.is_none() && self.flight.is_plain()
    }

    /// True if nothing is in it that must be kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
            && (self.is_quiet() || self.is_settled())
            && !self.cc.must_stay()
            && self.pacer.most().is_none()
    }

    /// True if of what was missing nothing must be kept.
    #[inline(never)]
    fn is_settled(&self) -> bool {
        !self.flight.has_lost() && !self.recovery.remembers()
    }
}

/// Bytes that a fresh connection may send at once, whatever its segments: RFC 6928's upper bound of an initial
/// window.
const INITIAL_BYTES: u64 = 14_600;
