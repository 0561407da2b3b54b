//! Effects of an acceptable acknowledgment on what was sent.

use whimbrel_base::{Micros, cold_path};
use whimbrel_recovery::flight::Delivered;
use whimbrel_wire::SeqNum;

use crate::conn::Flags;
use crate::conn::transfer::Transfer;
use crate::send::{Acknowledged, IncomingAck, Order, SendQueue};
use crate::{Context, RxSegment};

impl Transfer {
    /// Takes an acknowledgment of something new. Returns true if our FIN is part of it.
    #[inline(never)]
    pub(in crate::conn) fn on_new_ack(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        numbers: u32,
    ) -> bool {
        let is_plain =
            self.tcb.queue().is_none_or(SendQueue::is_quiet) && !seg.header.options.has_sack();
        let fin = if is_plain {
            self.on_plain_ack(cx, seg, numbers)
        } else {
            self.on_telling_ack(cx, seg, numbers)
        };
        if self.tcb.counts.has_record() {
            self.tcb.cold_mut().soft_error = None;
            self.tcb.note_recovered(cx);
            self.follow_mtu_search(cx);
        }
        self.rearm_acknowledged(cx);
        self.tcb.tell_room(cx);
        fin
    }

    /// Nothing is missing, as nearly always, or nothing is buffered: our SYN or FIN alone is acknowledged.
    #[inline(always)]
    fn on_plain_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> bool {
        let (acked, _) = self.acknowledge(cx, seg, numbers, Losses::None);
        if let Some(buffers) = self.tcb.buffers.as_deref_mut() {
            self.tcb.sender.on_plain_ack(cx, &acked, &mut buffers.send);
        }
        acked.fin
    }

    /// Something is missing or may have been, or is named.
    // Out of line: what it tells the sender would stand in memory for the other, too.
    #[inline(never)]
    fn on_telling_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> bool {
        let (acked, delivered) = self.acknowledge(cx, seg, numbers, Losses::Possible);
        self.tell_sender(cx, seg, Some((acked, delivered)), false);
        if self.tcb.counts.has_record() {
            self.judge_suspicion(cx, &delivered);
        }
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
        let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        let mut delivered = Delivered::default();
        let mut acked = self.tcb.sender.acknowledge(ack, numbers, queue, &mut delivered);
        if losses == Losses::Possible && delivered.is_ambiguous && !self.tcb.flags.has(Flags::SACK)
        {
            // What was sent once may have waited for what was sent again, which the peer cannot tell.
            delivered.once_first = None;
        }
        acked.rtt = self.measure(cx, seg, acked.bytes, &delivered, losses);
        if self.tcb.buffers.as_ref().is_some_and(|buffers| buffers.too_big.is_some()) {
            cold_path();
            self.update_too_big(cx, ack);
        }
        self.tcb.counts.on_ack(acked.bytes, acked.segs);
        self.tcb.counts.waits_since = cx.tick;
        // Whether one that changed stalls it is asked last, when the timer is set.
        if self.tcb.sender.take_window(seg) && self.tcb.sender.is_persisting() {
            self.on_stalled_window(cx);
        }
        (acked, delivered)
    }

    /// SEG.ACK = SND.UNA: a window update, a piggyback, or a duplicate.
    // Always: of what most segments bring it is a few comparisons.
    #[inline(always)]
    pub(in crate::conn) fn on_current_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        // RFC 5681 2: a duplicate (a) finds data outstanding, (b) carries none, (c) has neither
        // SYN nor FIN, (d) acknowledges what was acknowledged, (e) announces the same window.
        // The answers to window probes look alike and say nothing of a loss.
        let outstanding = if self.tcb.sender.is_idle() {
            // RFC 8985 7.4.2, case 2: one more tells of a loss probe that came twice.
            self.tcb.flags.has(Flags::SACK)
                && self.tcb.queue().is_some_and(|it| it.recovery.remembers())
        } else {
            !self.tcb.sender.is_persisting()
        };
        let changed = self.take_window(cx, seg);
        let is_answer = outstanding && seg.is_empty();
        if is_answer {
            self.tcb.sender.on_answer();
        }
        let is_duplicate = is_answer && !changed;
        if is_duplicate || seg.header.options.has_sack() {
            self.on_named_or_duplicate(cx, seg, is_duplicate);
        }
    }

    /// It names what the peer holds, or says that something is missing.
    #[inline(never)]
    fn on_named_or_duplicate(&mut self, cx: &mut Context, seg: &RxSegment<'_>, is_duplicate: bool) {
        self.tell_sender(cx, seg, None, is_duplicate);
        self.tcb.note_recovered(cx);
        self.follow_mtu_search(cx);
        self.retime(cx);
        // What the peer holds makes room.
        self.tcb.tell_room(cx);
    }

    /// Passes on an acknowledgment's news of what is in flight.
    #[inline(never)]
    fn tell_sender(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        acked: Option<(Acknowledged, Delivered)>,
        is_duplicate: bool,
    ) {
        let sack = self.tcb.flags.has(Flags::SACK);
        let blocks =
            if sack && seg.header.options.has_sack() { seg.header.options.sack() } else { None };
        let stamps = self.tcb.flags.has(Flags::TIMESTAMPS).then_some(&self.stamps);
        let arrival = IncomingAck {
            ack: seg.header.ack,
            acked: acked.map(|(acked, _)| acked),
            delivered: acked.map_or_else(Delivered::default, |(_, delivered)| delivered),
            blocks: blocks.as_ref().map_or(&[], |blocks| blocks.as_slice()),
            is_duplicate,
            echoed: stamps.and_then(|stamps| stamps.echoed_at(seg, cx)),
            min_rtt: self.tcb.counts.min_rtt(),
            sack,
        };
        let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        if self.tcb.sender.on_ack(cx, &arrival, queue) == Order::Reversed {
            self.tcb.cold_mut().count_reordering();
        }
    }

    /// Takes SEG.WND. Returns whether it changed.
    #[inline(always)]
    fn take_window(&mut self, cx: &Context, seg: &RxSegment<'_>) -> bool {
        let changed = self.tcb.sender.take_window(seg);
        if changed && self.tcb.sender.may_be_stalled() {
            self.on_narrow_window(cx);
        }
        changed
    }

    /// The window changed, and it may keep text back.
    #[inline(never)]
    fn on_narrow_window(&mut self, cx: &Context) {
        if self.tcb.sender.is_persisting() || self.tcb.sender.waits_for_window(self.tcb.queue()) {
            self.on_stalled_window(cx);
        }
    }

    /// The window of a stalled connection changed, or one that changed stalls it.
    fn on_stalled_window(&mut self, cx: &Context) {
        let stalled = self.tcb.sender.is_persisting();
        self.rearm_retransmission(cx);
        // Once more is admitted than was probed with, it is no longer a stall.
        if stalled && !self.tcb.sender.is_persisting() {
            self.tcb.counts.waits_since = cx.tick;
            let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            self.tcb.sender.on_window_opened(cx, queue);
        }
    }

    /// Measures the round trip that this acknowledgment of `bytes` bytes of text ends.
    #[inline(always)]
    fn measure(
        &mut self,
        cx: &Context,
        seg: &RxSegment<'_>,
        bytes: u32,
        delivered: &Delivered,
        losses: Losses,
    ) -> Option<Micros> {
        let stamps = self.tcb.flags.has(Flags::TIMESTAMPS).then_some(&self.stamps);
        // A FIN alone is not worth the milliseconds of an echo, nor is a SYN-ACK that came within one.
        let counts = |is_first, trip: &Micros| {
            is_first || bytes > 0 || seg.header.flags.is_syn() && trip.get() > 0
        };
        let echoed = |is_first| stamps?.echoed(seg, cx.tick).filter(|trip| counts(is_first, trip));
        let buffers = self.tcb.buffers.as_deref().filter(|_| losses == Losses::Possible);
        let queue = buffers.map(|buffers| &buffers.send);
        let rtt = self.tcb.sender.measure(cx, delivered, queue, echoed)?;
        // The path's own is that of the last segment, for which the peer did not wait. Mostly it is the first
        // as well, and measured already.
        let is_measured = |at| losses == Losses::None && delivered.once_first == Some(at);
        let last = delivered.once.filter(|_| delivered.once_first.is_some());
        let last = last.filter(|(at, _)| !is_measured(*at));
        let trip = last.map_or(rtt, |(at, _)| cx.now.micros_since(at));
        self.tcb.counts.on_round_trip(trip, cx.tick);
        Some(trip)
    }

    /// RFC 5927 7.2: "If, while there is a pending ICMP 'Packet Too Big' error message, the TCP SEQ
    /// claimed by the pending message is acknowledged [...], then the 'pending error' condition is
    /// cleared."
    #[cold]
    fn update_too_big(&mut self, cx: &mut Context, ack: SeqNum) {
        if let Some(buffers) = self.tcb.buffers.as_mut()
            && buffers.too_big.is_some_and(|said| said.seq.before(ack))
        {
            buffers.too_big = None;
            cx.counters.path_mtu_refuted += 1;
        }
    }
}

/// The losses that an acknowledgment may find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Losses {
    /// Nothing is missing, or may have been.
    None,
    /// Something is, or may have been, or is named.
    Possible,
}
