//! The model of the path: rounds, bandwidth, the least round trip, aggregation, and the losses that bound it.

use core::time::Duration;

use whimbrel_base::Micros;

use super::sample::is_before;
use super::{Bandwidth, Bbr, INFINITY, Sample, UNKNOWN, Window};

impl Bbr {
    /// BBR.max_bw.
    pub(super) fn max_bw(&self) -> Bandwidth {
        self.max_bw_filter[0].max(self.max_bw_filter[1])
    }

    /// BBR.bw, as BoundBWForModel() has it.
    pub(super) fn bw(&self) -> Bandwidth {
        self.max_bw().min(self.bw_shortterm)
    }

    /// BBR.extra_acked.
    pub(super) fn extra_acked(&self) -> u32 {
        self.extra_acked_filter[0].max(self.extra_acked_filter[1])
    }

    /// StartRound().
    pub(super) const fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// UpdateLatestDeliverySignals().
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(sample.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.prior_delivered.is_some_and(|prior| !is_before(prior, self.loss_round_delivered))
        {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
        if core::mem::take(&mut self.is_loss_in_ack) {
            self.loss_events_in_round = self.loss_events_in_round.saturating_add(1);
        }
    }

    /// AdvanceLatestDeliverySignals().
    pub(super) const fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate;
            self.inflight_latest = sample.delivered;
            self.loss_events_in_round = 0;
        }
    }

    /// ResetCongestionSignals().
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = Bandwidth::ZERO;
        self.inflight_latest = 0;
    }

    /// ResetShortTermModel().
    pub(super) const fn reset_short_term_model(&mut self) {
        self.bw_shortterm = Bandwidth::INFINITY;
        self.inflight_shortterm = INFINITY;
    }

    /// UpdateCongestionSignals().
    pub(super) fn update_congestion_signals(&mut self, window: &Window, sample: &Sample) {
        self.update_max_bw(sample);
        // "wait until end of round trip"
        if self.loss_round_start {
            self.adapt_lower_bounds(window);
            self.is_loss_in_round = false;
        }
    }

    /// UpdateMaxBw().
    fn update_max_bw(&mut self, sample: &Sample) {
        self.update_round(sample);
        self.forget_lost_bandwidth(sample);
        let rate = sample.delivery_rate;
        if rate > Bandwidth::ZERO && (rate >= self.max_bw() || !sample.is_app_limited) {
            self.max_bw_filter[1] = self.max_bw_filter[1].max(rate);
        }
    }

    /// Forgets what the filter has of a path that has become slow.
    ///
    /// The draft forgets it after two cycles. Behind the queue that its own text has built, a cycle takes as long
    /// as two states of ProbeRTT are apart, which end it early: 10 Mb/s were believed for 20 s on a path that
    /// carried 1. Three rounds in which less than half arrived, and late, show the same as a plateau does in
    /// Startup. A path that became longer shows it, too: only if ProbeRTT finds a short round trip between them,
    /// a queue is the reason.
    fn forget_lost_bandwidth(&mut self, sample: &Sample) {
        if !self.full_bw_reached || !self.round_start || sample.is_app_limited {
            return;
        }
        let is_late = sample.rtt.is_some_and(|rtt| rtt.get() / 2 > self.probe_rtt_min_delay.get());
        if self.bw_latest >= self.max_bw().percent(50) {
            self.slow_rounds = 0;
        } else if is_late && self.slow_rounds != SLOW_ROUNDS {
            self.slow_rounds += 1;
        }
        if self.slow_rounds == SLOW_ROUNDS + 2 {
            self.slow_rounds = 0;
            self.max_bw_filter = [Bandwidth::ZERO, self.bw_latest];
        }
    }

    /// ProbeRTT has emptied the queue of its own text: what is late from now on waits in it.
    pub(super) const fn note_probed_rtt(&mut self) {
        if self.slow_rounds == SLOW_ROUNDS {
            self.slow_rounds += 1;
        }
    }

    /// AdvanceMaxBwFilter(). A cycle without a sample is no slot of the filter.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.max_bw_filter[1] > Bandwidth::ZERO {
            self.max_bw_filter = [self.max_bw_filter[1], Bandwidth::ZERO];
        }
    }

    /// UpdateRound().
    fn update_round(&mut self, sample: &Sample) {
        let ends = |prior| !is_before(prior, self.next_round_delivered);
        self.round_start = sample.prior_delivered.is_some_and(ends);
        if self.round_start {
            self.start_round();
            self.rounds_since_probe_up = self.rounds_since_probe_up.saturating_add(1);
            self.drain_rounds = self.drain_rounds.saturating_add(1);
            self.cwnd_limited = [self.cwnd_limited[1], false];
            self.advance_extra_acked_filter();
        }
    }

    /// AdaptLowerBoundsFromCongestion(), InitLowerBounds() and LossLowerBounds().
    fn adapt_lower_bounds(&mut self, window: &Window) {
        if self.state.is_probing_bw() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm == Bandwidth::INFINITY {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == INFINITY {
            self.inflight_shortterm = window.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(self.bw_shortterm.percent(BETA));
        self.inflight_shortterm = self.inflight_latest.max(percent(self.inflight_shortterm, BETA));
    }

    /// UpdateACKAggregation().
    pub(super) fn update_ack_aggregation(&mut self, window: &Window, sample: &Sample) {
        let now = self.now.as_micros() as u32;
        let interval = Micros::new(now.wrapping_sub(self.extra_acked_interval_start));
        let mut expected = self.bw().bytes_in(interval);
        // "Reset interval if ACK rate is below expected rate"
        if self.extra_acked_delivered <= expected {
            (self.extra_acked_delivered, self.extra_acked_interval_start) = (0, now);
            expected = 0;
        }
        self.extra_acked_delivered = self.extra_acked_delivered.saturating_add(sample.newly_acked);
        let extra = (self.extra_acked_delivered - expected).min(window.cwnd);
        self.extra_acked_filter[1] = self.extra_acked_filter[1].max(extra);
    }

    /// A round ends: the filter spans at least five of the last ten rounds, and in Startup one.
    fn advance_extra_acked_filter(&mut self) {
        self.extra_acked_rounds += 1;
        if !self.full_bw_reached {
            (self.extra_acked_filter, self.extra_acked_rounds) = ([0; 2], 0);
        } else if self.extra_acked_rounds >= EXTRA_ACKED_FILTER_LEN / 2 {
            self.extra_acked_filter = [self.extra_acked_filter[1], 0];
            self.extra_acked_rounds = 0;
        }
    }

    /// UpdateMinRTT(). Returns BBR.probe_rtt_expired.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) -> bool {
        let probe_rtt_expired = self.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min_delay || probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = self.now;
        }
        let is_expired = self.now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if self.probe_rtt_min_delay < self.min_rtt || is_expired {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        probe_rtt_expired
    }

    /// BBR.bdp; `None` before a round trip was measured.
    pub(super) fn bdp(&self, bw: Bandwidth) -> Option<u32> {
        (self.min_rtt != UNKNOWN).then(|| bw.bytes_in(self.min_rtt))
    }

    /// TargetInflight().
    pub(super) fn target_inflight(&self, window: &Window) -> u32 {
        self.bdp(self.bw()).map_or(window.cwnd, |bdp| bdp.min(window.cwnd))
    }

    /// IsInflightTooHigh(): more than BBR.LossThresh of it is lost, or anything where one loss in a round trip is all
    /// that can be found.
    pub(super) fn is_inflight_too_high(lost: u32, tx_in_flight: u32, sack: bool) -> bool {
        u64::from(lost) * 100 > u64::from(tx_in_flight) * u64::from(LOSS_THRESH)
            || lost > 0 && !sack
    }
}

/// So many percent of a volume.
pub(super) fn percent(bytes: u32, percent: u32) -> u32 {
    (u64::from(bytes) * u64::from(percent) / 100).min(u64::from(INFINITY)) as u32
}

/// BBR.LossThresh, percent.
pub(super) const LOSS_THRESH: u32 = 2;
/// BBR.Beta, percent.
pub(super) const BETA: u32 = 70;
/// BBR.ExtraAckedFilterLen, rounds.
const EXTRA_ACKED_FILTER_LEN: u8 = 10;
/// Slow rounds after which ProbeRTT shows the reason.
const SLOW_ROUNDS: u8 = 3;
/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
