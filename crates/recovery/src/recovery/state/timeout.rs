//! Silence: the reordering timer (RFC 8985 6.2) and the retransmission timer ran out.

use super::frto::Frto;
use super::{State, loss, tell_losses};
use crate::cc::{Control, Loss, Phase, Timeout, TimeoutKind};
use crate::flight::Flight;
use crate::recovery::{Path, RecoveryEvents};

impl State {
    /// The reordering timer ran out: what is missing is old enough to be judged (RFC 8985 6.2).
    pub(in crate::recovery) fn on_reordering_timeout(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        path: &Path,
    ) -> RecoveryEvents {
        let lost = self.detect_loss(flight, path) && !self.excuse_mtu_probe(flight);
        tell_losses(flight, control, path);
        if lost && self.phase == Phase::Open {
            self.events.sack_recovery = true;
            self.begin(flight, control, path, 0);
        }
        if self.phase == Phase::FastRecovery && !control.sets_cwnd_in_recovery() {
            let (pipe, ssthresh) = (self.pipe(flight), control.window.ssthresh);
            control.window.cwnd = self.prr.on_ack(0, pipe, ssthresh, false);
        }
        self.take_events()
    }

    /// The retransmission timer ran out, for the `attempt`th time in a row.
    pub(in crate::recovery) fn on_timeout(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        path: &Path,
        attempt: u8,
    ) {
        let is_new = self.phase == Phase::Open;
        self.time_mtu_probe_out(flight);
        let window = self.reordering(flight, path);
        let until = self.rack.timed_out_until(path.now, &window);
        if is_new {
            self.set_undo(flight, control);
        } else if self.phase == Phase::FastRecovery {
            self.undo = None;
        }
        // RFC 3168 6.1.2: "the TCP source should not decrease the slow-start threshold, ssthresh, if it has
        // been decreased within the last round trip time."
        let is_reduced = self.is_reduced(flight);
        let kind =
            if attempt <= 1 && !is_reduced { TimeoutKind::First } else { TimeoutKind::Repeated };
        let Loss { in_flight, mss } = loss(flight, control, path.mss);
        control.on_rto(&Timeout { kind, in_flight, mss });
        let repair_end = flight.first_segment().end;
        flight.lose_on_timeout(until);
        tell_losses(flight, control, path);
        // RFC 6582 3.2 step 4: "After a retransmit timeout, record the highest sequence number transmitted
        // in the variable recover, and exit the fast recovery procedure if applicable."
        self.phase = Phase::AfterTimeout;
        self.recover = Some(flight.end());
        (self.reduced, self.rate_limited) = (None, None);
        // RFC 5682 3.1: "This algorithm SHOULD NOT be applied if the TCP sender is already in loss
        // recovery when a retransmission timeout occurs", but "If the retransmission timer expires again
        // during the execution of the SACK-enhanced F-RTO algorithm, the TCP sender MUST re-start the
        // algorithm processing from step 1."
        let again = attempt > 1 && self.frto.is_some();
        let recover = flight.end();
        self.frto = (is_new || again).then_some(Frto { recover, repair_end, is_probing: false });
        (self.prefers_new, self.sacks, self.dup_acks, self.probe) = (false, 0, 0, None);
        self.rack.stop();
    }
}
