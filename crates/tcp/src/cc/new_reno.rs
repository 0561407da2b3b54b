//! Slow start and congestion avoidance (RFC 5681) around NewReno's recovery (RFC 6582).

use super::{Ack, CongestionControl, Loss, Phase, Timeout, TimeoutKind, initial_cwnd};

/// The congestion window and its threshold, octets.
#[derive(Clone, Copy, Debug)]
pub struct NewReno {
    cwnd: u32,
    ssthresh: u32,
}

impl NewReno {
    /// The window of a fresh connection whose full segments have `mss` octets of text.
    pub fn new(mss: u32) -> Self {
        // RFC 5681 3.1: "The initial value of ssthresh SHOULD be set arbitrarily high"
        Self { cwnd: initial_cwnd(mss), ssthresh: u32::MAX }
    }

    /// RFC 6582 3.2 step 3, partial acknowledgment: "Deflate the congestion window by the amount of new
    /// data acknowledged (...) add back SMSS bytes to the congestion window"
    fn deflate(&mut self, ack: &Ack) {
        self.cwnd = self.cwnd.saturating_sub(ack.delivered).max(ack.mss);
        if ack.delivered >= ack.mss {
            self.cwnd += ack.mss;
        }
    }

    /// No window beyond what a header can announce is ever useful.
    const MOST: u32 = 1 << 30;
}

impl CongestionControl for NewReno {
    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn begin(&mut self, mss: u32) {
        *self = Self::new(mss);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let acked = match ack.phase {
            Phase::Open => ack.delivered,
            // RFC 3465 2.3: in slow start after a time-out "a TCP MUST use L=1*SMSS": one
            // acknowledgment may cover much that had arrived long before.
            Phase::AfterTimeout => ack.delivered.min(ack.mss),
            Phase::FastRecovery => return self.deflate(ack),
        };
        if acked == 0 {
            // RFC 5681 3.1: "the SYN/ACK and the acknowledgment of the SYN/ACK MUST NOT increase
            // the size of the congestion window." Nor does that of a FIN.
            return;
        }
        let growth = if self.cwnd < self.ssthresh {
            // RFC 5681 3.1: "cwnd += min (N, SMSS)"; RFC 3465 2.3 allows two segments. Deviation:
            // all that was acknowledged counts, up to ssthresh, because one acknowledgment of a
            // peer that merges segments covers 45 of them, and two a round trip would starve it.
            acked.min(self.ssthresh - self.cwnd).max(1)
        } else {
            // RFC 5681 3.1: "cwnd += SMSS*SMSS/cwnd", for each segment's worth acknowledged.
            let growth = u64::from(ack.mss) * u64::from(acked) / u64::from(self.cwnd.max(1));
            (growth as u32).max(1)
        };
        self.cwnd = self.cwnd.saturating_add(growth).min(Self::MOST);
    }

    fn on_loss_event(&mut self, loss: &Loss) {
        // RFC 5681 3.1: "ssthresh = max (FlightSize / 2, 2*SMSS)"
        self.ssthresh = (loss.in_flight / 2).max(2 * loss.mss);
        // RFC 5681 3.2 step 3: "cwnd set to ssthresh plus 3*SMSS."
        self.cwnd = self.ssthresh + 3 * loss.mss;
    }

    fn on_duplicate(&mut self, mss: u32) {
        // RFC 5681 3.2 step 4: "For each additional duplicate ACK received (after the third),
        // cwnd MUST be incremented by SMSS."
        self.cwnd = self.cwnd.saturating_add(mss);
    }

    fn on_recovered(&mut self, end: &Loss) {
        // RFC 6582 3.2 step 3, full acknowledgment: "Set cwnd to either (1) min
        // (ssthresh, max(FlightSize, SMSS) + SMSS) or (2) ssthresh"
        self.cwnd = self.ssthresh.min(end.in_flight.max(end.mss) + end.mss);
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        let Timeout { kind, in_flight, mss } = *timeout;
        // RFC 5681 3.1: "when a TCP sender detects segment loss using the retransmission timer and the
        // given segment has already been retransmitted by way of the retransmission timer at least once,
        // the value of ssthresh is held constant."
        if kind == TimeoutKind::First {
            self.on_loss_event(&Loss { in_flight, mss });
        }
        // RFC 5681 3.1: "Furthermore, upon a timeout (...) cwnd MUST be set to no more than the loss
        // window, LW, which equals 1 full-sized segment". Of a SYN, of the two rules the careful one
        // (RFC 6928 2 would forgive the first loss): "if the SYN or SYN/ACK is lost, the initial window
        // used by a sender after a correctly transmitted SYN MUST be one segment consisting of at most
        // SMSS bytes."
        self.cwnd = mss;
    }

    /// RFC 5681 4.1: "RW = min(IW,cwnd)". The threshold remembers three quarters of what there was, so
    /// that slow start leads back there (RFC 2861 3).
    fn on_idle(&mut self, mss: u32) {
        let restart_window = initial_cwnd(mss);
        if self.cwnd > restart_window {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
            self.cwnd = restart_window;
        }
    }
}

#[cfg(test)]
mod tests;
