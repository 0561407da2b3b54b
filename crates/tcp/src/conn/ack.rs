//! Fifth: the ACK field (RFC 9293 3.10.7.4, RFC 5961 5.2).

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;

use crate::conn::{Connection, Flags, State};
use crate::send::AckPlace;
use crate::verdict::{CloseReason, Continue, Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    // Always: nearly every segment comes here, and its fields are at hand.
    #[inline(always)]
    pub(super) fn check_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if !seg.header.flags.contains(TcpFlags::ACK) {
            cold_path();
            // RFC 9293 3.10.7.4: "if the ACK bit is off, drop the segment and return"
            return Done(Verdict::Drop(DropReason::NoAck));
        }
        if self.transfer.tcb.state == State::SynReceived {
            cold_path();
            self.complete_simultaneous_open(cx, seg)?;
        }
        self.transfer.tcb.note_ack(cx, seg);
        match self.transfer.tcb.sender.seq().judge_ack(seg.header.ack) {
            AckPlace::New(numbers) => {
                self.transfer.note_timestamp(seg);
                self.take_new_ack(cx, seg, numbers)
            }
            AckPlace::Current => {
                self.transfer.note_timestamp(seg);
                self.transfer.on_current_ack(cx, seg);
                Continue(())
            }
            _ => self.on_other_ack(cx, seg),
        }
    }

    /// It lies before SND.UNA, or beyond what was sent.
    #[inline(never)]
    fn on_other_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        match self.transfer.tcb.judge_ack(seg.header.ack) {
            AckPlace::TooOld => {
                // RFC 5961 5.2: "All incoming segments whose ACK value doesn't satisfy the above
                // condition MUST be discarded and an ACK sent back."
                self.challenge(cx);
                Done(Verdict::Drop(DropReason::TooOldAck))
            }
            AckPlace::Unsent => {
                // RFC 9293 3.10.7.4: "If the ACK acks something not yet sent (SEG.ACK > SND.NXT),
                // then send an ACK, drop the segment, and return." As often as a challenge (RFC 5961 7).
                self.challenge(cx);
                Done(Verdict::Drop(DropReason::AckUnsentData))
            }
            // RFC 9293 3.10.7.4: "If the ACK is a duplicate (SEG.ACK =< SND.UNA), it can be
            // ignored."
            _ => {
                self.transfer.note_timestamp(seg);
                Continue(())
            }
        }
    }

    /// SYN-RECEIVED: the ACK of our SYN establishes the connection.
    fn complete_simultaneous_open(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        // RFC 9293 3.10.7.4: "If SND.UNA < SEG.ACK =< SND.NXT, then enter ESTABLISHED state (...)
        // If the segment acknowledgment is not acceptable, form a reset segment
        // <SEQ=SEG.ACK><CTL=RST> and send it."
        if !matches!(self.transfer.tcb.sender.seq().judge_ack(seg.header.ack), AckPlace::New(_)) {
            if self.transfer.tcb.sender.fin_sent() {
                // RFC 9293 3.10.4 calls it FIN-WAIT-1, where this is answered and dropped.
                self.challenge(cx);
                return Done(Verdict::Drop(DropReason::UnacceptableAck));
            }
            let reset = Reply::reset_for(seg).stamped(self.transfer.own_timestamps(cx));
            return Done(Verdict::Reply(reset, DropReason::UnacceptableAck));
        }
        if seg.header.flags.contains(TcpFlags::SYN) && self.transfer.tcb.flags.has(Flags::ECN) {
            self.transfer.tcb.negotiate_ecn(seg);
        }
        self.transfer.establish();
        self.transfer.tcb.take_queued(cx);
        if self.transfer.tcb.is_early() {
            self.transfer.complete_early(cx);
        }
        Continue(())
    }

    /// Something new is acknowledged.
    // Always: its outcome is for the caller, and would be handed on through memory.
    #[inline(always)]
    pub(super) fn take_new_ack(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        numbers: u32,
    ) -> Step {
        if self.transfer.on_new_ack(cx, seg, numbers) {
            self.on_fin_acked(cx)
        } else {
            Continue(())
        }
    }

    /// Our FIN is acknowledged.
    fn on_fin_acked(&mut self, cx: &mut Context) -> Step {
        match self.transfer.tcb.state {
            State::FinWait1 => {
                self.transfer.tcb.state = State::FinWait2;
                self.transfer.start_fin_wait_2(cx);
                Continue(())
            }
            // RFC 9293 3.10.7.4, CLOSING: "if the ACK acknowledges our FIN, then enter the
            // TIME-WAIT state"
            State::Closing => {
                self.enter_time_wait(cx);
                Done(Verdict::Accepted)
            }
            State::LastAck => {
                self.end(cx, CloseReason::Finished);
                Done(Verdict::Closed(CloseReason::Finished))
            }
            _ => Continue(()),
        }
    }
}
