//! Fifth: the ACK field (RFC 9293 3.10.7.4, RFC 5961 5.2).

use whimbrel_base::{Instant, Micros, Tick, cold_path};
use whimbrel_recovery::flight::Delivered;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::TcpFlags;

use super::{Connection, Flags, Stamps, State};
use crate::send::{AckPlace, Acknowledged, IncomingAck, Order, SendQueue, reports_duplicate};
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
        if self.state == State::SynReceived {
            cold_path();
            self.complete_simultaneous_open(cx, seg)?;
        }
        self.note_ack(cx, seg);
        match self.sender.seq().judge_ack(seg.header.ack) {
            AckPlace::New(numbers) => {
                self.note_timestamp(cx, seg);
                self.take_new_ack(cx, seg, numbers)
            }
            AckPlace::Current => {
                self.note_timestamp(cx, seg);
                self.on_current_ack(cx, seg);
                Continue(())
            }
            _ => self.on_other_ack(cx, seg),
        }
    }

    /// It lies before SND.UNA, or beyond what was sent.
    #[inline(never)]
    fn on_other_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        match self.judge_ack(seg.header.ack) {
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
                self.note_timestamp(cx, seg);
                Continue(())
            }
        }
    }

    /// Where SEG.ACK lies. Below SND.UNA nothing counts that was never sent: RFC 5961 5.2 bounds what
    /// is too old by the largest window alone, which on a young connection reaches far below ISS, so
    /// that a stranger who knows no number of ours would guess one in every few tens of thousands.
    pub(super) fn judge_ack(&self, ack: SeqNum) -> AckPlace {
        match self.sender.seq().judge_ack(ack) {
            AckPlace::Old => {
                let fin = u64::from(self.state == State::FinWait2);
                let acked = self.stats.tally.bytes_acked + fin;
                let below = u64::from(self.sender.seq().una.offset_from(ack));
                if below > acked { AckPlace::TooOld } else { AckPlace::Old }
            }
            place => place,
        }
    }

    /// Counts an acknowledgment, and what it tells of text that came twice.
    pub(super) fn note_ack(&mut self, cx: &Context, seg: &RxSegment<'_>) {
        self.stats.tally.last_ack_recv = cx.tick;
        if tells_of_duplicate(seg) {
            self.count_duplicate();
        }
    }

    /// SYN-RECEIVED: the ACK of our SYN establishes the connection.
    fn complete_simultaneous_open(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        // RFC 9293 3.10.7.4: "If SND.UNA < SEG.ACK =< SND.NXT, then enter ESTABLISHED state (...)
        // If the segment acknowledgment is not acceptable, form a reset segment
        // <SEQ=SEG.ACK><CTL=RST> and send it."
        if !matches!(self.sender.seq().judge_ack(seg.header.ack), AckPlace::New(_)) {
            if self.sender.fin_sent() {
                // RFC 9293 3.10.4 calls it FIN-WAIT-1, where this is answered and dropped.
                self.challenge(cx);
                return Done(Verdict::Drop(DropReason::UnacceptableAck));
            }
            let reset = Reply::reset_for(seg).stamped(self.own_timestamps(cx));
            return Done(Verdict::Reply(reset, DropReason::UnacceptableAck));
        }
        self.establish();
        self.take_queued(cx);
        if self.is_early() {
            self.complete_early(cx);
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
        if self.on_new_ack(cx, seg, numbers) { self.on_fin_acked(cx) } else { Continue(()) }
    }

    /// The same but for what follows from its being our FIN. Returns whether that is part of it.
    #[inline(never)]
    fn on_new_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> bool {
        let is_plain =
            self.queue().is_none_or(SendQueue::is_quiet) && !seg.header.options.has_sack();
        let fin = if is_plain {
            self.on_plain_ack(cx, seg, numbers)
        } else {
            self.on_telling_ack(cx, seg, numbers)
        };
        if self.stats.apart.is_some() {
            self.note_recovered(cx);
        }
        self.rearm_acknowledged(cx);
        self.tell_room(cx);
        fin
    }

    /// Nothing is missing, as nearly always, or nothing is buffered: our SYN or FIN alone is acknowledged.
    #[inline(always)]
    fn on_plain_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> bool {
        let (acked, _) = self.acknowledge(cx, seg, numbers, Losses::None);
        if let Some(buffers) = self.buffers.as_deref_mut() {
            self.sender.on_plain_ack(cx, &acked, &mut buffers.send);
        }
        acked.fin
    }

    /// Something is missing or may have been, or is named.
    // Out of line: what it tells the sender would stand in memory for the other, too.
    #[inline(never)]
    fn on_telling_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> bool {
        let (acked, delivered) = self.acknowledge(cx, seg, numbers, Losses::Possible);
        self.tell_sender(cx, seg, Some((acked, delivered)), false);
        acked.fin
    }

    /// Takes what is acknowledged off, with the round trip and the window that come with it.
    #[inline(always)]
    fn acknowledge(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        numbers: u32,
        losses: Losses,
    ) -> (Acknowledged, Delivered) {
        let ack = seg.header.ack;
        let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        let mut delivered = Delivered::default();
        let mut acked = self.sender.acknowledge(ack, numbers, queue, &mut delivered);
        acked.rtt = self.measure(cx, seg, &delivered, losses);
        if self.buffers.as_ref().is_some_and(|buffers| buffers.too_big.is_some()) {
            cold_path();
            self.update_too_big(cx, ack);
        }
        self.stats.tally.on_ack(acked.octets, acked.segs);
        self.stats.tally.waits_since = cx.tick;
        // Whether one that changed stalls it is asked last, when the timer is set.
        if self.sender.take_window(seg) && self.sender.is_persisting() {
            self.on_stalled_window(cx);
        }
        self.soft_error = None;
        (acked, delivered)
    }

    /// SEG.ACK = SND.UNA: a window update, a piggyback, or a duplicate.
    // Always: of what most segments bring it is a few comparisons.
    #[inline(always)]
    fn on_current_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        // RFC 5681 2: a duplicate (a) finds data outstanding, (b) carries none, (c) has neither
        // SYN nor FIN, (d) acknowledges what was acknowledged, (e) announces the same window.
        // The answers to window probes look alike and say nothing of a loss.
        let outstanding = if self.sender.is_idle() {
            // RFC 8985 7.4.2, case 2: one more tells of a loss probe that came twice.
            self.flags.has(Flags::SACK) && self.queue().is_some_and(|it| it.recovery.remembers())
        } else {
            !self.sender.is_persisting()
        };
        let changed = self.take_window(cx, seg);
        let is_duplicate = outstanding && seg.is_empty() && !changed;
        if is_duplicate || seg.header.options.has_sack() {
            self.on_named_or_duplicate(cx, seg, is_duplicate);
        }
    }

    /// It names what the peer holds, or says that something is missing.
    #[inline(never)]
    fn on_named_or_duplicate(&mut self, cx: &mut Context, seg: &RxSegment<'_>, is_duplicate: bool) {
        self.tell_sender(cx, seg, None, is_duplicate);
        self.note_recovered(cx);
        self.retime(cx);
        // What the peer holds makes room.
        self.tell_room(cx);
    }

    /// What an acknowledgment tells of what is in flight.
    #[inline(never)]
    fn tell_sender(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        acked: Option<(Acknowledged, Delivered)>,
        is_duplicate: bool,
    ) {
        let sack = self.flags.has(Flags::SACK);
        let blocks =
            if sack && seg.header.options.has_sack() { seg.header.options.sack() } else { None };
        let stamps = self.flags.has(Flags::TIMESTAMPS).then_some(&self.stamps);
        let arrival = IncomingAck {
            ack: seg.header.ack,
            acked: acked.map(|(acked, _)| acked),
            delivered: acked.map_or_else(Delivered::default, |(_, delivered)| delivered),
            blocks: blocks.as_ref().map_or(&[], |blocks| blocks.as_slice()),
            is_duplicate,
            echoed: stamps.and_then(|stamps| stamps.echoed_at(seg, cx)),
            min_rtt: self.stats.tally.min_rtt_micros(),
            sack,
        };
        let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        if self.sender.on_ack(cx, &arrival, queue) == Order::Reversed {
            self.count_reordering();
        }
    }

    /// Takes SEG.WND. Returns whether it changed.
    #[inline(always)]
    pub(super) fn take_window(&mut self, cx: &Context, seg: &RxSegment<'_>) -> bool {
        let changed = self.sender.take_window(seg);
        if changed && self.sender.may_be_stalled() {
            self.on_narrow_window(cx);
        }
        changed
    }

    /// The window changed, and it may keep text back.
    #[inline(never)]
    fn on_narrow_window(&mut self, cx: &Context) {
        if self.sender.is_persisting() || self.sender.waits_for_window(self.queue()) {
            self.on_stalled_window(cx);
        }
    }

    /// The window of a stalled connection changed, or one that changed stalls it.
    fn on_stalled_window(&mut self, cx: &Context) {
        let stalled = self.sender.is_persisting();
        self.rearm_retransmission(cx);
        // Once more is admitted than was probed with, it is no longer a stall.
        if stalled && !self.sender.is_persisting() {
            self.stats.tally.waits_since = cx.tick;
            let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            self.sender.on_window_opened(cx, queue);
        }
    }

    /// Our FIN is acknowledged.
    fn on_fin_acked(&mut self, cx: &mut Context) -> Step {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.start_fin_wait_2(cx);
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

    /// Measures the round trip that this acknowledgment ends.
    #[inline(always)]
    fn measure(
        &mut self,
        cx: &Context,
        seg: &RxSegment<'_>,
        delivered: &Delivered,
        losses: Losses,
    ) -> Option<Micros> {
        let stamps = self.flags.has(Flags::TIMESTAMPS).then_some(&self.stamps);
        let echoed = || stamps.and_then(|stamps| stamps.echoed(seg, cx.tick));
        let buffers = self.buffers.as_deref().filter(|_| losses == Losses::Possible);
        let queue = buffers.map(|buffers| &buffers.send);
        let rtt = self.sender.measure(cx, delivered, queue, echoed)?;
        // The path's own is that of the last segment, for which the peer did not wait. Mostly it is the first
        // as well, and measured already.
        let is_measured = |at| losses == Losses::None && delivered.once_first == Some(at);
        let last = delivered.once.filter(|_| delivered.once_first.is_some());
        let last = last.filter(|(at, _)| !is_measured(*at));
        let trip = last.map_or(rtt, |(at, _)| cx.now.micros_since(at));
        self.stats.tally.on_round_trip(trip, cx.tick);
        Some(trip)
    }
}

impl Stamps {
    /// The time since what a segment echoes was sent.
    // Out of line: the time of most round trips is known from what was sent.
    #[inline(never)]
    fn echoed(&self, seg: &RxSegment<'_>, now: Tick) -> Option<Micros> {
        // What came twice is acknowledged with the echo of its first copy (RFC 7323 5.3 R2), whose own
        // acknowledgment was lost: the time since then is a time-out, and measuring it as a round
        // trip makes the next one longer still.
        if tells_of_duplicate(seg) {
            return None;
        }
        // RFC 7323 4.1: "A TSecr value received in a segment MAY be used to update the averaged
        // RTT measurement only if the segment advances the left edge of the send window, i.e.,
        // SND.UNA is increased."
        let stamps = seg.header.options.timestamps.filter(|stamps| stamps.ecr != 0)?;
        let sent = stamps.ecr.wrapping_sub(self.offset);
        let millis = now.raw().wrapping_sub(sent);
        (millis < ECHO_LIMIT_MILLIS).then(|| Micros::new(millis.wrapping_mul(1_000)))
    }
}

impl Stamps {
    /// When the segment left that this one echoes, to a millisecond.
    #[inline]
    fn echoed_at(&self, seg: &RxSegment<'_>, cx: &Context) -> Option<Instant> {
        let stamps = seg.header.options.timestamps.filter(|stamps| stamps.ecr != 0)?;
        let sent = stamps.ecr.wrapping_sub(self.offset);
        let millis = cx.tick.raw().wrapping_sub(sent);
        let age = (millis < ECHO_LIMIT_MILLIS).then_some(millis)?;
        let now = cx.now.as_nanos() / 1_000_000;
        Some(Instant::from_millis(now.saturating_sub(u64::from(age))))
    }
}

/// What an acknowledgment finds of what was sent before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Losses {
    /// Nothing is missing, or may have been.
    None,
    /// Something is, or may have been, or is named.
    Possible,
}

/// An echo older than this was never ours: 2^31 ms would be ambiguous, ten minutes are absurd.
const ECHO_LIMIT_MILLIS: u32 = 600_000;

/// Whether a segment tells of text that came twice.
#[inline]
fn tells_of_duplicate(seg: &RxSegment<'_>) -> bool {
    seg.header.options.has_sack() && names_duplicate(seg)
}

/// Whether the SACK option of a segment tells of text that came twice (RFC 2883).
#[inline(never)]
fn names_duplicate(seg: &RxSegment<'_>) -> bool {
    let blocks = seg.header.options.sack();
    blocks.is_some_and(|blocks| reports_duplicate(blocks.as_slice(), seg.header.ack))
}
