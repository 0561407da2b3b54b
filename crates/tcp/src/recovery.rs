//! What to do about duplicate acknowledgments: limited transmit (RFC 3042), fast retransmit
//! (RFC 5681 3.2) and NewReno's recovery (RFC 6582).

use whimbrel_wire::SeqNum;

use crate::cc::NewReno;

/// The state of loss recovery.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    phase: Phase,
    dup_acks: u8,
    /// Full segments beyond SND.UNA that the peer named as held, rounded up.
    sacked: u16,
    /// SND.MAX when the present or last recovery began.
    recover: SeqNum,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    FastRecovery,
    AfterTimeout,
}

/// What a duplicate or partial acknowledgment calls for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryAction {
    /// Nothing.
    Wait,
    /// Send the segment at SND.UNA again.
    Retransmit,
}

/// What loss recovery is doing, in the words of Linux' `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    /// Nothing is amiss.
    Open,
    /// Duplicate acknowledgments came, too few to act upon.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// A retransmission time-out is being repaired.
    Loss,
}

impl Recovery {
    /// What it is doing.
    pub const fn ca_state(&self) -> CaState {
        match self.phase {
            Phase::Open if self.dup_acks == 0 => CaState::Open,
            Phase::Open => CaState::Disorder,
            Phase::FastRecovery => CaState::Recovery,
            Phase::AfterTimeout => CaState::Loss,
        }
    }

    /// Nothing lost; `iss` is a number from which none was lost.
    pub const fn new(iss: SeqNum) -> Self {
        Self { phase: Phase::Open, dup_acks: 0, sacked: 0, recover: iss }
    }

    /// Of what is in flight from `una` on, the numbers that are taken to be lost.
    pub fn lost(&self, una: SeqNum, at: Flight) -> u32 {
        match self.phase {
            Phase::Open => 0,
            // NewReno knows of one hole at a time.
            Phase::FastRecovery => at.octets.min(at.mss),
            Phase::AfterTimeout => self.recover.distance_from(una).max(0).unsigned_abs(),
        }
    }

    /// How many full segments beyond SND.UNA the peer is known to hold: as one acknowledgment named
    /// them, or as many as duplicates came.
    pub fn sacked(&self) -> u16 {
        self.sacked.max(u16::from(self.dup_acks))
    }

    /// Octets beyond cwnd that may be sent: one segment for each of the first two duplicates.
    pub fn limited_transmit(&self, mss: u32) -> u32 {
        // RFC 3042 2: "The amount of outstanding data would remain less than or equal to the
        // congestion window plus 2 segments."
        match self.phase {
            Phase::Open => u32::from(self.dup_acks.min(2)) * mss,
            Phase::FastRecovery | Phase::AfterTimeout => 0,
        }
    }

    /// A duplicate acknowledgment of `una` arrived, `max` being the highest number sent.
    pub fn on_duplicate(&mut self, cc: &mut NewReno, una: SeqNum, at: Flight) -> RecoveryAction {
        self.dup_acks = self.dup_acks.saturating_add(1);
        match self.phase {
            Phase::FastRecovery => {
                // RFC 5681 3.2 step 4: "For each additional duplicate ACK received (after the third),
                // cwnd MUST be incremented by SMSS."
                cc.cwnd = cc.cwnd.saturating_add(at.mss);
                RecoveryAction::Wait
            }
            // RFC 6582 3.2 step 2: "the Cumulative Acknowledgment field covers more than recover"
            Phase::Open if u32::from(self.dup_acks) == DUP_THRESH && una.after(self.recover) => {
                self.enter(cc, at)
            }
            Phase::Open | Phase::AfterTimeout => RecoveryAction::Wait,
        }
    }

    /// An acknowledgment of `una` names `sacked` octets beyond it as held: what several duplicates
    /// would have told may have come in this one (some were lost, or merged by a device).
    pub fn on_sacked(
        &mut self,
        cc: &mut NewReno,
        una: SeqNum,
        sacked: u32,
        at: Flight,
    ) -> RecoveryAction {
        self.sacked =
            self.sacked.max(sacked.div_ceil(at.mss.max(1)).min(u32::from(u16::MAX)) as u16);
        // RFC 6675 4, IsLost: true when "more than (DupThresh - 1) * SMSS bytes with sequence
        // numbers greater than 'SeqNum' have been SACKed"
        let lost = sacked > (DUP_THRESH - 1) * at.mss;
        // RFC 6675 5.1: after a time-out no recovery begins until what was out then is acknowledged.
        if self.phase != Phase::Open || !lost || una.before(self.recover) {
            return RecoveryAction::Wait;
        }
        self.enter(cc, at)
    }

    fn enter(&mut self, cc: &mut NewReno, at: Flight) -> RecoveryAction {
        self.phase = Phase::FastRecovery;
        self.recover = at.max;
        let ssthresh = cc.on_loss(at.octets, at.mss);
        cc.cwnd = ssthresh + DUP_THRESH * at.mss;
        RecoveryAction::Retransmit
    }

    /// New data up to `ack` was acknowledged, `acked` octets of it; afterwards `at` is in flight.
    pub fn on_new_ack(
        &mut self,
        cc: &mut NewReno,
        ack: SeqNum,
        acked: u32,
        at: Flight,
    ) -> RecoveryAction {
        (self.dup_acks, self.sacked) = (0, 0);
        match self.phase {
            Phase::Open => {
                if ack.after(self.recover) {
                    // Follow, one behind: left where it was, it would seem to lie ahead once half
                    // the circle was sent without a loss, and the next loss would wait for RTO.
                    self.recover = ack - 1;
                }
                cc.on_ack(acked, at.mss);
            }
            Phase::AfterTimeout => {
                if ack.at_or_after(self.recover) {
                    self.phase = Phase::Open;
                }
                // RFC 3465 2.3: in slow start after a time-out "a TCP MUST use L=1*SMSS": one
                // acknowledgment may cover much that had arrived long before.
                cc.on_ack(acked.min(at.mss), at.mss);
            }
            Phase::FastRecovery if ack.at_or_after(self.recover) => {
                // RFC 6582 3.2 step 3, full acknowledgment: "Set cwnd to either (1) min
                // (ssthresh, max(FlightSize, SMSS) + SMSS) or (2) ssthresh"
                cc.cwnd = cc.ssthresh.min(at.octets.max(at.mss) + at.mss);
                self.phase = Phase::Open;
            }
            Phase::FastRecovery => {
                // RFC 6582 3.2 step 3, partial acknowledgment: "retransmit the first
                // unacknowledged segment. Deflate the congestion window by the amount of new data
                // acknowledged (...) add back SMSS bytes to the congestion window"
                cc.cwnd = cc.cwnd.saturating_sub(acked).max(at.mss);
                if acked >= at.mss {
                    cc.cwnd += at.mss;
                }
                return RecoveryAction::Retransmit;
            }
        }
        RecoveryAction::Wait
    }

    /// The retransmission timer ran out; `first` if it did so for the first time for this data.
    pub fn on_timeout(&mut self, cc: &mut NewReno, attempt: u8, at: Flight) {
        if attempt <= 1 {
            cc.on_timeout(at.octets, at.mss);
        } else {
            cc.collapse(at.mss);
        }
        // RFC 6582 3.2 step 4: "After a retransmit timeout, record the highest sequence number transmitted
        // in the variable recover, and exit the fast recovery procedure if applicable."
        self.phase = Phase::AfterTimeout;
        self.recover = at.max;
        self.dup_acks = 0;
    }
}

impl Recovery {
    /// What is in flight was too big for the path and is sent again: a loss without congestion.
    /// Duplicate acknowledgments of what did arrive say nothing until all of it is acknowledged.
    pub fn on_path_mtu(&mut self, at: Flight) {
        self.phase = Phase::AfterTimeout;
        self.recover = at.max;
        self.dup_acks = 0;
    }
}

/// What is in flight.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Octets sent and not acknowledged.
    pub octets: u32,
    /// SND.MAX.
    pub max: SeqNum,
    /// Octets of text in a full segment.
    pub mss: u32,
}

/// RFC 5681 3.2: the third duplicate acknowledgment tells of a loss.
const DUP_THRESH: u32 = 3;

#[cfg(test)]
mod tests;
