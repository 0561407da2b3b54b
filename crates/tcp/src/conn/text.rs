//! Sixth and seventh: urgent data and the segment's text (RFC 9293 3.10.7.4).

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;

use crate::budget::Pressure;
use crate::conn::{Connection, Flags, Read, State};
use crate::verdict::{Continue, Done, DropReason, Reply, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    /// Sixth: URG. Urgent bytes stay in the stream; the application learns where they end
    /// (RFC 6093 5: "new applications SHOULD NOT employ the TCP urgent mechanism", and those that
    /// do are to read it inline).
    // Always: every segment comes here.
    #[inline(always)]
    pub(super) fn check_urg(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        if !seg.header.flags.contains(TcpFlags::URG) {
            return;
        }
        let receiving = matches!(
            self.transfer.tcb.state,
            State::Established | State::FinWait1 | State::FinWait2
        );
        if receiving {
            self.transfer.tcb.take_urgent(cx, seg);
        }
    }

    // Always, and what it calls never: of most segments it is a comparison.
    #[inline(always)]
    pub(super) fn take_text(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        if seg.payload.is_empty() { Continue(()) } else { self.process_text(cx, seg) }
    }

    #[inline(never)]
    fn process_text(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let len = seg.payload.len();
        match self.transfer.tcb.state {
            State::Established | State::FinWait1 | State::FinWait2 => {}
            // RFC 9293 3.10.7.4: "This should not occur since a FIN has been received from the
            // remote side. Ignore the segment text."
            _ => {
                cold_path();
                return Continue(());
            }
        }
        let (seq, text) = (seg.text_seq(), self.transfer.tcb.receiver.clip(seg, len));
        if text.take == 0 {
            // A probe of a closed window, or text before it.
            self.transfer.tcb.note_duplicate(cx, seq, seq + text.skip);
            self.transfer.tcb.receiver.owe_ack();
            return Continue(());
        }
        let ahead = (seq + text.skip).offset_from(self.transfer.tcb.receiver.nxt());
        let mut text = self.transfer.tcb.up_to_fin(ahead, text);
        if text.take == 0 {
            cold_path();
            self.transfer.tcb.receiver.owe_ack();
            return Done(Verdict::Drop(DropReason::FinConflict));
        }
        if self.transfer.tcb.flags.has(Flags::ECN_OR_READ_SHUTDOWN) {
            cold_path();
            if self.transfer.tcb.flags.has(Flags::ECN) {
                self.transfer.tcb.note_mark(seg);
            }
            if let Some(reason) = self.transfer.tcb.judge_read_shutdown(&cx.tunables) {
                // RFC 9293 3.6.1: "If (...) new data is received after CLOSE is called, its TCP
                // implementation SHOULD send a RST to show that data was lost."
                cx.counters.abort_on_data += 1;
                self.end(cx, reason);
                let reset = Reply::reset_for(seg).stamped(self.transfer.own_timestamps(cx));
                return Done(Verdict::Reply(reset, DropReason::DataAfterClose));
            }
        }
        // RFC 2883 4.2: "the first D-SACK block reports the first duplicate sub-segment."
        if text.skip > 0 {
            self.transfer.tcb.note_duplicate(cx, seq, seq + text.skip);
        } else if let Some((from, to)) = self.transfer.tcb.overlap(ahead, text) {
            self.transfer.tcb.note_duplicate(
                cx,
                self.transfer.tcb.receiver.nxt() + from,
                self.transfer.tcb.receiver.nxt() + to,
            );
        }
        if cx.pool.budget.pressure() >= Pressure::Tight {
            cold_path();
            let size = if seg.meta.gso_size > 0 { u32::from(seg.meta.gso_size) } else { len };
            text = self.transfer.tcb.process_under_pressure(cx, text, ahead, size)?;
        }
        if ahead == 0 {
            self.transfer.take_in_order(cx, seg, text);
            Continue(())
        } else {
            self.transfer.tcb.take_out_of_order(cx, seg, text, ahead)
        }
    }

    /// The application reads the next bytes.
    pub fn read(&mut self, cx: &mut Context) -> Read {
        self.read_up_to(cx, usize::MAX)
    }

    /// The application reads the next bytes, at most `most` (>= 1) of them.
    pub fn read_up_to(&mut self, cx: &mut Context, most: usize) -> Read {
        self.transfer.tcb.update_memory_limit(cx);
        if cx.pool.budget.pressure() >= Pressure::Tight && self.transfer.tcb.falls_behind(cx) {
            cold_path();
            self.transfer.tcb.give_up_growth(cx);
        }
        if let Some(data) =
            self.transfer.tcb.buffers.as_mut().and_then(|buffers| buffers.recv.read(most))
        {
            self.transfer.tcb.account_buffers(cx);
            return Read::Data(data);
        }
        match self.transfer.tcb.closed {
            // The peer's stream is complete, whatever ended the connection.
            _ if self.transfer.tcb.receiver.fin_received() => Read::End,
            Some(reason) => Read::Closed(reason),
            None => Read::Pending,
        }
    }
}
