//! What to do about duplicate acknowledgments: limited transmit (RFC 3042), fast retransmit
//! (RFC 5681 3.2) and NewReno's recovery (RFC 6582).

use whimbrel_wire::SeqNum;

use crate::cc::{Control, Loss, Phase, Timeout, TimeoutKind};

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

/// What a duplicate or partial acknowledgment calls for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryAction {
    /// Nothing is to be sent again for it.
    Wait,
    /// Send the segment at SND.UNA again.
    Retransmit,
}

/// What loss recovery is doing, in the words of Linux' `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    /// No duplicate acknowledgment came since the last new one.
    Open,
    /// Duplicate acknowledgments came, too few to act upon.
    Disorder,
    /// Fast recovery (RFC 6582): a loss is being repaired without a time-out.
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

    /// What it is doing, as the congestion control is told.
    #[inline]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// A duplicate acknowledgment of `una` arrived while `at` was in flight.
    pub fn on_duplicate(
        &mut self,
        cc: &mut Control<'_>,
        una: SeqNum,
        at: Flight,
    ) -> RecoveryAction {
        self.dup_acks = self.dup_acks.saturating_add(1);
        match self.phase {
            Phase::FastRecovery => {
                cc.on_duplicate(at.mss);
                RecoveryAction::Wait
            }
            // RFC 6582 3.2 step 2: "the Cumulative Acknowledgment field covers more than recover"
            Phase::Open if u32::from(self.dup_acks) == DUP_THRESH && una.after(self.recover) => {
                self.enter(cc, at)
            }
            Phase::Open | Phase::AfterTimeout => RecoveryAction::Wait,
        }
    }

    /// An acknowledgment of `una` names `sacked` octets beyond it as held, while `at` is in flight: what
    /// several duplicates would have told may have come in this one (some were lost, or merged by a
    /// device).
    pub fn on_sacked(
        &mut self,
        cc: &mut Control<'_>,
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

    fn enter(&mut self, cc: &mut Control<'_>, at: Flight) -> RecoveryAction {
        self.phase = Phase::FastRecovery;
        self.recover = at.max;
        cc.on_loss_event(&at.loss());
        RecoveryAction::Retransmit
    }

    /// Something new is acknowledged, up to `una`; `at` is in flight still. The congestion control has
    /// heard of it.
    #[inline]
    pub fn on_new_ack(&mut self, cc: &mut Control<'_>, una: SeqNum, at: Flight) -> RecoveryAction {
        (self.dup_acks, self.sacked) = (0, 0);
        match self.phase {
            Phase::Open if una.after(self.recover) => {
                // Follow, one behind: left where it was, it would seem to lie ahead once half
                // the circle was sent without a loss, and the next loss would wait for RTO.
                self.recover = una - 1;
            }
            Phase::AfterTimeout if una.at_or_after(self.recover) => self.phase = Phase::Open,
            Phase::FastRecovery if una.at_or_after(self.recover) => {
                // RFC 6582 3.2 step 3: a full acknowledgment.
                cc.on_recovered(&at.loss());
                self.phase = Phase::Open;
            }
            // RFC 6582 3.2 step 3, partial acknowledgment: "retransmit the first unacknowledged
            // segment."
            Phase::FastRecovery => return RecoveryAction::Retransmit,
            Phase::Open | Phase::AfterTimeout => {}
        }
        RecoveryAction::Wait
    }

    /// The retransmission timer ran out, for the `attempt`th time for what is in flight.
    pub fn on_timeout(&mut self, cc: Option<Control<'_>>, attempt: u8, at: Flight) {
        let kind = if attempt <= 1 { TimeoutKind::First } else { TimeoutKind::Repeated };
        if let Some(mut cc) = cc {
            cc.on_rto(&Timeout { kind, in_flight: at.octets, mss: at.mss });
        }
        // RFC 6582 3.2 step 4: "After a retransmit timeout, record the highest sequence number transmitted
        // in the variable recover, and exit the fast recovery procedure if applicable."
        self.await_all(at);
    }

    /// What is in flight was too big for the path and is sent again: a loss without congestion.
    /// Duplicate acknowledgments of what did arrive say nothing until all of it is acknowledged.
    pub fn on_path_mtu(&mut self, at: Flight) {
        self.await_all(at);
    }

    /// All that is in flight is sent again, and nothing else is recovered until it is acknowledged.
    fn await_all(&mut self, at: Flight) {
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
    /// SND.MAX: one past the highest number ever sent.
    pub max: SeqNum,
    /// Octets of text in a full segment.
    pub mss: u32,
}

impl Flight {
    /// The same, as a congestion control is told.
    const fn loss(self) -> Loss {
        Loss { in_flight: self.octets, mss: self.mss }
    }
}

/// RFC 5681 3.2: the third duplicate acknowledgment tells of a loss.
const DUP_THRESH: u32 = 3;

#[cfg(test)]
mod tests;
