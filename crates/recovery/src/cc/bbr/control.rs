//! The control parameters: pacing rate and cwnd.

use whimbrel_base::Micros;

use super::model::percent;
use super::states::State;
use super::{Bandwidth, Bbr, INFINITY, Sample, Window, initial_cwnd};
use crate::cc::INITIAL_SEGMENTS;

impl Bbr {
    /// UpdateControlParameters(). C.send_quantum is the pacer's.
    pub(super) fn update_control_parameters(&mut self, window: &mut Window, sample: &Sample) {
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(window, sample);
    }

    /// InitPacingRate().
    pub(super) fn init_pacing_rate(&mut self, initial_cwnd: u32, srtt: Micros) {
        let nominal = Bandwidth::of(initial_cwnd.into(), srtt);
        self.pacing_rate = nominal.percent(State::Startup.pacing_gain());
    }

    /// SetPacingRateWithGain(), the gain in percent.
    pub(super) fn set_pacing_rate(&mut self, gain: u32) {
        let rate = self.bw().percent(gain).percent(100 - PACING_MARGIN);
        // Losses can end Startup before a rate was measured.
        let is_known = self.full_bw_reached && rate > Bandwidth::ZERO;
        if is_known || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// C.send_quantum, as SetSendQuantum() has it.
    fn send_quantum(&self, smss: u32) -> u32 {
        self.pacing_rate
            .bytes_in(Micros::from_millis(1))
            .clamp(2 * smss, MOST_QUANTUM.max(2 * smss))
    }

    /// BDPMultiple(), the gain in percent.
    pub(super) fn bdp_multiple(&self, bw: Bandwidth, gain: u32, smss: u32) -> u32 {
        let bdp = self.bdp(bw).map(|bdp| percent(bdp, gain));
        bdp.unwrap_or_else(|| initial_cwnd(smss, INITIAL_SEGMENTS))
    }

    /// QuantizationBudget().
    fn quantization_budget(&self, inflight_cap: u32, smss: u32) -> u32 {
        // UpdateOffloadBudget(): "BBR.offload_budget = 3 * C.send_quantum"
        let offload_budget = 3 * self.send_quantum(smss);
        let cap = inflight_cap.max(offload_budget).max(MIN_PIPE_SEGMENTS * smss);
        cap.saturating_add(if self.state == State::ProbeBwUp { 2 * smss } else { 0 })
    }

    /// Inflight(): what fills a path of this bandwidth.
    pub(super) fn inflight(&self, bw: Bandwidth, smss: u32) -> u32 {
        self.quantization_budget(self.bdp_multiple(bw, 100, smss), smss)
    }

    /// BBR.max_inflight, as UpdateMaxInflight() has it.
    fn max_inflight(&self, smss: u32) -> u32 {
        let cap = self.bdp_multiple(self.bw(), self.state.cwnd_gain(), smss);
        self.quantization_budget(cap.saturating_add(self.extra_acked()), smss)
    }

    /// InflightWithHeadroom().
    pub(super) fn inflight_with_headroom(&self, smss: u32) -> u32 {
        let longterm = self.inflight_longterm;
        if longterm == INFINITY {
            return INFINITY;
        }
        let headroom = percent(longterm, HEADROOM).max(smss);
        longterm.saturating_sub(headroom).max(MIN_PIPE_SEGMENTS * smss)
    }

    /// ProbeRTTCwnd(). A path that delivers less than BBR.bw has a queue, and less in flight empties it.
    pub(super) fn probe_rtt_cwnd(&self, smss: u32) -> u32 {
        let (bw, gain) = (self.bw().min(self.bw_latest), State::ProbeRtt.cwnd_gain());
        self.bdp_multiple(bw, gain, smss).max(MIN_PIPE_SEGMENTS * smss)
    }

    /// SetCwnd().
    fn set_cwnd(&self, window: &mut Window, sample: &Sample) {
        let (most, smss) = (self.max_inflight(sample.smss), sample.smss);
        let grown = window.cwnd.saturating_add(sample.newly_acked);
        if self.full_bw_reached {
            window.cwnd = grown.min(most);
        } else if window.cwnd < most || self.delivered < initial_cwnd(smss, INITIAL_SEGMENTS) {
            window.cwnd = grown;
        }
        window.cwnd = window.cwnd.max(MIN_PIPE_SEGMENTS * smss);
        // BoundCwndForProbeRTT()
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd(smss));
        }
        self.bound_cwnd(window, smss);
    }

    /// BoundCwndForModel().
    fn bound_cwnd(&self, window: &mut Window, smss: u32) {
        let cap = match self.state {
            State::Startup | State::Drain => INFINITY,
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(smss),
        };
        let cap = cap.min(self.inflight_shortterm).max(MIN_PIPE_SEGMENTS * smss);
        window.cwnd = window.cwnd.min(cap);
    }

    /// SaveCwnd().
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let is_reduced = self.in_loss_recovery || self.state == State::ProbeRtt;
        self.prior_cwnd = if is_reduced { self.prior_cwnd.max(window.cwnd) } else { window.cwnd };
    }

    /// RestoreCwnd(): a recovery is over, or ProbeRTT.
    pub(super) fn restore_cwnd(&self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_cwnd);
    }

    /// Loss recovery ends, by repairing or by undoing.
    pub(super) fn end_loss_recovery(&mut self, window: &mut Window) {
        if core::mem::take(&mut self.in_loss_recovery) {
            self.restore_cwnd(window);
        }
    }
}

/// BBR.PacingMarginPercent.
const PACING_MARGIN: u32 = 1;
/// BBR.Headroom, percent.
const HEADROOM: u32 = 15;
/// BBR.MinPipeCwnd, segments.
const MIN_PIPE_SEGMENTS: u32 = 4;
/// "C.send_quantum = min(C.send_quantum, 64 KBytes)"
const MOST_QUANTUM: u32 = 64_000;
