//! Slow start and congestion avoidance (RFC 5681), the initial window of RFC 6928.

use super::initial_cwnd;

/// The congestion window and its threshold, octets.
#[derive(Clone, Copy, Debug)]
pub struct NewReno {
    /// cwnd.
    pub cwnd: u32,
    /// ssthresh.
    pub ssthresh: u32,
}

impl NewReno {
    /// The window of a fresh connection.
    pub fn new(mss: u32) -> Self {
        // RFC 5681 3.1: "The initial value of ssthresh SHOULD be set arbitrarily high"
        Self { cwnd: initial_cwnd(mss), ssthresh: u32::MAX }
    }

    /// `acked` octets of new data were acknowledged outside recovery.
    pub fn on_ack(&mut self, acked: u32, mss: u32) {
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
            let growth = u64::from(mss) * u64::from(acked) / u64::from(self.cwnd.max(1));
            (growth as u32).max(1)
        };
        self.cwnd = self.cwnd.saturating_add(growth).min(Self::MOST);
    }

    /// A segment was lost while `flight` octets were out; returns the new threshold.
    pub fn on_loss(&mut self, flight: u32, mss: u32) -> u32 {
        // RFC 5681 3.1: "ssthresh = max (FlightSize / 2, 2*SMSS)"
        self.ssthresh = (flight / 2).max(2 * mss);
        self.ssthresh
    }

    /// The retransmission timer ran out for the first time for this data.
    pub fn on_timeout(&mut self, flight: u32, mss: u32) {
        self.on_loss(flight, mss);
        self.collapse(mss);
    }

    /// Transmission begins anew after a pause. RFC 5681 4.1: "RW = min(IW,cwnd)". The threshold
    /// remembers three quarters of what there was, so that slow start leads back there (RFC 2861
    /// 3).
    pub fn restart(&mut self, mss: u32) {
        let restart_window = Self::new(mss).cwnd;
        if self.cwnd > restart_window {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
            self.cwnd = restart_window;
        }
    }

    /// RFC 5681 3.1: "Furthermore, upon a timeout (...) cwnd MUST be set to no more than the loss
    /// window, LW, which equals 1 full-sized segment"
    pub fn collapse(&mut self, mss: u32) {
        self.cwnd = mss;
    }

    /// No window beyond what a header can announce is ever useful.
    const MOST: u32 = 1 << 30;
}

#[cfg(test)]
mod tests;
