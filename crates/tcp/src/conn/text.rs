//! Sixth and seventh: urgent data and the segment's text (RFC 9293 3.10.7.4).

use whimbrel_base::cold_path;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{SackBlock, TcpFlags};

use super::{Connection, Flags, Read, Signals, State};
use crate::budget::Pressure;
use crate::recv::{Held, ShortTexts, Text};
use crate::tunables::TextAfterShutdown;
use crate::verdict::{CloseReason, Continue, Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment, Tunables};
use whimbrel_base::packet::Payload;

impl Connection {
    /// Sixth: URG. Urgent octets stay in the stream; the application learns where they end
    /// (RFC 6093 5: "new applications SHOULD NOT employ the TCP urgent mechanism", and those that
    /// do are to read it inline).
    // Always: every segment comes here.
    #[inline(always)]
    pub(super) fn check_urg(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let receiving =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if receiving && seg.header.flags.contains(TcpFlags::URG) {
            self.take_urgent(cx, seg);
        }
    }

    /// The peer says where its urgent data end.
    #[cold]
    fn take_urgent(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        // RFC 9293 3.8.5: "The urgent pointer MUST point to the sequence number of the octet
        // following the urgent data (MUST-62)."
        let end = seg.header.seq + u32::from(seg.header.urgent);
        // RFC 9293 3.10.7.4: "RCV.UP <- max(RCV.UP,SEG.UP), and signal the user that the remote
        // side has urgent data if the urgent pointer (RCV.UP) is in advance of the data consumed".
        let consumed = self.receiver.nxt() - self.unread();
        if end.after(consumed) {
            let ahead = end.offset_from(consumed);
            if self.buffers(cx).recv.note_urgent(ahead) {
                self.signals.raise(Signals::URGENT);
            }
        }
    }

    /// Octets to be read up to the end of the peer's urgent data, if any of it is still to come.
    pub fn urgent_mark(&self) -> Option<u32> {
        self.buffers.as_ref()?.recv.urgent_mark()
    }

    /// Bytes of text that begin at `seq` and are taken as they come: none unless that is RCV.NXT, nothing
    /// is held beyond it, and both sides may send.
    pub fn room_in_order(&self, seq: SeqNum) -> u32 {
        let held = self.buffers.as_ref().is_some_and(|buffers| buffers.recv.has_held());
        let in_order = self.state == State::Established && seq == self.receiver.nxt() && !held;
        if in_order { self.receiver.seq().wnd() } else { 0 }
    }

    // Always, and what it calls never: of most segments it is a comparison.
    #[inline(always)]
    pub(super) fn take_text(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if seg.payload.is_empty() { Continue(()) } else { self.process_text(cx, seg) }
    }

    #[inline(never)]
    fn process_text(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let len = seg.payload.len();
        match self.state {
            State::Established | State::FinWait1 | State::FinWait2 => {}
            // RFC 9293 3.10.7.4: "This should not occur since a FIN has been received from the
            // remote side. Ignore the segment text."
            _ => {
                cold_path();
                return Continue(());
            }
        }
        let (seq, text) = (seg.text_seq(), self.receiver.clip(seg, len));
        if text.take == 0 {
            // A probe of a closed window, or text before it.
            self.note_duplicate(cx, seq, seq + text.skip);
            self.receiver.owe_ack();
            return Continue(());
        }
        let ahead = (seq + text.skip).offset_from(self.receiver.nxt());
        let mut text = self.up_to_fin(ahead, text);
        if text.take == 0 {
            cold_path();
            self.receiver.owe_ack();
            return Done(Verdict::Drop(DropReason::FinConflict));
        }
        if self.flags.has(Flags::READ_SHUTDOWN)
            && let Some(reason) = self.judge_unheard(&cx.tunables)
        {
            cold_path();
            // RFC 9293 3.6.1: "If (...) new data is received after CLOSE is called, its TCP
            // implementation SHOULD send a RST to show that data was lost."
            cx.counters.abort_on_data += 1;
            self.end(cx, reason);
            let reset = Reply::reset_for(seg).stamped(self.own_timestamps(cx));
            return Done(Verdict::Reply(reset, DropReason::DataAfterClose));
        }
        // RFC 2883 4.2: "the first D-SACK block reports the first duplicate sub-segment."
        if text.skip > 0 {
            self.note_duplicate(cx, seq, seq + text.skip);
        } else if let Some((from, to)) = self.overlap(ahead, text) {
            self.note_duplicate(cx, self.receiver.nxt() + from, self.receiver.nxt() + to);
        }
        if cx.pool.budget.pressure() >= Pressure::Tight {
            cold_path();
            let size = if seg.meta.gso_size > 0 { u32::from(seg.meta.gso_size) } else { len };
            text = self.process_under_pressure(cx, text, ahead, size)?;
        }
        if ahead == 0 {
            self.take_in_order(cx, seg, text);
            Continue(())
        } else {
            self.take_out_of_order(cx, seg, text, ahead)
        }
    }

    /// With what text ends the connection that nobody will read. Whoever shut both directions down
    /// closed it, in the words of RFC 9293, and still holds the descriptor.
    #[cold]
    fn judge_unheard(&self, tunables: &Tunables) -> Option<CloseReason> {
        if self.flags.has(Flags::ORPHAN) {
            return Some(CloseReason::Aborted);
        }
        let resets = tunables.text_after_shutdown == TextAfterShutdown::Reset;
        (resets && self.state != State::Established).then_some(CloseReason::Reset)
    }

    fn take_in_order(&mut self, cx: &mut Context, seg: &RxSegment<'_>, text: Text) {
        let buffers = self.buffers(cx);
        let had_held = buffers.recv.has_held();
        let is_first = buffers.recv.unread() == 0;
        let advance = match short(&seg.payload, text) {
            // What most short connections receive: one request, which is read at once.
            Some(short) if buffers.recv.is_empty() => {
                let chunk = cx.pool.short_texts.keep(short);
                buffers.recv.append_chunk(chunk, ShortTexts::CHUNK as u32);
                text.take
            }
            _ => buffers.recv.append(&mut cx.pool.chunks, seg.payload, text.skip, text.take),
        };
        self.receiver.advance(advance);
        self.note_received(cx, seg, advance, is_first);
        self.signals.raise(Signals::READABLE);
        let unacked = self.receiver.count_segs(seg.meta.segs);
        // RFC 5681 3.2: "a TCP receiver SHOULD send an immediate ACK when the incoming segment
        // fills in all or part of a gap in the sequence space." Text that did not fit is
        // acknowledged at once too, so that the sender learns how much did.
        let clipped = text.skip + text.take < seg.payload.len();
        let (every, delay) = (u16::from(cx.tunables.ack_every), cx.tunables.delayed_ack);
        let at_once = self.acks_at_once() || delay.is_zero();
        if had_held || clipped || unacked >= every || at_once {
            self.receiver.owe_ack();
        } else {
            self.timers.delay_ack(cx.now, delay);
        }
    }

    /// `advance` more octets are in order; before them nothing was unread, if they are the first.
    #[inline]
    fn note_received(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        advance: u32,
        is_first: bool,
    ) {
        let stats = &mut *self.stats;
        stats.tally.bytes_received += u64::from(advance);
        if is_first {
            stats.sizing.note_first_unread(cx.tick);
        }
        if stats.sizing.is_due(stats.tally.bytes_received, self.receiver.size()) {
            self.right_size(cx, seg);
        }
    }

    #[inline(never)]
    fn take_out_of_order(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        text: Text,
        ahead: u32,
    ) -> Step {
        let limit = self.max_ranges(&cx.tunables);
        let held = self.buffers(cx).recv.hold(ahead, seg.payload, text, limit);
        // Be it ever so little: a byte beyond a gap can pin many.
        if let Some(buffers) = self.buffers.as_mut() {
            buffers.account(cx);
        }
        // RFC 5681 3.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-
        // order segment arrives."
        self.receiver.owe_duplicate();
        match held {
            Held::Kept => {
                cx.counters.out_of_order += 1;
                Continue(())
            }
            Held::Duplicate => {
                if seg.header.flags.contains(TcpFlags::FIN) {
                    // Its text came before, its FIN may be new.
                    return Continue(());
                }
                Done(Verdict::Drop(DropReason::OldData))
            }
            Held::Refused => Done(Verdict::Drop(DropReason::OutOfOrderLimit)),
        }
    }

    /// The application reads the next octets.
    pub fn read(&mut self, cx: &mut Context) -> Read {
        self.read_up_to(cx, usize::MAX)
    }

    /// The application reads the next octets, at most `most` (>= 1) of them.
    pub fn read_up_to(&mut self, cx: &mut Context, most: usize) -> Read {
        self.update_pinch(cx);
        if cx.pool.budget.pressure() >= Pressure::Tight && self.falls_behind(cx) {
            cold_path();
            self.give_up_growth(cx);
        }
        if let Some(data) = self.buffers.as_mut().and_then(|buffers| buffers.recv.read(most)) {
            self.account_buffers(cx);
            return Read::Data(data);
        }
        match self.closed {
            // The peer's stream is complete, whatever ended the connection.
            _ if self.receiver.fin_received() => Read::End,
            Some(reason) => Read::Closed(reason),
            None => Read::Pending,
        }
    }

    /// What can be read, piece by piece; it stays unread.
    pub fn peek(&self) -> impl Iterator<Item = &[u8]> {
        self.buffers.iter().flat_map(|buffers| buffers.recv.peek())
    }

    /// Where the first part of the text that is held out of order already begins and ends, in octets
    /// beyond RCV.NXT.
    #[inline]
    fn overlap(&self, ahead: u32, text: Text) -> Option<(u32, u32)> {
        self.buffers.as_ref()?.recv.overlap(ahead, text.take)
    }

    /// What of the text, `ahead` octets beyond RCV.NXT, lies in front of the peer's FIN, if that waits.
    #[inline]
    fn up_to_fin(&self, ahead: u32, text: Text) -> Text {
        self.buffers.as_ref().map_or(text, |buffers| buffers.recv.up_to_fin(ahead, text))
    }

    /// RFC 2883 4: text that arrived twice is named in the first SACK block of the next
    /// acknowledgment. Of several that come before that the first is named: the others might as well have
    /// been lost with their acknowledgments.
    // Out of line: several ask for it, and of most segments nothing came twice.
    #[inline(never)]
    pub(super) fn note_duplicate(&mut self, cx: &mut Context, left: SeqNum, right: SeqNum) {
        if self.flags.has(Flags::SACK) && left != right {
            self.buffers(cx).duplicate.get_or_insert(SackBlock { left, right });
        }
    }

    /// Whether reading freed so much that the peer should hear of it without waiting for an
    /// acknowledgment to carry the news.
    #[inline]
    pub(super) fn owes_window_update(&self) -> bool {
        self.receiver.window_update_possible() && self.judge_update()
    }

    fn judge_update(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
            && self.receiver.window_update_pending(&self.window_bounds())
    }
}

/// The part of a payload that lies in the window, if it is in the device's memory and short.
#[inline]
fn short<'a>(payload: &Payload<'a>, text: Text) -> Option<&'a [u8]> {
    let Payload::Borrowed(octets) = *payload else { return None };
    let from = text.skip as usize;
    let octets = octets.get(from..from + text.take as usize)?;
    (octets.len() <= ShortTexts::MOST).then_some(octets)
}
