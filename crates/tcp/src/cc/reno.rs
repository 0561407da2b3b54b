//! Slow start and congestion avoidance (RFC 5681) around NewReno's recovery (RFC 6582).

use super::{Ack, CongestionControl, Loss, Phase, Timeout, TimeoutKind, Window};

/// RFC 5681 with RFC 6582: it keeps nothing beside the window.
#[derive(Clone, Copy, Debug)]
pub struct NewReno;

impl CongestionControl for NewReno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let acked = match ack.phase {
            Phase::Open => ack.delivered,
            // RFC 3465 2.3: in slow start after a time-out "a TCP MUST use L=1*SMSS": one
            // acknowledgment may cover much that had arrived long before.
            Phase::AfterTimeout => ack.delivered.min(ack.mss),
            // The window is recovery's.
            Phase::FastRecovery => return,
        };
        if acked == 0 {
            // RFC 5681 3.1: "the SYN/ACK and the acknowledgment of the SYN/ACK MUST NOT increase
            // the size of the congestion window." Nor does that of a FIN.
            return;
        }
        let growth = if window.cwnd < window.ssthresh {
            // RFC 5681 3.1: "cwnd += min (N, SMSS)"; RFC 3465 2.3 allows two segments. Deviation:
            // all that was acknowledged counts, up to ssthresh, because one acknowledgment of a
            // peer that merges segments covers 45 of them, and two a round trip would starve it.
            acked.min(window.ssthresh - window.cwnd).max(1)
        } else {
            // RFC 5681 3.1: "cwnd += SMSS*SMSS/cwnd", for each segment's worth acknowledged.
            let growth = u64::from(ack.mss) * u64::from(acked) / u64::from(window.cwnd.max(1));
            (growth as u32).max(1)
        };
        window.cwnd = window.cwnd.saturating_add(growth).min(Window::MOST);
    }

    fn on_loss_event(&mut self, window: &mut Window, loss: &Loss) {
        // RFC 5681 3.1: "ssthresh = max (FlightSize / 2, 2*SMSS)"
        window.ssthresh = (loss.in_flight / 2).max(2 * loss.mss);
    }

    fn on_recovered(&mut self, window: &mut Window, end: &Loss) {
        // RFC 5681 3.2 step 6: "When the next ACK arrives that acknowledges previously unacknowledged data,
        // a TCP MUST set cwnd to ssthresh". PRR has kept what is in flight near it.
        window.cwnd = window.ssthresh.max(end.mss);
    }

    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout) {
        let Timeout { kind, in_flight, mss } = *timeout;
        // RFC 5681 3.1: "when a TCP sender detects segment loss using the retransmission timer and the
        // given segment has already been retransmitted by way of the retransmission timer at least once,
        // the value of ssthresh is held constant."
        if kind == TimeoutKind::First {
            self.on_loss_event(window, &Loss { in_flight, mss });
        }
        // RFC 5681 3.1: "Furthermore, upon a timeout (...) cwnd MUST be set to no more than the loss
        // window, LW, which equals 1 full-sized segment".
        window.cwnd = mss;
    }
}

#[cfg(test)]
mod tests;
