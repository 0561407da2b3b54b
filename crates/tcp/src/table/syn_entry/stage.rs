//! The stage of a SYN: answered, or waiting for a verdict: where any destination is listened for, an application
//! decides about each SYN before anything is sent.

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{RawWindow, SeqNum};

use super::{SynEntry, SynStep};
use crate::{DropReason, Reply, RxSegment};

/// The decider that had a SYN answered, and what the peer has seen of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SynStage {
    /// Its listener, at once.
    Answered,
    /// So, and the peer repeated its SYN since.
    Repeated,
    /// None: the decider has not heard of it.
    Unheard,
    /// None yet: the decider was asked.
    Asked,
    /// The decider said yes: there is an answer now.
    Admitted,
    /// So, and the peer repeated its SYN since.
    AdmittedRepeated,
}

impl SynStage {
    /// The peer repeated its SYN. Before there was any answer this says nothing of round trips.
    pub(super) const fn on_repeated(&mut self) {
        *self = match *self {
            Self::Answered | Self::Repeated => Self::Repeated,
            Self::Admitted | Self::AdmittedRepeated => Self::AdmittedRepeated,
            held @ (Self::Unheard | Self::Asked) => held,
        };
    }

    /// True if the answer went out more than once because the peer asked for it.
    pub(super) const fn is_repeated(self) -> bool {
        matches!(self, Self::Repeated | Self::AdmittedRepeated)
    }
}

/// An entry that a verdict decides about.
impl SynEntry {
    /// Returns the entry, unanswered until it is admitted.
    #[must_use]
    pub const fn into_held(mut self) -> Self {
        self.stage = SynStage::Unheard;
        self
    }

    /// True if it waits for a verdict, and nothing was sent.
    #[inline]
    pub const fn is_held(&self) -> bool {
        matches!(self.stage, SynStage::Unheard | SynStage::Asked)
    }

    /// True if a verdict decides, or decided, about it.
    #[inline]
    pub const fn is_by_verdict(&self) -> bool {
        !matches!(self.stage, SynStage::Answered | SynStage::Repeated)
    }

    /// True if the decider has heard of it.
    pub const fn was_asked(&self) -> bool {
        matches!(self.stage, SynStage::Asked | SynStage::Admitted | SynStage::AdmittedRepeated)
    }

    /// The decider is asked.
    pub(in crate::table) const fn on_asked(&mut self) {
        self.stage = SynStage::Asked;
    }

    /// The verdict is to answer it.
    pub(in crate::table) const fn on_admitted(&mut self) {
        self.stage = SynStage::Admitted;
    }

    /// Judges a segment for a SYN that was not answered: RFC 9293 3.10.7.2, as if its
    /// listener were all there is, but that this one SYN is known. Never a challenge, which would show what
    /// the verdict has yet to decide: that a listener is there.
    pub fn judge_held(&self, seg: &RxSegment<'_>) -> SynStep {
        let flags = seg.header.flags;
        if self.is_repeated_syn(seg) {
            return SynStep::Repeat;
        }
        if flags.is_rst() {
            // Nothing was announced that a number could lie in: the one that RFC 5961 3.2 asks for.
            let exact = seg.header.seq == self.rcv_nxt();
            return if exact {
                SynStep::Reset
            } else {
                SynStep::Drop(DropReason::ResetOutsideWindow)
            };
        }
        if flags.is_ack() {
            // RFC 9293 3.10.7.2: "Any acknowledgment is bad if it arrives on a connection still in
            // the LISTEN state. An acceptable reset segment should be formed".
            return SynStep::Refuse(Reply::reset_for(seg), DropReason::UnacceptableAck);
        }
        SynStep::Drop(if flags.is_syn() { DropReason::SynChallenged } else { DropReason::NoAck })
    }

    /// The reply to a SYN without a listener: what a closed port answers.
    pub fn refusal(&self) -> Reply {
        // RFC 9293 3.10.7.1: "<SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>". Text that came with the SYN
        // was not kept; SEG.ACK is acceptable without it, too.
        Reply {
            seq: SeqNum::new(0),
            ack: self.rcv_nxt(),
            flags: TcpFlags::RST | TcpFlags::ACK,
            window: RawWindow::new(0),
            timestamps: None,
        }
    }
}
