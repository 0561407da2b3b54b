//! Losses: what they tell of the volume that a path holds, and what is restored if they were none.

use super::model::{BETA, LOSS_THRESH, percent};
use super::states::State;
use super::{Bbr, INFINITY, LostText, Window};

impl Bbr {
    /// NoteLoss().
    pub(super) fn note_loss(&mut self, window: &Window) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state_upon_loss(window);
        }
        (self.is_loss_in_round, self.is_loss_in_ack) = (true, true);
    }

    /// HandleLostPacket().
    pub(super) fn handle_lost_text(&mut self, window: &mut Window, lost: &LostText) {
        self.note_loss(window);
        if self.is_bw_probe_sample
            && Self::is_inflight_too_high(lost.lost, lost.in_flight, lost.sack)
        {
            self.handle_inflight_too_high(window, inflight_at_loss(lost), lost.app_limited);
        }
    }

    /// HandleInflightTooHigh().
    pub(super) fn handle_inflight_too_high(
        &mut self,
        window: &Window,
        tx_in_flight: u32,
        is_app_limited: bool,
    ) {
        self.prev_probe_too_high = true;
        // "only react once per bw probe"
        self.is_bw_probe_sample = false;
        if !is_app_limited {
            let target = percent(self.target_inflight(window), BETA);
            self.inflight_longterm = tx_in_flight.max(target);
        }
        if self.state == State::ProbeBwUp {
            self.undo_state = Some(State::ProbeBwUp);
            self.start_probe_bw_down();
        }
    }

    /// SaveStateUponLoss().
    pub(super) fn save_state_upon_loss(&mut self, window: &Window) {
        self.save_cwnd(window);
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// HandleSpuriousLossDetection(), but for cwnd.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        self.return_to_probing();
    }
}

/// InflightAtLoss(): what was in flight when losses crossed the threshold, amid this transmission.
fn inflight_at_loss(lost: &LostText) -> u32 {
    let [in_flight, bytes, all_lost, thresh] =
        [lost.in_flight, lost.bytes, lost.lost, LOSS_THRESH].map(i64::from);
    let (inflight_prev, lost_prev) = ((in_flight - bytes).max(0), (all_lost - bytes).max(0));
    // "lost_prefix = (BBR.LossThresh * inflight_prev - lost_prev) / (1 - BBR.LossThresh)"
    let lost_prefix = (thresh * inflight_prev - 100 * lost_prev) / (100 - thresh);
    u32::try_from((inflight_prev + lost_prefix).max(0)).unwrap_or(INFINITY)
}
