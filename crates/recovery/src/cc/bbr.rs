//! BBRv3 (draft-ietf-ccwg-bbr): text leaves at the rate at which the path delivers it.
//!
//! `model.rs` has what is known of the path, `control.rs` the pacing rate and cwnd, `states.rs` the tactics, and
//! `losses.rs` how losses bound them. Names are the draft's, and a name in the doc of a function is that of the
//! draft's pseudocode that it follows.

mod bandwidth;
mod control;
mod losses;
mod model;
mod sample;
mod states;

use whimbrel_base::{Instant, Micros};

use self::bandwidth::Bandwidth;
use self::sample::Sample;
use self::states::{AckPhase, State};
use super::{Ack, CongestionControl, Loss, LostText, Phase, Sent, Timeout, Window, initial_cwnd};

/// BBRv3 (draft-ietf-ccwg-bbr), which paces text at the rate at which the path delivers it.
#[derive(Debug)]
pub struct Bbr {
    /// When the last event happened; zero before the first.
    now: Instant,
    min_rtt_stamp: Instant,
    probe_rtt_min_stamp: Instant,
    /// BBR.cycle_stamp. In ProbeRTT: BBR.probe_rtt_done_stamp, [`Instant::NEVER`] where the draft has 0.
    phase_stamp: Instant,
    min_rtt: Micros,
    probe_rtt_min_delay: Micros,
    /// The most of the last ProbeBW cycle with samples, and of this one.
    max_bw_filter: [Bandwidth; 2],
    bw_shortterm: Bandwidth,
    bw_latest: Bandwidth,
    full_bw: Bandwidth,
    undo_bw_shortterm: Bandwidth,
    pacing_rate: Bandwidth,
    inflight_longterm: u32,
    inflight_shortterm: u32,
    inflight_latest: u32,
    undo_inflight_longterm: u32,
    undo_inflight_shortterm: u32,
    prior_cwnd: u32,
    /// The most of the last bucket of rounds, and of this one.
    extra_acked_filter: [u32; 2],
    extra_acked_delivered: u32,
    /// Microseconds, modulo 2^32.
    extra_acked_interval_start: u32,
    bw_probe_up_acked: u32,
    probe_up_acked_per_inc: u32,
    /// C.delivered. This and the next three are modulo 2^32.
    delivered: u32,
    next_round_delivered: u32,
    loss_round_delivered: u32,
    /// C.app_limited as ProbeRTT sets it, while [`Bbr::ignores_low_samples`].
    app_limited_until: u32,
    bw_probe_wait_millis: u16,
    rounds_since_probe_up: u8,
    /// Rounds since Drain began.
    drain_rounds: u8,
    /// Rounds of this bucket of the filter.
    extra_acked_rounds: u8,
    bw_probe_up_rounds: u8,
    full_bw_count: u8,
    /// Rounds in which less than half of max_bw arrived, and late; one more if ProbeRTT came after three.
    slow_rounds: u8,
    /// Acknowledgments of this round that revealed losses.
    loss_events_in_round: u8,
    state: State,
    ack_phase: AckPhase,
    /// The state that a loss ended.
    undo_state: Option<State>,
    round_start: bool,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// A loss was reported since the last acknowledgment.
    is_loss_in_ack: bool,
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    full_bw_now: bool,
    full_bw_reached: bool,
    idle_restart: bool,
    probe_rtt_round_done: bool,
    ignores_low_samples: bool,
    /// In fast recovery, or after a time-out.
    in_loss_recovery: bool,
    /// The pacing rate follows a measured round trip.
    has_seen_rtt: bool,
    /// C.is_cwnd_limited, of the last round and of this one.
    cwnd_limited: [bool; 2],
}

const _: () = assert!(size_of::<Bbr>() <= 160, "one for each connection that has it");

impl Default for Bbr {
    /// OnInit(): nothing is known of the path.
    fn default() -> Self {
        Self {
            now: Instant::ZERO,
            min_rtt_stamp: Instant::ZERO,
            probe_rtt_min_stamp: Instant::ZERO,
            phase_stamp: Instant::ZERO,
            min_rtt: UNKNOWN,
            probe_rtt_min_delay: UNKNOWN,
            max_bw_filter: [Bandwidth::ZERO; 2],
            bw_shortterm: Bandwidth::INFINITY,
            bw_latest: Bandwidth::ZERO,
            full_bw: Bandwidth::ZERO,
            undo_bw_shortterm: Bandwidth::ZERO,
            pacing_rate: Bandwidth::ZERO,
            inflight_longterm: INFINITY,
            inflight_shortterm: INFINITY,
            inflight_latest: 0,
            undo_inflight_longterm: 0,
            undo_inflight_shortterm: 0,
            prior_cwnd: 0,
            extra_acked_filter: [0; 2],
            extra_acked_delivered: 0,
            extra_acked_interval_start: 0,
            bw_probe_up_acked: 0,
            probe_up_acked_per_inc: INFINITY,
            delivered: 0,
            next_round_delivered: 0,
            loss_round_delivered: 0,
            app_limited_until: 0,
            bw_probe_wait_millis: 0,
            rounds_since_probe_up: 0,
            drain_rounds: 0,
            extra_acked_rounds: 0,
            bw_probe_up_rounds: 0,
            full_bw_count: 0,
            slow_rounds: 0,
            loss_events_in_round: 0,
            state: State::Startup,
            ack_phase: AckPhase::Init,
            undo_state: None,
            round_start: false,
            loss_round_start: false,
            is_loss_in_round: false,
            is_loss_in_ack: false,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            full_bw_now: false,
            full_bw_reached: false,
            idle_restart: false,
            probe_rtt_round_done: false,
            ignores_low_samples: false,
            in_loss_recovery: false,
            has_seen_rtt: false,
            cwnd_limited: [false; 2],
        }
    }
}

impl CongestionControl for Bbr {
    fn pacing_rate(&self, _: &Window) -> Option<u64> {
        Some(self.pacing_rate.bytes_per_second())
    }

    fn sets_cwnd_in_recovery(&self) -> bool {
        true
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn begin(&mut self, window: &mut Window, _: u32) {
        self.init_pacing_rate(window.cwnd, Micros::from_millis(1));
    }

    /// OnTransmit(): text that follows a pause leaves at the bandwidth.
    fn on_sent(&mut self, window: &mut Window, sent: &Sent) {
        self.set_now(sent.now);
        self.cwnd_limited[1] |= sent.in_flight + sent.mss > window.cwnd;
        // "if (C.inflight == 0 && C.app_limited)": outside of recovery, only a closed window empties the path, too.
        if sent.in_flight <= sent.bytes && !self.in_loss_recovery {
            self.restart_from_idle(window);
        }
    }

    /// UpdateOnACK(): the model follows the sample, the state the model, and rate and cwnd both.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.set_now(ack.now);
        if self.in_loss_recovery && ack.phase == Phase::Open {
            self.end_loss_recovery(window);
        }
        if !self.has_seen_rtt && ack.srtt > Micros::default() {
            self.has_seen_rtt = true;
            self.init_pacing_rate(initial_cwnd(ack.mss, super::INITIAL_SEGMENTS), ack.srtt);
        }
        let sample = self.take_sample(ack);
        self.update_model_and_state(window, &sample);
        self.update_control_parameters(window, &sample);
    }

    /// HandleLostPacket(): more than is tolerated, of a probe, bounds the volume in flight.
    fn on_lost(&mut self, window: &mut Window, lost: &LostText) {
        self.handle_lost_text(window, lost);
    }

    /// OnEnterFastRecovery(). The state was saved at the first loss of the round.
    fn on_loss_event(&mut self, window: &mut Window, _: &Loss) {
        self.note_loss(window);
        self.save_cwnd(window);
        self.in_loss_recovery = true;
    }

    fn on_recovered(&mut self, window: &mut Window, _: &Loss) {
        self.end_loss_recovery(window);
    }

    /// OnEnterRTO(): one segment may leave until an acknowledgment arrives.
    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout) {
        self.save_state_upon_loss(window);
        self.in_loss_recovery = true;
        // "BBR conservatively reduces C.cwnd to a value that will allow 1 C.SMSS to be transmitted."
        window.cwnd = timeout.mss;
    }

    /// "the congestion controller response MUST treat any CE marks as congestion."
    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.note_loss(window);
        if self.state == State::Startup {
            self.fill_pipe();
        } else if self.is_bw_probe_sample {
            self.handle_inflight_too_high(window, loss.in_flight, false);
        }
    }

    /// "When restarting from idle in ProbeBW states, BBR leaves C.cwnd as-is".
    fn on_idle(&mut self, _: &mut Window, _: u32) {}

    /// HandleSpuriousLossDetection(): cwnd, model and state are those before the loss.
    fn undo(&mut self, window: &mut Window, before: &Window) {
        window.cwnd = window.cwnd.max(before.cwnd);
        self.end_loss_recovery(window);
        self.handle_spurious_loss();
    }
}

impl Bbr {
    /// An event happens at `now`: the first one begins what lasts for a time.
    fn set_now(&mut self, now: Instant) {
        if self.now == Instant::ZERO {
            (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (now, now);
            self.extra_acked_interval_start = now.as_micros() as u32;
        }
        self.now = now;
    }

    fn update_model_and_state(&mut self, window: &mut Window, sample: &Sample) {
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(window, sample);
        self.update_ack_aggregation(window, sample);
        self.check_full_bw_reached(sample);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_probe_bw_cycle_phase(window, sample);
        let is_expired = self.update_min_rtt(sample);
        self.check_probe_rtt(window, sample, is_expired);
        self.advance_latest_delivery_signals(sample);
    }
}

/// Infinity, where the draft has it for a volume of data.
const INFINITY: u32 = u32::MAX;
/// Infinity, where the draft has it for a round trip.
const UNKNOWN: Micros = Micros::new(u32::MAX);

#[cfg(test)]
mod tests;
