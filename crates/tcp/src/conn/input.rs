//! Segment arrival (RFC 9293 3.10.7.4): the eight checks in their order, one screen.

use core::time::Duration;

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;

use super::{Connection, Flags, Signals, Stamps, State};
use crate::send::AckPlace;
use crate::tunables::{MissingTimestamps, ReceiveWindow, RstInCloseWait, RstInWindow, SynInWindow};
use crate::verdict::{CloseReason, Continue, Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    /// A segment of this connection arrived.
    pub fn on_segment(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Verdict {
        self.heard(cx);
        self.stats.tally.on_segment(seg, cx.tick);
        let step = match self.state {
            State::SynSent => self.arrive_in_syn_sent(cx, seg),
            State::Closed | State::TimeWait => {
                cold_path();
                Done(Verdict::Drop(DropReason::Closed))
            }
            _ => self.arrive(cx, seg),
        };
        self.note_limit(cx);
        self.account_buffers(cx);
        match step {
            Done(verdict) => verdict,
            Continue(()) => Verdict::Accepted,
        }
    }

    fn arrive(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        self.check_timestamps(cx, seg)?;
        self.check_sequence(cx, seg)?;
        self.check_rst(cx, seg)?;
        self.check_syn(cx, seg)?;
        self.check_ack(cx, seg)?;
        self.check_urg(cx, seg);
        self.take_text(cx, seg)?;
        self.take_fin(cx, seg)
    }

    /// First: PAWS (RFC 7323 5.3).
    fn check_timestamps(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if !self.flags.has(Flags::TIMESTAMPS) || seg.header.flags.contains(TcpFlags::RST) {
            // RFC 7323 5.2: "When an <RST> segment is received, it MUST NOT be subjected to the PAWS
            // check by verifying an acceptable value in SEG.TSval"
            return Continue(());
        }
        let Some(stamps) = seg.header.options.timestamps else {
            cold_path();
            if self.is_first_syn_again(seg) {
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
        let newer_by = stamps.val.wrapping_sub(self.stamps.recent).cast_signed();
        if newer_by >= -PAWS_TICKS {
            return Continue(());
        }
        self.judge_older(cx, seg, newer_by.unsigned_abs())
    }

    /// A segment whose TSval is `ticks` older than TS.Recent.
    #[cold]
    fn judge_older(&mut self, cx: &mut Context, seg: &RxSegment<'_>, ticks: u32) -> Step {
        if !self.stamps.says_recent(cx) {
            return Continue(());
        }
        // RFC 7323 5.4: a peer's tick is no shorter than 1 ms.
        let late = Duration::from_millis(ticks.into());
        if late <= self.sender.rtt().rto(&cx.tunables) && self.is_overtaken_ack(seg) {
            cx.counters.paws_old_acks += 1;
            return Done(Verdict::Drop(DropReason::PawsAck));
        }
        // RFC 7323 5.3 R1: it is not acceptable; an acknowledgment is sent, the segment dropped.
        self.acknowledge_refused(cx, seg);
        Done(Verdict::Drop(DropReason::Paws))
    }

    /// True if a segment is no more than an acknowledgment that later ones overtook: of nothing new, and
    /// from where the peer has sent. An answer would tell the peer what it knows, once for each that the
    /// network delays, and use up the allowance for challenges. Linux answers those at RCV.NXT.
    fn is_overtaken_ack(&self, seg: &RxSegment<'_>) -> bool {
        let header = &seg.header;
        seg.is_empty()
            && !header.flags.contains(TcpFlags::SYN)
            && header.flags.contains(TcpFlags::ACK)
            && header.seq.at_or_before(self.receiver.nxt())
            && matches!(self.judge_ack(header.ack), AckPlace::Old | AckPlace::Current)
    }

    /// First, continued: does any of it lie in the window?
    fn check_sequence(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if self.receiver.accepts(seg.header.seq, seg.len()) {
            return Continue(());
        }
        self.judge_outside(cx, seg)
    }

    /// Nothing of it lies in the window: what it may be all the same.
    #[cold]
    fn judge_outside(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let (seq, len) = (seg.header.seq, seg.len());
        if len == 0 && self.is_late_ack(seg) || self.is_simultaneous_syn_ack(seg) {
            return Continue(());
        }
        if self.is_behind_rounding(seg) {
            self.acknowledge_refused(cx, seg);
            return Continue(());
        }
        if self.is_fin_again(seg) {
            self.on_fin_again(cx, seg)?;
            return Done(Verdict::Drop(DropReason::OldData));
        }
        if seg.header.flags.contains(TcpFlags::RST) {
            // RFC 5961 3.2: "If the RST bit is set and the sequence number is outside the current
            // receive window, silently drop the segment."
            return Done(Verdict::Drop(DropReason::ResetOutsideWindow));
        }
        if self.is_first_syn_again(seg) {
            self.on_first_syn_again(seg);
            return Done(Verdict::Accepted);
        }
        if seg.header.flags.contains(TcpFlags::SYN) {
            return self.challenge_syn(cx);
        }
        // RFC 9293 3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should
        // be sent in reply"
        self.acknowledge_refused(cx, seg);
        let nxt = self.receiver.nxt();
        let old = seq.before(nxt) && (seq + len).at_or_before(nxt);
        if old {
            self.note_duplicate(cx, seg.text_seq(), seg.text_seq() + seg.payload.len());
        }
        Done(Verdict::Drop(if old { DropReason::OldData } else { DropReason::OverWindow }))
    }

    /// An acknowledgment from before our last one arrived there: it lies no farther back than that.
    /// A peer whose window probe we took unawares sends such, at the edge it knows, and nothing
    /// else until its probe is acknowledged. RFC 9293 3.10.7.4: "special allowance should be made
    /// to accept valid ACKs".
    fn is_late_ack(&self, seg: &RxSegment<'_>) -> bool {
        let seq = seg.header.seq;
        seg.header.flags.intersection(TcpFlags::RST | TcpFlags::ACK) == TcpFlags::ACK
            && seq.at_or_after(self.receiver.seq().last_ack)
            && seq.before(self.receiver.nxt())
    }

    /// A new acknowledgment from before RCV.NXT: what a peer sends who believes that the window ended
    /// there. It was announced rounded down, and what lay beyond, a probe or the end of a segment, was
    /// taken. If some of ours was taken likewise, neither hears the other unless this counts. It lies
    /// no farther back than rounding may hide, or a probe reaches.
    fn is_behind_rounding(&self, seg: &RxSegment<'_>) -> bool {
        let bare = seg.is_empty() && seg.header.flags.intersection(TcpFlags::RST) == TcpFlags::NONE;
        let unit = 1 << self.receiver.scale().get();
        let hidden = if self.sender.is_persisting() { unit } else { unit - 1 };
        bare && seg.header.seq.in_window(self.receiver.nxt() - hidden, hidden)
            && seg.header.flags.contains(TcpFlags::ACK)
            && matches!(self.sender.seq().judge_ack(seg.header.ack), AckPlace::New(_))
    }

    /// Both sides have closed, and the peer's FIN comes again with a new acknowledgment: that is how
    /// some stacks acknowledge a FIN which crossed theirs.
    fn is_fin_again(&self, seg: &RxSegment<'_>) -> bool {
        let header = &seg.header;
        let judged = TcpFlags::SYN | TcpFlags::RST | TcpFlags::ACK | TcpFlags::FIN;
        matches!(self.state, State::Closing | State::LastAck)
            && header.flags.intersection(judged) == TcpFlags::FIN | TcpFlags::ACK
            && header.seq + seg.len() == self.receiver.nxt()
            && matches!(self.sender.seq().judge_ack(header.ack), AckPlace::New(_))
    }

    /// It lies before the window: RFC 9293 3.10.7.4 would have it answered and not looked at, so that
    /// only the retransmission of our FIN would be acknowledged by a segment that is. For a window that
    /// is closed it says: "special allowance should be made to accept valid ACKs". No more comes of
    /// this stream, either.
    #[cold]
    fn on_fin_again(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        self.receiver.owe_ack();
        let step = self.check_ack(cx, seg);
        if !matches!(self.state, State::TimeWait | State::Closed) {
            return step;
        }
        // The record is over, and somebody else is to answer for it.
        let ack = Reply {
            seq: self.sender.seq().max,
            ack: self.receiver.nxt(),
            flags: TcpFlags::ACK,
            window: self.receiver.raw_window(),
            timestamps: self.own_timestamps(cx),
        };
        Done(Verdict::Reply(ack, DropReason::OldData))
    }

    /// Both sides sent SYN, then SYN-ACK: the peer's begins before RCV.NXT, and its ACK is what
    /// completes the handshake (RFC 9293 figure 7).
    fn is_simultaneous_syn_ack(&self, seg: &RxSegment<'_>) -> bool {
        self.state == State::SynReceived
            && seg.header.flags.contains(TcpFlags::SYN | TcpFlags::ACK)
            && seg.header.seq + 1 == self.receiver.nxt()
            // What our SYN brought beside itself was not taken.
            && matches!(self.sender.seq().judge_ack(seg.header.ack), AckPlace::New(_))
    }

    /// Second: RST (RFC 5961 3.2).
    fn check_rst(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if !seg.header.flags.contains(TcpFlags::RST) {
            return Continue(());
        }
        self.judge_rst(cx, seg)
    }

    /// A reset: does it end the connection?
    #[cold]
    fn judge_rst(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if seg.header.seq.before(self.receiver.nxt()) {
            // Some of its text lies in the window. RFC 5961 3.2: "If the RST bit is set and the
            // sequence number is outside the current receive window, silently drop the segment."
            return Done(Verdict::Drop(DropReason::ResetOutsideWindow));
        }
        let any = cx.tunables.rst_in_window == RstInWindow::Any;
        if seg.header.seq != self.receiver.nxt() && !any {
            // RFC 5961 3.2: "If the RST bit is set and the sequence number does not exactly match
            // the next expected sequence value, yet is within the current receive window
            // (RCV.NXT < SEG.SEQ < RCV.NXT+RCV.WND), TCP MUST send an acknowledgment (challenge
            // ACK)"
            self.challenge(cx);
            return Done(Verdict::Drop(DropReason::ResetChallenged));
        }
        let reason = match self.state {
            _ if self.is_early() => CloseReason::Reset,
            State::SynReceived => CloseReason::Refused,
            // Nobody takes what this side could still send.
            State::CloseWait if cx.tunables.rst_close_wait == RstInCloseWait::Pipe => {
                CloseReason::BrokenPipe
            }
            // In CLOSING and LAST-ACK, too: RFC 9293 3.10.7.4 has them only "enter the CLOSED state",
            // but without the acknowledgment of our FIN nobody knows that the peer read all.
            _ => CloseReason::Reset,
        };
        self.count_reset(cx);
        self.end(cx, reason);
        Done(Verdict::Closed(reason))
    }

    /// A reset, or what counts as one, is about to end this.
    fn count_reset(&self, cx: &mut Context) {
        match self.state {
            _ if self.is_early() => cx.counters.embryonic_resets += 1,
            // tcpEstabResets of RFC 4022 counts those that come from these two alone.
            State::Established | State::CloseWait => cx.counters.estab_resets += 1,
            _ => {}
        }
    }

    /// Fourth: SYN (RFC 5961 4.2). The third, security, is not implemented by anyone.
    fn check_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if !seg.header.flags.contains(TcpFlags::SYN) {
            return Continue(());
        }
        self.judge_syn(cx, seg)
    }

    /// A SYN for a connection that had one.
    #[cold]
    fn judge_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if self.is_simultaneous_syn_ack(seg) {
            return Continue(());
        }
        if self.is_first_syn_again(seg) {
            self.on_first_syn_again(seg);
            return Done(Verdict::Accepted);
        }
        if cx.tunables.syn_in_window == SynInWindow::Reset
            && let Some(reset) = self.judge_reset(cx)
        {
            self.count_reset(cx);
            self.end(cx, CloseReason::Reset);
            return Done(Verdict::Reply(reset, DropReason::SynChallenged));
        }
        self.challenge_syn(cx)
    }

    /// RFC 5961 4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK
    /// (also referred to as challenge ACK) to the remote peer".
    fn challenge_syn(&mut self, cx: &mut Context) -> Step {
        self.challenge(cx);
        Done(Verdict::Drop(DropReason::SynChallenged))
    }

    /// Eighth, after URG and text: FIN, this segment's or one that came before it.
    // Always: every segment comes here.
    #[inline(always)]
    pub(super) fn take_fin(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let fin = seg.header.flags.contains(TcpFlags::FIN);
        if fin || self.buffers.as_ref().is_some_and(|buffers| buffers.recv.awaits_fin()) {
            self.process_fin(cx, seg)
        } else {
            Continue(())
        }
    }

    fn process_fin(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let mut step = Continue(());
        if seg.header.flags.contains(TcpFlags::FIN)
            && let Some(ahead) = self.receiver.place_of_fin(seg.header.seq + (seg.len() - 1))
        {
            if ahead == 0 {
                // As nearly every one: nothing has to be held for it.
                if let Some(buffers) = &mut self.buffers {
                    buffers.recv.end();
                }
                self.on_fin(cx);
                return step;
            }
            cold_path();
            let is_held = self.buffers(cx).recv.note_fin(ahead);
            if seg.payload.is_empty() {
                // RFC 5681 3.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an
                // out-of-order segment arrives." With text, the text was answered.
                self.receiver.owe_duplicate();
                if !is_held {
                    step = Done(Verdict::Drop(DropReason::FinConflict));
                }
            }
        }
        let due = self.buffers.as_mut().is_some_and(|buffers| buffers.recv.take_fin());
        if due {
            self.on_fin(cx);
        }
        step
    }

    /// The peer's FIN is the next number in sequence.
    fn on_fin(&mut self, cx: &mut Context) {
        self.receiver.on_fin();
        if cx.tunables.recv_window == ReceiveWindow::FullSegments {
            // The FIN takes no room: the window is as large as before, and so is that of TIME-WAIT.
            let bounds = self.window_bounds();
            self.receiver.open_whole(&bounds, &cx.tunables);
        }
        self.signals.raise(Signals::READABLE);
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            // Our FIN is not acknowledged yet, or the ACK step would have left FIN-WAIT-1.
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(cx),
            _ => {}
        }
    }

    /// Answers a segment that was refused. Text or FIN that the peer may send again is answered each
    /// time, because it waits for that. All others only as often as challenges: two hosts that disagree
    /// would acknowledge each other for ever, and anybody could have us answer whom they name.
    pub(super) fn acknowledge_refused(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let syn = seg.header.flags.contains(TcpFlags::SYN);
        if seg.is_empty() || syn || !self.may_come_again(seg) {
            self.challenge(cx);
        } else {
            self.receiver.owe_ack();
        }
    }

    /// Whether a segment begins where the peer has sent something that it may take for lost: what was
    /// received, no farther back than a window, beyond which it could send nothing new; or, of a peer
    /// that takes the window for larger than it is, as far beyond.
    fn may_come_again(&self, seg: &RxSegment<'_>) -> bool {
        let fin = 1;
        let received = self.stats.tally.bytes_received + fin;
        let window = self.receiver.most_window(&self.window_bounds()).max(UNSCALED);
        let reach = u64::from(window).min(received);
        u64::from(self.receiver.nxt().offset_from(seg.header.seq)) <= reach
            || seg.header.seq.in_window(self.receiver.nxt(), self.receiver.seq().wnd() + window)
    }

    /// Sends a challenge acknowledgment, unless too many went out: several in quick succession, so
    /// that a peer that tries again is answered, and few in the long run. The count is this record's
    /// own (RFC 5961 7), because one shared by all lets a third party count what others provoke
    /// (CVE-2016-5696).
    pub(super) fn challenge(&mut self, cx: &mut Context) {
        let (interval, burst) = (cx.tunables.challenge_interval, cx.tunables.challenge_burst);
        if !self.challenges.take_one(cx.tick, interval, burst) {
            cx.counters.challenge_acks_skipped += 1;
            return;
        }
        self.receiver.owe_ack();
        cx.counters.challenge_acks += 1;
    }

    /// The reset that refuses a segment, for the caller to send.
    pub(super) fn refuse(seg: &RxSegment<'_>, reason: DropReason) -> Step {
        Done(Verdict::Reply(Reply::reset_for(seg), reason))
    }

    /// RFC 7323 4.3: which TSval is echoed. RFC 7323 5.3 has this (R3) behind the test of the
    /// window; here RST, SYN and ACK were judged as well, as in Linux. Whoever forges a segment that
    /// is refused could otherwise set TS.Recent ahead, and PAWS would refuse the peer from then on.
    pub(super) fn note_timestamp(&mut self, cx: &Context, seg: &RxSegment<'_>) {
        if !self.flags.has(Flags::TIMESTAMPS) {
            return;
        }
        if let Some(stamps) = seg.header.options.timestamps {
            // RFC 7323 4.3 (2): "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then
            // SEG.TSval is copied to TS.Recent; otherwise, it is ignored."
            let newer = stamps.val.wrapping_sub(self.stamps.recent).cast_signed() >= 0;
            let counts = newer || !self.stamps.says_recent(cx);
            if counts && seg.header.seq.at_or_before(self.receiver.seq().last_ack) {
                self.stamps.recent = stamps.val;
                self.stamps.recent_at = cx.tick;
            }
        }
    }
}

impl Stamps {
    /// True if TS.Recent tells what is old. RFC 7323 5.5: not if it was not renewed for 24 days. Nor if it is
    /// 0, as in Linux: some peers send that with their SYN, and what is known of a peer whose cookie came
    /// back without timestamps is no more.
    fn says_recent(&self, cx: &Context) -> bool {
        self.recent != 0 && cx.tick.millis_since(self.recent_at) < PAWS_IDLE_MILLIS
    }
}

/// RFC 7323 5.5: TS.Recent is invalid "when a connection is idle for more than 24 days": 2^31 ms,
/// less a margin.
const PAWS_IDLE_MILLIS: u32 = 24 * 24 * 3600 * 1000;

/// Ticks by which TSval may be older than TS.Recent, as in Linux: of two segments that leave around a tick,
/// the network may deliver the second first. A TSval that has wrapped is older by 2^31 at least.
const PAWS_TICKS: i32 = 1;

/// Octets: the window that needs no scale.
const UNSCALED: u32 = 65_535;
