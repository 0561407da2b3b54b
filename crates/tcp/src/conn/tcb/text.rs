//! Text that arrives: what is held, what came twice, and what waits for the end of the handshake.

use whimbrel_base::packet::Payload;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{SackBlock, TcpFlags};

use crate::conn::tcb::Tcb;
use crate::conn::{Flags, Signals, State};
use crate::recv::{Held, Text};
use crate::tunables::TextAfterShutdown;
use crate::verdict::{CloseReason, Continue, Done, DropReason, Step, Verdict};
use crate::{Context, RxSegment, Tunables};

impl Tcb {
    /// A SYN that crossed ours brings more. RFC 9293 3.10.7.3: "If there are other controls or text in
    /// the segment, queue them for processing after the ESTABLISHED state has been reached, return." As
    /// much as the window admits that our SYN announced; the rest comes again.
    #[cold]
    pub(in crate::conn) fn queue_with_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let len = seg.payload.len();
        let text = self.receiver.clip(seg, len);
        let limit = self.max_ranges(&cx.tunables);
        let recv = &mut self.buffers(cx).recv;
        let text = recv.up_to_fin(0, text);
        if text.take > 0 {
            let _held = recv.hold(0, seg.payload, text, limit);
        }
        if seg.header.flags.contains(TcpFlags::FIN) && text.take == len {
            recv.note_fin(len);
        }
    }

    /// ESTABLISHED is reached: the text that was queued is in order. A FIN behind it is taken with the
    /// segment that is being looked at.
    pub(in crate::conn) fn take_queued(&mut self, cx: &mut Context) {
        let Some(buffers) = self.buffers.as_mut().filter(|buffers| buffers.recv.has_held()) else {
            return;
        };
        buffers.unread_since = cx.tick;
        let advance = buffers.recv.append(&mut cx.pool.chunks, Payload::NONE, 0, 0);
        self.receiver.advance(advance);
        self.counts.on_text(advance);
        self.signals.raise(Signals::READABLE);
        self.receiver.owe_ack();
    }

    /// The peer says where its urgent data end.
    #[cold]
    pub(in crate::conn) fn take_urgent(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
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

    /// Bytes to be read up to the end of the peer's urgent data, if any of it is still to come.
    pub(in crate::conn) fn urgent_mark(&self) -> Option<u32> {
        self.buffers.as_ref()?.recv.urgent_mark()
    }

    /// Bytes of text that begin at `seq` and are taken as they come: none unless that is RCV.NXT, nothing
    /// is held beyond it, and both sides may send.
    pub(in crate::conn) fn room_in_order(&self, seq: SeqNum) -> u32 {
        let held = self.buffers.as_ref().is_some_and(|buffers| buffers.recv.has_held());
        let in_order = self.state == State::Established && seq == self.receiver.nxt() && !held;
        if in_order { self.receiver.seq().wnd() } else { 0 }
    }

    /// The reason with which text ends a connection that will not read it. An application that shut both directions down
    /// closed it, in the words of RFC 9293, and still holds the descriptor.
    #[cold]
    pub(in crate::conn) fn judge_read_shutdown(&self, tunables: &Tunables) -> Option<CloseReason> {
        if self.flags.has(Flags::ORPHAN) {
            return Some(CloseReason::Aborted);
        }
        let resets = tunables.text_after_shutdown == TextAfterShutdown::Reset;
        (resets && self.flags.has(Flags::DEAF) && self.state != State::Established)
            .then_some(CloseReason::Reset)
    }

    #[inline(never)]
    pub(in crate::conn) fn take_out_of_order(
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

    /// Returns the text that can be read, piece by piece; it stays unread.
    pub(in crate::conn) fn peek(&self) -> impl Iterator<Item = &[u8]> {
        self.buffers.iter().flat_map(|buffers| buffers.recv.peek())
    }

    /// Returns the start and the end of the first part of the text that is already held out of order, in
    /// bytes beyond RCV.NXT.
    #[inline]
    pub(in crate::conn) fn overlap(&self, ahead: u32, text: Text) -> Option<(u32, u32)> {
        self.buffers.as_ref()?.recv.overlap(ahead, text.take)
    }

    /// The part of the text, `ahead` bytes beyond RCV.NXT, that lies in front of the peer's FIN, if that waits.
    #[inline]
    pub(in crate::conn) fn up_to_fin(&self, ahead: u32, text: Text) -> Text {
        self.buffers.as_ref().map_or(text, |buffers| buffers.recv.up_to_fin(ahead, text))
    }

    /// RFC 2883 4: text that arrived twice is named in the first SACK block of the next
    /// acknowledgment. Of several that come before that the first is named: the others might as well have
    /// been lost with their acknowledgments.
    // Out of line: several ask for it, and of most segments nothing came twice.
    #[inline(never)]
    pub(in crate::conn) fn note_duplicate(
        &mut self,
        cx: &mut Context,
        left: SeqNum,
        right: SeqNum,
    ) {
        if self.flags.has(Flags::SACK) && left != right {
            self.buffers(cx).duplicate.get_or_insert(SackBlock { left, right });
        }
    }
}
