//! Fifth: the ACK field (RFC 9293 3.10.7.4, RFC 5961 5.2).

use core::time::Duration;

use whimbrel_base::Micros;
use whimbrel_wire::tcp::{SackBlock, TcpFlags};
use whimbrel_wire::{SeqNum, WindowScale};

use super::{Connection, Flags, Signals, State};
use crate::recovery::{CaState, Flight, Remedy};
use crate::send::AckPlace;
use crate::verdict::{CloseReason, Continue, Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    // Always: nearly every segment comes here, and its fields are at hand.
    #[inline(always)]
    pub(super) fn check_ack(&mut self, cx: &mut Context<'_>, seg: &RxSegment<'_>) -> Step {
        if !seg.header.flags.contains(TcpFlags::ACK) {
            // RFC 9293 3.10.7.4: "if the ACK bit is off, drop the segment and return"
            return Done(Verdict::Drop(DropReason::NoAck));
        }
        if self.state == State::SynReceived {
            self.complete_simultaneous_open(cx, seg)?;
        }
        self.note_ack(cx, seg);
        let place = self.judge_ack(seg.header.ack);
        if !matches!(place, AckPlace::TooOld | AckPlace::Unsent) {
            self.note_timestamp(cx, seg);
        }
        match place {
            AckPlace::New(numbers) => self.on_new_ack(cx, seg, numbers)?,
            AckPlace::Current => self.on_current_ack(cx, seg),
            // RFC 9293 3.10.7.4: "If the ACK is a duplicate (SEG.ACK =< SND.UNA), it can be
            // ignored."
            AckPlace::Old => {}
            AckPlace::TooOld => {
                // RFC 5961 5.2: "All incoming segments whose ACK value doesn't satisfy the above
                // condition MUST be discarded and an ACK sent back."
                self.challenge(cx);
                return Done(Verdict::Drop(DropReason::TooOldAck));
            }
            AckPlace::Unsent => {
                // RFC 9293 3.10.7.4: "If the ACK acks something not yet sent (SEG.ACK > SND.NXT),
                // then send an ACK, drop the segment, and return." As often as a challenge (RFC 5961 7).
                self.challenge(cx);
                return Done(Verdict::Drop(DropReason::AckUnsentData));
            }
        }
        Continue(())
    }

    /// Where SEG.ACK lies. Below SND.UNA nothing counts that was never sent: RFC 5961 5.2 bounds what
    /// is too old by the largest window alone, which on a young connection reaches far below ISS, so
    /// that a stranger who knows no number of ours would guess one in every few tens of thousands.
    fn judge_ack(&self, ack: SeqNum) -> AckPlace {
        match self.snd.judge_ack(ack) {
            AckPlace::Old => {
                let fin = u64::from(self.state == State::FinWait2);
                let acked = self.ledger.tally.bytes_acked + fin;
                let below = u64::from(self.snd.una.offset_from(ack));
                if below > acked { AckPlace::TooOld } else { AckPlace::Old }
            }
            place => place,
        }
    }

    /// Counts an acknowledgment, and what it tells of text that came twice.
    fn note_ack(&mut self, cx: &Context<'_>, seg: &RxSegment<'_>) {
        let tally = &mut self.ledger.tally;
        tally.last_ack_recv = cx.tick;
        tally.dsack_dups = tally.dsack_dups.wrapping_add(u32::from(tells_of_duplicate(seg)));
    }

    /// SYN-RECEIVED: the ACK of our SYN establishes the connection.
    fn complete_simultaneous_open(&mut self, cx: &mut Context<'_>, seg: &RxSegment<'_>) -> Step {
        // RFC 9293 3.10.7.4: "If SND.UNA < SEG.ACK =< SND.NXT, then enter ESTABLISHED state (...)
        // If the segment acknowledgment is not acceptable, form a reset segment
        // <SEQ=SEG.ACK><CTL=RST> and send it."
        if !matches!(self.snd.judge_ack(seg.header.ack), AckPlace::New(_)) {
            if self.flags.has(Flags::FIN_SENT) {
                // RFC 9293 3.10.4 calls it FIN-WAIT-1, where this is answered and dropped.
                self.challenge(cx);
                return Done(Verdict::Drop(DropReason::UnacceptableAck));
            }
            let reset = Reply::reset_for(seg).stamped(self.own_timestamps(cx));
            return Done(Verdict::Reply(reset, DropReason::UnacceptableAck));
        }
        self.establish();
        self.take_queued();
        if self.is_early() {
            self.complete_early(cx);
        }
        Continue(())
    }

    /// Something new is acknowledged.
    fn on_new_ack(&mut self, cx: &mut Context<'_>, seg: &RxSegment<'_>, numbers: u32) -> Step {
        let ack = seg.header.ack;
        self.measure(cx, seg, ack);
        let syn = u32::from(self.flags.take(Flags::SYN));
        let queued = self.send_queued();
        let octets = (numbers - syn).min(queued);
        let fin_acked = self.flags.has(Flags::FIN_SENT) && numbers - syn > queued;
        if fin_acked {
            // Before the window is looked at: nothing is left that a closed one could hold back.
            self.flags.clear(Flags::FIN_QUEUED);
            self.flags.clear(Flags::FIN_SENT);
        }
        if let Some(cold) = self.cold.as_mut() {
            cold.send.acknowledge(octets);
            if cold.too_big.is_some() {
                self.judge_too_big(cx, ack);
            }
        }
        self.acked_size = self.acked_size.max(octets.min(u32::from(self.mss)) as u16);
        self.ledger.tally.on_ack(octets, self.in_segments(numbers));
        self.ledger.tally.waits_since = cx.tick;
        self.snd.advance(ack);
        // It must not fall behind by half the circle, or it would seem to lie ahead.
        self.small_end = self.small_end.later(ack);
        self.take_window(cx, seg);
        self.attempts = 0;
        self.soft_error = None;
        if self.flags.has(Flags::RETRANSMIT) && self.snd.una == self.snd.max {
            self.flags.clear(Flags::RETRANSMIT);
        }
        let flight = self.flight();
        if self.recovery.on_new_ack(&mut self.cc, ack, octets, flight) == Remedy::Retransmit {
            self.flags.set(Flags::RETRANSMIT);
        }
        self.judge_sacked(cx, seg);
        self.rearm_retransmission(cx);
        self.tell_room();
        if fin_acked { self.on_fin_acked(cx) } else { Continue(()) }
    }

    /// SEG.ACK = SND.UNA: a window update, a piggyback, or a duplicate.
    fn on_current_ack(&mut self, cx: &mut Context<'_>, seg: &RxSegment<'_>) {
        // RFC 5681 2: a duplicate (a) finds data outstanding, (b) carries none, (c) has neither
        // SYN nor FIN, (d) acknowledges what was acknowledged, (e) announces the same window.
        // The answers to window probes look alike and say nothing of a loss.
        let outstanding = self.snd.max != self.snd.una && !self.flags.has(Flags::PERSIST);
        let changed = self.take_window(cx, seg);
        if outstanding && self.judge_sacked(cx, seg) == Remedy::Wait && seg.is_empty() && !changed {
            let flight = self.flight();
            let remedy = self.recovery.on_duplicate(&mut self.cc, self.snd.una, flight);
            self.take_remedy(cx, remedy);
        }
    }

    /// Whether the SACK blocks alone tell of a loss, duplicate or not.
    #[inline]
    fn judge_sacked(&mut self, cx: &mut Context<'_>, seg: &RxSegment<'_>) -> Remedy {
        if seg.header.options.has_sack() { self.judge_blocks(cx, seg) } else { Remedy::Wait }
    }

    fn judge_blocks(&mut self, cx: &mut Context<'_>, seg: &RxSegment<'_>) -> Remedy {
        let sacked = self.sacked_octets(seg);
        if sacked == 0 {
            return Remedy::Wait;
        }
        let flight = self.flight();
        let remedy = self.recovery.on_sacked(&mut self.cc, self.snd.una, sacked, flight);
        self.take_remedy(cx, remedy);
        remedy
    }

    fn take_remedy(&mut self, cx: &mut Context<'_>, remedy: Remedy) {
        if remedy == Remedy::Retransmit {
            cx.counters.fast_retrans += 1;
            self.rtt.stop_timing();
            self.flags.set(Flags::RETRANSMIT);
        }
    }

    /// How many octets beyond SND.UNA the blocks of `seg` name. A first block that reports a
    /// duplicate (RFC 2883 4) lies below, or within the second.
    fn sacked_octets(&self, seg: &RxSegment<'_>) -> u32 {
        let Some(blocks) = seg.header.options.sack().filter(|_| self.flags.has(Flags::SACK)) else {
            return 0;
        };
        let blocks = blocks.as_slice();
        let held = |block: &&SackBlock| {
            block.left.after(self.snd.una)
                && block.left.before(block.right)
                && block.right.at_or_before(self.snd.max)
        };
        let skipped = usize::from(reports_duplicate(blocks, seg.header.ack));
        let octets = blocks.iter().skip(skipped).filter(held);
        octets.map(|block| block.right.offset_from(block.left)).sum()
    }

    /// Takes SEG.WND. Returns whether it changed.
    #[inline(always)]
    pub(super) fn take_window(&mut self, cx: &Context<'_>, seg: &RxSegment<'_>) -> bool {
        // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (...) MUST NOT
        // be scaled."
        let syn = seg.header.flags.contains(TcpFlags::SYN);
        let scale = if syn { WindowScale::ZERO } else { self.send_scale };
        let wnd = seg.header.window.scaled(scale);
        let changed = self.snd.update_window(seg.header.seq, seg.header.ack, wnd);
        if changed && (self.flags.has(Flags::PERSIST) || self.is_stalled()) {
            self.on_stalled_window(cx);
        }
        changed
    }

    /// The window of a stalled connection changed, or one that changed stalls it.
    fn on_stalled_window(&mut self, cx: &Context<'_>) {
        let stalled = self.flags.has(Flags::PERSIST);
        self.rearm_retransmission(cx);
        // Once more is admitted than was probed with, it is no longer a stall.
        if stalled && !self.flags.has(Flags::PERSIST) {
            self.ledger.tally.waits_since = cx.tick;
            self.attempts = 0;
            self.rtt.end_back_off();
            self.restart_after_idle(cx);
        }
    }

    /// Our FIN is acknowledged.
    fn on_fin_acked(&mut self, cx: &mut Context<'_>) -> Step {
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
    fn measure(&mut self, cx: &Context<'_>, seg: &RxSegment<'_>, ack: SeqNum) {
        // The timed segment is measured in microseconds, the echo in milliseconds; after a
        // retransmission only the echo tells which copy arrived.
        let timed = self.rtt.finish_timing(ack, cx.now);
        if let Some(rtt) = timed.or_else(|| self.echoed(cx, seg)) {
            self.rtt.on_sample(rtt, cx.tunables);
            self.ledger.tally.on_round_trip(rtt, cx.tick);
        }
    }

    /// The time since what a segment echoes was sent.
    fn echoed(&self, cx: &Context<'_>, seg: &RxSegment<'_>) -> Option<Micros> {
        // What came twice is acknowledged with the echo of its first copy (RFC 7323 5.3 R2), whose own
        // acknowledgment was lost: the time since then is a time-out, and measuring it as a round
        // trip makes the next one longer still.
        if !self.flags.has(Flags::TIMESTAMPS) || tells_of_duplicate(seg) {
            return None;
        }
        // RFC 7323 4.1: "A TSecr value received in a segment MAY be used to update the averaged
        // RTT measurement only if the segment advances the left edge of the send window, i.e.,
        // SND.UNA is increased."
        let stamps = seg.header.options.timestamps.filter(|stamps| stamps.ecr != 0)?;
        let sent = stamps.ecr.wrapping_sub(self.stamps.offset);
        let millis = cx.tick.raw().wrapping_sub(sent);
        let trip = (millis < ECHO_LIMIT_MILLIS).then(|| Micros::new(millis.wrapping_mul(1_000)))?;
        // Without SACK nobody tells of such a duplicate: an echo from before the time-out that sent
        // it again is as ambiguous as no echo (RFC 6298 3, Karn's algorithm).
        let ambiguous = self.recovery.ca_state() == CaState::Loss
            && Duration::from(trip) >= self.rtt.first_rto(cx.tunables);
        (!ambiguous).then_some(trip)
    }

    /// Tells a waiting application that there is room again.
    #[inline]
    pub(super) fn tell_room(&mut self) {
        if self.flags.has(Flags::WANTS_ROOM) {
            self.judge_room();
        }
    }

    fn judge_room(&mut self) {
        // Not for each segment: once a third of the buffer is free, as waking costs more than
        // a segment.
        let enough = match self.unsent_low_water() {
            // As Linux: half of what may wait unsent is to be gone.
            Some(most) => self.unsent() < most.div_ceil(2) && self.send_room() > 0,
            None => self.send_room() >= (self.send_limit() / 3).min(self.drained_soon()),
        };
        if enough {
            self.flags.clear(Flags::WANTS_ROOM);
            self.signals.raise(Signals::WRITABLE);
        }
    }

    /// What the path takes in a millisecond, if all of a full buffer was sent: while the application
    /// sleeps the path runs dry. Waiting for a third, 256 KiB carried 19.6 Mb/s over 70 ms, and not
    /// the 29.1 that a buffer in each round trip makes.
    fn drained_soon(&self) -> u32 {
        let srtt = self.rtt.srtt().filter(|_| self.unsent() == 0).unwrap_or_default();
        let millis = u32::try_from(srtt.as_millis()).unwrap_or(u32::MAX);
        self.send_size.checked_div(millis).unwrap_or(u32::MAX)
    }

    /// How many full segments so many numbers (>= 1) are, rounded up: without a division where it is one.
    fn in_segments(&self, numbers: u32) -> u32 {
        let mss = u32::from(self.mss).max(1);
        if numbers <= mss { 1 } else { numbers.div_ceil(mss) }
    }

    pub(super) fn flight(&self) -> Flight {
        Flight {
            octets: self.snd.max.offset_from(self.snd.una),
            max: self.snd.max,
            mss: u32::from(self.mss),
        }
    }
}

/// An echo older than this was never ours: 2^31 ms would be ambiguous, ten minutes are absurd.
const ECHO_LIMIT_MILLIS: u32 = 600_000;

/// Whether a segment tells of text that came twice.
#[inline]
fn tells_of_duplicate(seg: &RxSegment<'_>) -> bool {
    let blocks = seg.header.options.sack();
    blocks.is_some_and(|blocks| reports_duplicate(blocks.as_slice(), seg.header.ack))
}

/// RFC 2883 4: the first block reports a duplicate if it lies below the acknowledgment, or within
/// the second block.
fn reports_duplicate(blocks: &[SackBlock], ack: SeqNum) -> bool {
    let [first, others @ ..] = blocks else { return false };
    let within = |outer: &SackBlock| {
        first.left.at_or_after(outer.left) && first.right.at_or_before(outer.right)
    };
    first.right.at_or_before(ack) || others.first().is_some_and(within)
}
