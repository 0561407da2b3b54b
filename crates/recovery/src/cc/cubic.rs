//! CUBIC (RFC 9438): after a loss the window rises back fast to where the path was full, stays there for
//! a while, and then looks further; by the clock, not by the round trip.
//!
//! ```text
//!   cwnd                                        /
//!   W_max  - - - - - - - - .--------------.----'
//!                       .-'                      convex: looks for more
//!                      /   concave: back to what was there
//!   0.7 W_max ________/
//!             loss    t = 0               t = K
//! ```

mod curve;

use super::hystart::HyStart;
use super::{Ack, CongestionControl, Loss, Share, Timeout, Window};
use curve::Curve;

/// CUBIC, with HyStart++ in its first slow start.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cubic {
    start: HyStart,
    stage: Option<AvoidanceStage>,
    /// cwnd_prior: the window when ssthresh was last set; 0 if it was not, or that is forgotten.
    prior: u32,
    /// Both as they were before the last loss, for [`CongestionControl::undo`].
    before: (Option<AvoidanceStage>, u32),
}

/// A stage of congestion avoidance: what began at t_epoch.
#[derive(Clone, Copy, Debug)]
struct AvoidanceStage {
    curve: Curve,
    /// t: the time in which the window was what limited the sender, microseconds.
    elapsed: u32,
    /// When the last acknowledgment arrived that counts, microseconds modulo 2^32.
    heard: u32,
    /// W_est: what Reno's window would be.
    w_est: u32,
    /// Bytes acknowledged since W_est last grew.
    counted: u32,
}

impl AvoidanceStage {
    /// Congestion avoidance begins with this acknowledgment.
    fn begin(window: &Window, ack: &Ack) -> Self {
        let heard = ack.now.as_micros() as u32;
        // RFC 9438 4.3: "_W_est_ is set equal to _cwnd_epoch_ at the start of the congestion avoidance
        // stage."
        let curve = Curve::new(window.cwnd, window.w_max, ack.mss);
        Self { curve, elapsed: 0, heard, w_est: window.cwnd, counted: 0 }
    }

    /// Time passes until an acknowledgment.
    fn advance(&mut self, ack: &Ack) {
        let now = ack.now.as_micros() as u32;
        // RFC 9438 4.2: "The elapsed time _t_ in Figure 1 MUST NOT include periods during which _cwnd_
        // has not been updated due to application-limited behavior (see Section 5.8)." While the window
        // is full something is acknowledged in each round trip: a longer silence was such a period.
        let since = now.wrapping_sub(self.heard).min(ack.srtt.get());
        self.elapsed = self.elapsed.saturating_add(since);
        self.heard = now;
    }

    /// W_est after `acked` bytes more.
    fn count(&mut self, acked: u32, cwnd: u32, prior: u32, mss: u32) {
        // RFC 9438 4.3: "W_est = W_est + alpha_cubic * segments_acked / cwnd", by whole segments: one for
        // each 1 / alpha windows, where "alpha_cubic = 3 * (1 - beta_cubic) / (1 + beta_cubic)" is 9 / 17.
        // "Once _W_est_ has grown to reach the _cwnd_ at the time of most recently setting _ssthresh_ --
        // that is, _W_est_ >= _cwnd_prior_ -- the sender SHOULD set alpha_cubic to 1".
        let window = if self.w_est >= prior { cwnd } else { Share(17, 9).of(cwnd) };
        self.counted = self.counted.saturating_add(acked);
        if self.counted >= window {
            self.counted = (self.counted - window).min(window);
            self.w_est = self.w_est.saturating_add(mss).min(Window::MOST);
        }
    }
}

impl Cubic {
    /// `acked` bytes are acknowledged in congestion avoidance.
    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &Ack) {
        if self.prior == 0 {
            // RFC 9438 4.10, of a slow start that ended without a loss: "CUBIC sets _cwnd_prior = cwnd_
            // and switches to congestion avoidance." Of an idle connection W_max remembers it.
            self.prior = window.cwnd.max(window.w_max);
        }
        let stage = self.stage.get_or_insert_with(|| AvoidanceStage::begin(window, ack));
        stage.advance(ack);
        stage.count(acked, window.cwnd, self.prior, ack.mss);
        // RFC 9438 4.3: "CUBIC checks whether W_cubic(_t_) is less than _W_est_. If so, CUBIC is in the
        // Reno-friendly region and _cwnd_ SHOULD be set to _W_est_ at each reception of a new ACK."
        if stage.curve.at(stage.elapsed, ack.mss) < stage.w_est {
            window.cwnd = window.cwnd.max(stage.w_est);
            return;
        }
        // RFC 9438 4.2: "Upon receiving a new ACK during congestion avoidance, CUBIC computes the _target_
        // congestion window size after the next _RTT_ using Figure 1", within "cwnd" and "1.5 * cwnd".
        let then = stage.elapsed.saturating_add(ack.srtt.get());
        let most = window.cwnd.saturating_add(window.cwnd / 2);
        let target = stage.curve.at(then, ack.mss).clamp(window.cwnd, most);
        // RFC 9438 4.4: "In this region, _cwnd_ MUST be incremented by (target - cwnd) / cwnd for each
        // received new ACK", in segments; 4.5 the same. Of acknowledgments that cover several, for each.
        let step = u64::from(target - window.cwnd) * u64::from(acked.min(window.cwnd));
        window.grow((step / u64::from(window.cwnd.max(1))) as u32);
    }

    /// Something was lost: what is remembered of the window that there was.
    fn remember(&mut self, window: &mut Window) {
        self.before = (self.stage.take(), self.prior);
        self.prior = window.cwnd;
        // RFC 9438 4.7: "With fast convergence, when a congestion event occurs, _W_max_ is updated as
        // follows, before the window reduction described in Section 4.6": "cwnd * (1 + beta_cubic) / 2" if
        // "cwnd < W_max and fast convergence enabled", "cwnd" otherwise.
        let converges = window.cwnd < window.w_max;
        window.w_max = if converges { Share(17, 20).of(window.cwnd) } else { window.cwnd };
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        // RFC 9438 4.10: "In general, CUBIC SHOULD use the HyStart++ slow start algorithm".
        if let Some(acked) = self.start.on_ack(window, ack) {
            self.avoid(window, acked, ack);
        }
    }

    fn on_loss_event(&mut self, window: &mut Window, loss: &Loss) {
        self.remember(window);
        window.reduce(loss, BETA);
    }

    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout) {
        self.remember(window);
        // RFC 9438 4.8: "_K_ is set to 0, and _W_max_ is set to the congestion window size at the beginning
        // of the current congestion avoidance stage."
        window.w_max = 0;
        window.time_out(timeout, BETA);
    }

    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.remember(window);
        // A loss in the same window may be undone, and never this.
        self.before.0 = None;
        // RFC 8511 3.1: "CUBIC connections benefit from beta_{ecn} of 0.85".
        window.reduce(loss, Share(17, 20));
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    fn on_idle(&mut self, window: &mut Window, initial: u32) {
        // RFC 9438 5.8: otherwise "W_cubic(_t_) might be very high after restarting from these periods."
        self.stage = None;
        window.on_idle(initial);
    }

    fn undo(&mut self, window: &mut Window, before: &Window) {
        // RFC 9438 4.9.2: if the window has outgrown what it was, the present values go on.
        if window.cwnd < before.cwnd {
            (self.stage, self.prior) = self.before;
        }
        window.restore(before);
    }
}

/// beta_cubic: RFC 9438 4.6, "SHOULD be set to 0.7".
const BETA: Share = Share(7, 10);

#[cfg(test)]
mod tests;
