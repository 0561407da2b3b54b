//! The state machine: Startup, Drain, the cycle of ProbeBW, and ProbeRTT.

use core::time::Duration;

use super::{Bandwidth, Bbr, INFINITY, Instant, Sample, Window};

/// BBR.state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// BBR.ack_phase: what acknowledgments tell of a probe for bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl State {
    /// BBR.pacing_gain, percent.
    pub(super) const fn pacing_gain(self) -> u32 {
        match self {
            Self::Startup => 277,
            Self::Drain => 50,
            Self::ProbeBwDown => 90,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => 100,
            Self::ProbeBwUp => 125,
        }
    }

    /// BBR.cwnd_gain, percent.
    pub(super) const fn cwnd_gain(self) -> u32 {
        match self {
            Self::ProbeBwUp => 225,
            Self::ProbeRtt => 50,
            _ => 200,
        }
    }

    /// IsProbingBW().
    pub(super) const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    /// IsInAProbeBWState().
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp
        )
    }
}

/// Startup and Drain.
impl Bbr {
    /// ResetFullBW().
    pub(super) const fn reset_full_bw(&mut self) {
        self.full_bw = Bandwidth::ZERO;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// CheckFullBWReached().
    pub(super) fn check_full_bw_reached(&mut self, sample: &Sample) {
        if self.full_bw_now || !self.round_start || sample.is_app_limited {
            return;
        }
        // "bw is still growing, so reset"
        if sample.delivery_rate >= self.full_bw.percent(125) {
            self.reset_full_bw();
            self.full_bw = sample.delivery_rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// CheckStartupDone().
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        self.check_startup_high_loss(sample);
        if self.state == State::Startup && self.full_bw_reached {
            // EnterDrain()
            self.state = State::Drain;
            self.drain_rounds = 0;
        }
    }

    /// CheckStartupHighLoss(). Of "discontiguous sequence ranges lost" each acknowledgment that reveals losses counts
    /// as one.
    fn check_startup_high_loss(&mut self, sample: &Sample) {
        let is_high = if sample.sack {
            self.loss_round_start
                && self.loss_events_in_round >= STARTUP_FULL_LOSS_COUNT
                && Self::is_inflight_too_high(sample.lost, sample.tx_in_flight, true)
        } else {
            // "if any packet loss is detected during fast recovery"
            self.loss_events_in_round > 0
        };
        if is_high
            && self.state == State::Startup
            && !self.full_bw_reached
            && sample.in_fast_recovery
        {
            self.fill_pipe();
        }
    }

    /// Losses or marks tell that Startup has filled the path: "It sets BBR.inflight_longterm to its estimate of a safe
    /// level of in-flight data suggested by these losses, which is max(BBR.bdp, BBR.inflight_latest)".
    pub(super) fn fill_pipe(&mut self) {
        self.undo_state = Some(State::Startup);
        self.full_bw_reached = true;
        let bdp = self.bdp(self.bw()).unwrap_or(0);
        self.inflight_longterm = bdp.max(self.inflight_latest);
    }

    /// CheckDrainDone().
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.inflight <= self.inflight(self.bw(), sample.smss) || self.drain_rounds > 3)
        {
            // EnterProbeBW()
            self.start_probe_bw_down();
        }
    }

    /// HandleSpuriousLossDetection(): "If flow was probing bandwidth, return to that state".
    pub(super) fn return_to_probing(&mut self) {
        match self.undo_state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}

/// ProbeBW.
impl Bbr {
    pub(super) fn start_probe_bw_down(&mut self) {
        self.reset_congestion_signals();
        // "not growing BBR.inflight_longterm"
        self.probe_up_acked_per_inc = INFINITY;
        self.pick_probe_wait();
        self.phase_stamp = self.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        (self.bw_probe_up_rounds, self.bw_probe_up_acked) = (0, 0);
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self, window: &Window, sample: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = sample.delivery_rate;
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope(window, sample.smss);
    }

    /// PickProbeWait(): 0 or 1 rounds, and 2 to 3 s, drawn from the time and the path.
    fn pick_probe_wait(&mut self) {
        let seed =
            self.now.as_nanos() ^ (u64::from(self.delivered) << 32) ^ u64::from(self.min_rtt.get());
        let drawn = mix(seed);
        self.rounds_since_probe_up = (drawn & 1) as u8;
        self.bw_probe_wait_millis = 2_000 + ((drawn >> 32) % 1_001) as u16;
    }

    /// UpdateProbeBWCyclePhase().
    pub(super) fn update_probe_bw_cycle_phase(&mut self, window: &Window, sample: &Sample) {
        if !self.full_bw_reached || self.adapt_long_term_model(window, sample) {
            return;
        }
        match self.state {
            State::ProbeBwDown => self.step_down(window, sample),
            State::ProbeBwCruise => {
                self.probe_bw_if_due(window, sample);
            }
            // "After one round of REFILL, start UP"
            State::ProbeBwRefill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_probe_bw_up(window, sample);
            }
            State::ProbeBwUp => self.step_up(window, sample),
            _ => {}
        }
    }

    fn step_down(&mut self, window: &Window, sample: &Sample) {
        if !self.probe_bw_if_due(window, sample) && self.is_time_to_cruise(sample) {
            self.state = State::ProbeBwCruise;
        }
    }

    fn step_up(&mut self, window: &Window, sample: &Sample) {
        if self.is_time_to_go_down(window, sample) {
            // "no high loss (yet)"
            self.prev_probe_too_high = false;
            self.start_probe_bw_down();
        }
    }

    /// IsTimeToProbeBW().
    fn probe_bw_if_due(&mut self, window: &Window, sample: &Sample) -> bool {
        let wait = Duration::from_millis(self.bw_probe_wait_millis.into());
        let is_due =
            self.now > self.phase_stamp + wait || self.is_reno_coexistence_time(window, sample);
        if is_due {
            self.start_probe_bw_refill();
        }
        is_due
    }

    /// IsRenoCoexistenceProbeTime().
    fn is_reno_coexistence_time(&self, window: &Window, sample: &Sample) -> bool {
        let rounds = (self.target_inflight(window) / sample.smss.max(1)).min(MOST_ROUNDS);
        u32::from(self.rounds_since_probe_up) >= rounds
    }

    /// IsTimeToCruise().
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.inflight <= self.inflight_with_headroom(sample.smss)
            && sample.inflight <= self.inflight(self.max_bw(), sample.smss)
    }

    /// IsTimeToGoDown().
    fn is_time_to_go_down(&mut self, window: &Window, sample: &Sample) -> bool {
        // "Precautionary Bandwidth Probing: Deceleration"
        if self.prev_probe_too_high && sample.inflight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && window.cwnd >= self.inflight_longterm {
            // "bw is limited by BBR.inflight_longterm"
            self.reset_full_bw();
            self.full_bw = sample.delivery_rate;
            return false;
        }
        self.full_bw_now
    }

    const fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }

    /// RaiseInflightLongtermSlope().
    fn raise_inflight_longterm_slope(&mut self, window: &Window, smss: u32) {
        let growth_this_round = 1 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (window.cwnd / growth_this_round).max(smss);
    }

    /// ProbeInflightLongtermUpward().
    fn probe_inflight_longterm_upward(&mut self, window: &Window, sample: &Sample) {
        if !self.is_cwnd_limited() || window.cwnd < self.inflight_longterm {
            // "not fully using BBR.inflight_longterm, so don't grow it"
            return;
        }
        self.bw_probe_up_acked = self.bw_probe_up_acked.saturating_add(sample.newly_acked);
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = self.bw_probe_up_acked / self.probe_up_acked_per_inc.max(1);
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            let growth = delta.saturating_mul(sample.smss);
            self.inflight_longterm = self.inflight_longterm.saturating_add(growth);
        }
        if self.round_start {
            self.raise_inflight_longterm_slope(window, sample.smss);
        }
    }

    /// AdaptLongTermModel(). Returns true if it decided a state transition.
    fn adapt_long_term_model(&mut self, window: &Window, sample: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            // "starting to get bw probing samples"
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping
            && self.round_start
            && self.end_feedback(sample)
        {
            return true;
        }
        // "Loss rate is safe. Adjust upper bounds upward."
        if !Self::is_inflight_too_high(sample.lost, sample.tx_in_flight, sample.sack)
            && self.inflight_longterm != INFINITY
        {
            self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(window, sample);
            }
        }
        false
    }

    /// AdaptLongTermModel(): "end of samples from bw probing phase". Returns true if it decided a state transition.
    fn end_feedback(&mut self, sample: &Sample) -> bool {
        self.is_bw_probe_sample = false;
        self.ack_phase = AckPhase::Init;
        if !self.state.is_probe_bw() {
            return false;
        }
        if !sample.is_app_limited {
            self.advance_max_bw_filter();
        }
        // "Precautionary Bandwidth Probing: Acceleration"
        let accelerates = self.prev_probe_precautionary && !self.prev_probe_too_high;
        if accelerates {
            self.start_probe_bw_refill();
        }
        accelerates
    }
}

/// ProbeRTT, and silence.
impl Bbr {
    /// CheckProbeRTT().
    pub(super) fn check_probe_rtt(
        &mut self,
        window: &mut Window,
        sample: &Sample,
        is_expired: bool,
    ) {
        if self.state != State::ProbeRtt && is_expired && !self.idle_restart {
            self.save_cwnd(window);
            // EnterProbeRTT()
            self.state = State::ProbeRtt;
            self.phase_stamp = Instant::NEVER;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(window, sample);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT().
    fn handle_probe_rtt(&mut self, window: &mut Window, sample: &Sample) {
        // MarkConnectionAppLimited(): "C.app_limited = max(C.delivered + C.inflight, 1)"
        self.app_limited_until = self.delivered.wrapping_add(sample.inflight);
        self.ignores_low_samples = true;
        if self.phase_stamp != Instant::NEVER {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(window);
            }
        } else if sample.inflight <= self.probe_rtt_cwnd(sample.smss) {
            self.phase_stamp = self.now + PROBE_RTT_DURATION;
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    /// CheckProbeRTTDone().
    fn check_probe_rtt_done(&mut self, window: &mut Window) {
        if self.phase_stamp != Instant::NEVER && self.now > self.phase_stamp {
            // "schedule next ProbeRTT"
            self.probe_rtt_min_stamp = self.now;
            self.note_probed_rtt();
            self.restore_cwnd(window);
            self.exit_probe_rtt();
        }
    }

    /// ExitProbeRTT().
    fn exit_probe_rtt(&mut self) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down();
            self.state = State::ProbeBwCruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// HandleRestartFromIdle().
    pub(super) fn restart_from_idle(&mut self, window: &mut Window) {
        self.idle_restart = true;
        self.extra_acked_interval_start = self.now.as_micros() as u32;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(window);
        }
    }
}

/// A number that looks random, from one that is different each time (SplitMix64's finalizer).
const fn mix(seed: u64) -> u64 {
    let a = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ (b >> 31)
}

/// BBRStartupFullLossCnt.
const STARTUP_FULL_LOSS_COUNT: u8 = 6;
/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// "rounds = min(reno_rounds, 63)"
const MOST_ROUNDS: u32 = 63;
