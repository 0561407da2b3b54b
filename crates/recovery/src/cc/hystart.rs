//! Slow start, and HyStart++ (RFC 9406), which ends the first one where the path is full and not only where
//! something is lost.
//!
//! In each round, what was in flight when it began being acknowledged, the least round trip is compared
//! with that of the round before. If it grew by an eighth, the window grows by a quarter as much
//! (Conservative Slow Start) for five rounds, or until a round trip says that it was a mistake.
//!
//! The first segments of a window find the queue empty until the window is larger than the path, so that the
//! least round trip grows a round too late. If the window leaves in a burst, [`Train`] sees the path fill from
//! the acknowledgments themselves. If it is paced, [`Samples`] sees the queue within a round.

mod samples;
mod train;

use super::{Ack, SHORTEST_PACED_TRIP, Window};
use samples::Samples;
use train::Train;

/// HyStart++ of one connection: which round it is, and what was measured in this one and the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// Bytes to be acknowledged until the round ends; 0 before the first.
    round_left: u32,
    /// lastRoundMinRTT, microseconds; [`INFINITY`] if nothing was measured.
    last_round_min: u32,
    /// currentRoundMinRTT, microseconds; [`INFINITY`] if nothing was measured.
    round_min: u32,
    /// cssBaselineMinRtt, microseconds; [`INFINITY`] outside of Conservative Slow Start, [`OF_QUEUE`] if a
    /// train or samples led there.
    css_baseline: u32,
    train: Train,
    later: Samples,
    /// True if samples of this round saw a queue.
    queued: bool,
    /// rttSampleCount: round trips measured in this round.
    samples: u8,
    /// Rounds of Conservative Slow Start that are complete.
    css_rounds: u8,
}

impl Default for HyStart {
    fn default() -> Self {
        // RFC 9406 4.2: "lastRoundMinRTT and currentRoundMinRTT are initialized to infinity at the
        // initialization time."
        Self {
            round_left: 0,
            last_round_min: INFINITY,
            round_min: INFINITY,
            css_baseline: INFINITY,
            train: Train::default(),
            later: Samples::default(),
            queued: false,
            samples: 0,
            css_rounds: 0,
        }
    }
}

impl HyStart {
    /// The window grows if this is slow start, which may end. Otherwise returns how many bytes (> 0) are
    /// acknowledged that congestion avoidance counts, if any are.
    #[inline]
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) -> Option<u32> {
        let acked = Some(ack.countable()).filter(|acked| *acked > 0)?;
        if !window.in_slow_start() {
            return Some(acked);
        }
        self.grow(window, acked, ack);
        None
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, acked: u32, ack: &Ack) {
        // RFC 3465 2.2: "provided the increase is not more than L bytes", if a tunable says so.
        let acked = acked.min(ack.slow_start.most);
        if window.ssthresh != u32::MAX {
            // RFC 9406 4.3: "An implementation SHOULD use HyStart++ only for the initial slow start (when
            // the ssthresh is at its initial value of arbitrarily high per [RFC5681]) and fall back to
            // using standard slow start for the remainder of the connection lifetime."
            // RFC 5681 3.1: "cwnd += min (N, SMSS)"; RFC 3465 2.3 allows two segments. Deviation:
            // all that was acknowledged counts, up to ssthresh, because one acknowledgment of a
            // peer that merges segments covers 45 of them, and two a round trip would starve it.
            window.grow(acked.min(window.ssthresh - window.cwnd).max(1));
            return;
        }
        // RFC 9406 4.2: "cwnd = cwnd + min(N, L * SMSS)", in Conservative Slow Start "cwnd = cwnd + (min(N,
        // L * SMSS) / CSS_GROWTH_DIVISOR)". Deviation, for the same reason: without L.
        if !ack.slow_start.hystart {
            return window.grow(acked);
        }
        window.grow(if self.in_css() { acked / CSS_GROWTH_DIVISOR } else { acked });
        self.measure(ack);
        let is_full = self.judge_full(ack);
        if is_full || self.ends_round(ack) && self.css_rounds >= CSS_ROUNDS {
            // RFC 9406 4.2: "If CSS_ROUNDS rounds are complete, enter congestion avoidance by setting the
            // ssthresh to the current cwnd."
            window.ssthresh = window.cwnd;
        }
    }

    /// True if what is in flight fills the path. From half of that on, the window that is sent for it fills it,
    /// and Conservative Slow Start begins.
    fn judge_full(&mut self, ack: &Ack) -> bool {
        let round_trip = self.round_trip();
        if round_trip == INFINITY {
            return false;
        }
        if self.is_spread(ack) {
            self.follow_samples(ack, round_trip)
        } else {
            self.follow_train(ack, round_trip)
        }
    }

    /// Looks at the time for which acknowledgments have been arriving without a pause: a whole round trip is
    /// a full path, half of one begins Conservative Slow Start. It ends if the next train is shorter again.
    ///
    /// Beyond RFC 9406, whose only signal is delay; HyStart had this one, too, and Linux ends slow start by it.
    fn follow_train(&mut self, ack: &Ack, round_trip: u32) -> bool {
        let ended =
            self.train.on_ack(ack.now.as_micros() as u32, (round_trip / GAP_DIVISOR).min(MOST_GAP));
        if ended.is_some_and(|length| length <= round_trip / 2) && self.css_baseline == OF_QUEUE {
            (self.css_baseline, self.css_rounds) = (INFINITY, 0);
        }
        let length = self.train.length();
        if length > round_trip / 2 && !self.in_css() {
            self.css_baseline = OF_QUEUE;
        }
        length > round_trip
    }

    /// Looks for a queue that the later segments of a paced window meet. They leave over half of a round trip at
    /// least, whatever the path, so that the length of a train is no signal. But what leaves faster than the path
    /// carries it waits the longer, the later it leaves: from half of a full path on. A sixteenth of a round trip
    /// begins Conservative Slow Start, which ends with a round that sees less; a quarter is a full path.
    ///
    /// Beyond RFC 9406, which has the least of a whole round, and so the first segments, for its signal.
    fn follow_samples(&mut self, ack: &Ack, round_trip: u32) -> bool {
        let now = ack.now.as_micros() as u32;
        let Some(least) = ack.rtt.and_then(|rtt| self.later.on_sample(now, rtt.get())) else {
            return false;
        };
        let queue = least.saturating_sub(round_trip);
        if queue >= (round_trip / BEGIN_DIVISOR).max(LEAST_QUEUE) {
            self.queued = true;
            if !self.in_css() {
                self.css_baseline = OF_QUEUE;
            }
        }
        queue >= (round_trip / FULL_DIVISOR).max(2 * LEAST_QUEUE)
    }

    /// The least round trip of this round and the last, microseconds; [`INFINITY`] if nothing was measured.
    fn round_trip(&self) -> u32 {
        self.last_round_min.min(self.round_min)
    }

    /// True if a window leaves spread over its round trip.
    fn is_spread(&self, ack: &Ack) -> bool {
        ack.slow_start.paced && self.round_trip() >= SHORTEST_PACED_TRIP.get()
    }

    const fn in_css(&self) -> bool {
        self.css_baseline != INFINITY
    }

    fn measure(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        // RFC 9406 4.2: "currentRoundMinRTT = min(currentRoundMinRTT, currRTT)"
        self.round_min = self.round_min.min(rtt.get());
        self.samples = self.samples.saturating_add(1);
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if self.in_css() {
            // RFC 9406 4.2: "check to see if the current round's minRTT drops below baseline
            // (cssBaselineMinRtt) indicating that slow start exit was spurious"
            if self.round_min < self.css_baseline {
                (self.css_baseline, self.css_rounds) = (INFINITY, 0);
            }
        } else if self.last_round_min != INFINITY {
            // RFC 9406 4.2: "RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR,
            // MAX_RTT_THRESH))", "if (currentRoundMinRTT >= (lastRoundMinRTT + RttThresh))"
            let thresh = self.last_round_min / MIN_RTT_DIVISOR;
            let thresh = thresh.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.round_min >= self.last_round_min.saturating_add(thresh) {
                self.css_baseline = self.round_min;
            }
        }
    }

    /// True if the round ends with this acknowledgment: all is acknowledged that was out when it began.
    fn ends_round(&mut self, ack: &Ack) -> bool {
        if self.round_left == 0 {
            // RFC 9406 4.2: "Define windowEnd as a sequence number initialized to SND.NXT."
            self.round_left = ack.in_flight.saturating_add(ack.delivered);
        }
        self.round_left = self.round_left.saturating_sub(ack.delivered);
        if self.round_left > 0 {
            return false;
        }
        // RFC 9406 4.2: "When windowEnd is ACKed, the current round ends and windowEnd is set to SND.NXT."
        // This precedes the sending that the acknowledgment allows: rounds of a whole round trip detect
        // less (LONG-PATHS.md).
        self.round_left = ack.in_flight;
        let saw_none = !core::mem::take(&mut self.queued);
        if saw_none && self.css_baseline == OF_QUEUE && self.is_spread(ack) {
            (self.css_baseline, self.css_rounds) = (INFINITY, 0);
        }
        self.last_round_min = self.round_min;
        (self.round_min, self.samples) = (INFINITY, 0);
        // RFC 9406 4.2: "If the transition into CSS happens in the middle of a round, that partial round
        // counts towards the limit."
        self.css_rounds += u8::from(self.in_css());
        true
    }
}

const INFINITY: u32 = u32::MAX;
/// No round trip is below it: only its own signal ends what a train or samples began.
const OF_QUEUE: u32 = 0;

/// RFC 9406 4.3, as it recommends; times in microseconds.
const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u8 = 5;
/// A train ends where nothing arrives for this part of a round trip, or for two milliseconds: reordering and
/// jitter spread the acknowledgments of a window that fills no path.
const GAP_DIVISOR: u32 = 8;
const MOST_GAP: u32 = 2_000;
/// The parts of a round trip that samples wait in a queue where Conservative Slow Start begins, and where it ends.
const BEGIN_DIVISOR: u32 = 16;
const FULL_DIVISOR: u32 = 4;
/// Less is no queue of the path, microseconds: a quantum of the sender's own makes as much.
const LEAST_QUEUE: u32 = 500;

#[cfg(test)]
mod tests;
