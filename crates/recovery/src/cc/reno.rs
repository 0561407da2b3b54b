//! Slow start and congestion avoidance of RFC 5681: a segment more each round trip, half at a loss.

use super::hystart::HyStart;
use super::{Ack, CongestionControl, Loss, Share, Timeout, Window};

/// Reno, which counts bytes (RFC 5681 3.1, RFC 3465 2.1), with HyStart++ in its first slow start.
#[derive(Clone, Copy, Default, Debug)]
pub struct Reno {
    start: HyStart,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    counted: u32,
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let Some(acked) = self.start.on_ack(window, ack) else { return };
        // RFC 5681 3.1: "When the number of bytes acknowledged reaches cwnd, then cwnd can be incremented
        // by up to SMSS bytes."
        self.counted = self.counted.saturating_add(acked);
        if self.counted >= window.cwnd {
            self.counted = (self.counted - window.cwnd).min(window.cwnd);
            window.grow(ack.mss);
        }
    }

    fn on_loss_event(&mut self, window: &mut Window, loss: &Loss) {
        self.counted = 0;
        window.reduce(loss, HALF);
    }

    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout) {
        self.counted = 0;
        window.time_out(timeout, HALF);
    }

    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.counted = 0;
        // RFC 8511 3.1: "beta_{ecn}=0.8"
        window.reduce(loss, Share(4, 5));
        window.cwnd = window.cwnd.min(window.ssthresh);
    }
}

/// The share of a window that remains after a loss: RFC 5681 3.1, "FlightSize / 2".
const HALF: Share = Share(1, 2);

#[cfg(test)]
mod tests;
