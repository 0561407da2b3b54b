//! Segment arrival (RFC 9293 3.10.7.4): the eight checks in their order, one screen.

use core::time::Duration;

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;

use crate::conn::stamps::PAWS_TICKS;
use crate::conn::{Connection, Flags, State};
use crate::tunables::{MissingTimestamps, RstInCloseWait, RstInWindow, SynInWindow};
use crate::verdict::{CloseReason, Continue, Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    /// A segment of this connection arrived.
    pub fn on_segment(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Verdict {
        self.transfer.heard(cx);
        self.transfer.tcb.counts.on_segment(seg, cx.tick);
        let step = match self.transfer.tcb.state {
            State::SynSent => self.arrive_in_syn_sent(cx, seg),
            State::Closed | State::TimeWait => {
                cold_path();
                Done(Verdict::Drop(DropReason::Closed))
            }
            _ => self.arrive(cx, seg),
        };
        self.transfer.tcb.note_limit(cx);
        self.transfer.tcb.account_buffers(cx);
        match step {
            Done(verdict) => verdict,
            Continue(()) => Verdict::Accepted,
        }
    }

    fn arrive(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        self.check_timestamps(cx, seg)?;
        self.check_sequence(cx, seg)?;
        self.check_control(cx, seg)?;
        self.check_ack(cx, seg)?;
        self.check_urg(cx, seg);
        self.take_text(cx, seg)?;
        self.take_fin(cx, seg)
    }

    /// First: PAWS (RFC 7323 5.3).
    fn check_timestamps(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if !self.transfer.tcb.flags.has(Flags::TIMESTAMPS)
            || seg.header.flags.contains(TcpFlags::RST)
        {
            // RFC 7323 5.2: "When an <RST> segment is received, it MUST NOT be subjected to the PAWS
            // check by verifying an acceptable value in SEG.TSval"
            return Continue(());
        }
        let Some(stamps) = seg.header.options.timestamps else {
            cold_path();
            if self.transfer.tcb.is_first_syn_again(seg) {
                return Continue(());
            }
            // RFC 5961 4.2 has a SYN answered "irrespective of the sequence number".
            let syn = seg.header.flags.contains(TcpFlags::SYN);
            return match cx.tunables.missing_timestamps {
                MissingTimestamps::Take => Continue(()),
                MissingTimestamps::Drop if syn => Continue(()),
                // RFC 7323 3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD
                // silently drop the segment." Not by default: many do negotiate and then omit them.
                _ => Done(Verdict::Drop(DropReason::TimestampMissing)),
            };
        };
        let newer_by = stamps.val.wrapping_sub(self.transfer.stamps.recent).cast_signed();
        if newer_by >= -PAWS_TICKS {
            return Continue(());
        }
        self.judge_older(cx, seg, newer_by.unsigned_abs())
    }

    /// A segment whose TSval is `ticks` older than TS.Recent.
    #[cold]
    fn judge_older(&mut self, cx: &mut Context, seg: &RxSegment<'_>, ticks: u32) -> Step {
        let idle = cx.tick.millis_since(self.transfer.tcb.counts.last_ack_recv);
        if !self.transfer.stamps.says_recent(idle) {
            // Until it is renewed it tells nothing, though the connection is idle no more.
            self.transfer.stamps.recent = 0;
            return Continue(());
        }
        // RFC 7323 5.4: a peer's tick is no shorter than 1 ms.
        let late = Duration::from_millis(ticks.into());
        if late <= self.transfer.tcb.sender.rtt().rto(&cx.tunables)
            && self.transfer.tcb.is_overtaken_ack(seg)
        {
            cx.counters.paws_old_acks += 1;
            return Done(Verdict::Drop(DropReason::PawsAck));
        }
        // RFC 7323 5.3 R1: it is not acceptable; an acknowledgment is sent, the segment dropped.
        self.acknowledge_refused(cx, seg);
        Done(Verdict::Drop(DropReason::Paws))
    }

    /// First, continued: does any of it lie in the window?
    fn check_sequence(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if self.transfer.tcb.receiver.accepts(seg.header.seq, seg.len()) {
            return Continue(());
        }
        self.judge_outside(cx, seg)
    }

    /// Nothing of it lies in the window: what it may be all the same.
    #[cold]
    fn judge_outside(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let (seq, len) = (seg.header.seq, seg.len());
        if len == 0 && self.transfer.tcb.is_late_ack(seg)
            || self.transfer.tcb.is_simultaneous_syn_ack(seg)
        {
            return Continue(());
        }
        if self.transfer.tcb.is_behind_rounding(seg) {
            self.acknowledge_refused(cx, seg);
            return Continue(());
        }
        if self.transfer.tcb.is_fin_again(seg) {
            self.on_fin_again(cx, seg)?;
            return Done(Verdict::Drop(DropReason::OldData));
        }
        if seg.header.flags.contains(TcpFlags::RST) {
            // RFC 5961 3.2: "If the RST bit is set and the sequence number is outside the current
            // receive window, silently drop the segment."
            return Done(Verdict::Drop(DropReason::ResetOutsideWindow));
        }
        if self.transfer.tcb.is_first_syn_again(seg) {
            self.transfer.tcb.on_first_syn_again(seg);
            return Done(Verdict::Accepted);
        }
        if seg.header.flags.contains(TcpFlags::SYN) {
            return self.challenge_syn(cx, seg);
        }
        // RFC 9293 3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should
        // be sent in reply"
        self.acknowledge_refused(cx, seg);
        let nxt = self.transfer.tcb.receiver.nxt();
        let old = seq.before(nxt) && (seq + len).at_or_before(nxt);
        if old {
            self.transfer.tcb.note_duplicate(
                cx,
                seg.text_seq(),
                seg.text_seq() + seg.payload.len(),
            );
        }
        Done(Verdict::Drop(if old { DropReason::OldData } else { DropReason::OverWindow }))
    }

    /// It lies before the window: RFC 9293 3.10.7.4 would have it answered and not looked at, so that
    /// only the retransmission of our FIN would be acknowledged by a segment that is. For a window that
    /// is closed it says: "special allowance should be made to accept valid ACKs". No more comes of
    /// this stream, either.
    #[cold]
    fn on_fin_again(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        self.transfer.tcb.receiver.owe_ack();
        let step = self.check_ack(cx, seg);
        if !matches!(self.transfer.tcb.state, State::TimeWait | State::Closed) {
            return step;
        }
        // The record is over, and its caller is to answer for it.
        let ack = Reply {
            seq: self.transfer.tcb.sender.seq().max,
            ack: self.transfer.tcb.receiver.nxt(),
            flags: TcpFlags::ACK,
            window: self.transfer.tcb.receiver.raw_window(),
            timestamps: self.transfer.own_timestamps(cx),
        };
        Done(Verdict::Reply(ack, DropReason::OldData))
    }

    /// Second and fourth: RST and SYN (RFC 5961 3.2, 4.2); and what tells of routers' marks. The third, security, is not
    /// implemented by anyone.
    // One comparison for all, as nearly no segment has any.
    fn check_control(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let rare = TcpFlags::RST | TcpFlags::SYN | TcpFlags::ECE;
        if !seg.header.flags.intersects(rare) && !self.transfer.tcb.flags.has(Flags::ACCURATE) {
            return Continue(());
        }
        self.judge_control(cx, seg)
    }

    #[cold]
    fn judge_control(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let flags = seg.header.flags;
        match () {
            () if flags.is_rst() => return self.judge_rst(cx, seg),
            () if flags.is_syn() => return self.judge_syn(cx, seg),
            // Before the acknowledgment that brings it: it concerns all that is in flight until then.
            () if self.transfer.tcb.flags.has(Flags::ACCURATE) => self.take_accurate_ecn(cx, seg),
            () => self.transfer.tcb.on_echo(cx, seg),
        }
        Continue(())
    }

    /// A reset: does it end the connection?
    #[cold]
    fn judge_rst(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if seg.header.seq.before(self.transfer.tcb.receiver.nxt()) {
            // Some of its text lies in the window. RFC 5961 3.2: "If the RST bit is set and the
            // sequence number is outside the current receive window, silently drop the segment."
            return Done(Verdict::Drop(DropReason::ResetOutsideWindow));
        }
        let any = cx.tunables.rst_in_window == RstInWindow::Any;
        if seg.header.seq != self.transfer.tcb.receiver.nxt() && !any {
            // RFC 5961 3.2: "If the RST bit is set and the sequence number does not exactly match
            // the next expected sequence value, yet is within the current receive window
            // (RCV.NXT < SEG.SEQ < RCV.NXT+RCV.WND), TCP MUST send an acknowledgment (challenge
            // ACK)"
            self.challenge(cx);
            return Done(Verdict::Drop(DropReason::ResetChallenged));
        }
        let reason = match self.transfer.tcb.state {
            _ if self.transfer.tcb.is_early() => CloseReason::Reset,
            State::SynReceived => CloseReason::Refused,
            // The peer takes nothing that this side could still send.
            State::CloseWait if cx.tunables.rst_close_wait == RstInCloseWait::Pipe => {
                CloseReason::BrokenPipe
            }
            // In CLOSING and LAST-ACK, too: RFC 9293 3.10.7.4 has them only "enter the CLOSED state",
            // but without the acknowledgment of our FIN it is unknown if the peer read all.
            _ => CloseReason::Reset,
        };
        self.count_reset(cx);
        self.end(cx, reason);
        Done(Verdict::Closed(reason))
    }

    /// A reset, or what counts as one, is about to end this.
    fn count_reset(&self, cx: &mut Context) {
        match self.transfer.tcb.state {
            _ if self.transfer.tcb.is_early() => cx.counters.embryonic_resets += 1,
            // tcpEstabResets of RFC 4022 counts those that come from these two alone.
            State::Established | State::CloseWait => cx.counters.estab_resets += 1,
            _ => {}
        }
    }

    /// A SYN for a connection that had one.
    #[cold]
    fn judge_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if self.transfer.tcb.is_simultaneous_syn_ack(seg) {
            return Continue(());
        }
        if self.transfer.tcb.is_first_syn_again(seg) {
            self.transfer.tcb.on_first_syn_again(seg);
            return Done(Verdict::Accepted);
        }
        if cx.tunables.syn_in_window == SynInWindow::Reset
            && let Some(reset) = self.transfer.judge_reset(cx)
        {
            self.count_reset(cx);
            self.end(cx, CloseReason::Reset);
            return Done(Verdict::Reply(reset, DropReason::SynChallenged));
        }
        self.challenge_syn(cx, seg)
    }

    /// RFC 5961 4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK
    /// (also referred to as challenge ACK) to the remote peer".
    fn challenge_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        self.note_syn_ack_again(seg);
        self.challenge(cx);
        Done(Verdict::Drop(DropReason::SynChallenged))
    }
}
