//! Accurate ECN (RFC 9768) of a connection: marks that arrive and feedback of the peer's, and segments that bring ours.

use whimbrel_wire::Ecn;
use whimbrel_wire::tcp::{AccurateEcn, SackBlocks, TcpFlags, TcpOptions};

use crate::conn::marks::Report;
use crate::conn::output::{Feedback, RareOptions};
use crate::conn::tcb::EcnBits;
use crate::conn::{Connection, Flags};
use crate::send::AckPlace;
use crate::{Context, RxSegment};

/// Marks and feedback that segments of the peer's bring.
impl Connection {
    /// A segment that is not a SYN arrives, and its numbers are acceptable.
    #[cold]
    pub(super) fn take_accurate_ecn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let recent = self.transfer.stamps.recent;
        let tcb = &mut self.transfer.tcb;
        let Some(marks) = tcb.counts.marks_mut() else { return };
        // Text beyond a hole is acknowledged at once anyway.
        if marks.count(seg) && seg.header.seq.at_or_before(tcb.receiver.nxt()) {
            tcb.receiver.owe_ack();
        }
        let header = &seg.header;
        if !header.flags.is_ack() {
            return;
        }
        // RFC 9768 3.2.2.2: "it first checks whether it has already been superseded (...) by another ACK in which
        // case it ignores the ECN feedback." What acknowledges nothing new shows its age by its timestamp alone.
        let is_current = |val: u32| val.wrapping_sub(recent).cast_signed() >= 0;
        let is_report = marks.report == Report::Peers;
        let segs = match tcb.sender.seq().judge_ack(header.ack) {
            AckPlace::New(numbers) => tcb.sender.in_segments(numbers),
            AckPlace::Current if is_report => 0,
            AckPlace::Current if header.options.timestamps.is_some_and(|it| is_current(it.val)) => {
                0
            }
            _ => return,
        };
        if is_report {
            marks.report = Report::Over;
            if seg.payload.is_empty() && header.options.whole().sack.is_empty() {
                return self.take_report(header.flags.ace());
            }
        }
        self.take_feedback(cx, seg, segs);
    }

    /// The acknowledgment of our SYN-ACK reports in which ECN field that arrived: RFC 9768 3.2.2.1, table 4.
    fn take_report(&mut self, ace: u8) {
        let tcb = &mut self.transfer.tcb;
        let Some(marks) = tcb.counts.marks_mut() else { return };
        match ace {
            // "for the rest of the connection the Server MUST NOT set ECT on outgoing packets and MUST NOT respond to
            // AccECN feedback."
            0b000 => {
                marks.is_deaf = true;
                tcb.flags.set(Flags::NO_ECT);
            }
            // 3.2.2.2: it "MUST increment s.cep (from 5 to 6)."
            0b110 => marks.peer_ce_packets += 1,
            _ => {}
        }
        tcb.judge_reported(ace);
    }

    /// An acknowledgment of `segs` segments brings counters. They are taken before all else that it says, because they
    /// concern what is in flight until then.
    fn take_feedback(&mut self, cx: &mut Context, seg: &RxSegment<'_>, segs: u32) {
        let tcb = &mut self.transfer.tcb;
        let Some(marks) = tcb.counts.marks_mut() else { return };
        let mss = u32::from(tcb.sender.mss()).max(1);
        let options = seg.header.options.whole();
        let ace = seg.header.flags.ace();
        let (packets, agree) = marks.take(ace, options.accurate_ecn, segs, mss);
        let is_deaf = marks.is_deaf;
        // Of segments beyond a hole it is not known how many arrived.
        if !agree && segs > 0 && options.sack.is_empty() {
            // RFC 9768 3.2.3.2.5: "the Data Sender MUST disable sending ECN-capable packets for the remainder of the
            // half-connection".
            tcb.flags.set(Flags::NO_ECT);
        }
        if packets == 0 || is_deaf {
            return;
        }
        cx.counters.delivered_ce += u64::from(packets);
        tcb.cold_mut().count_delivered_ce(packets);
        if let Some(buffers) = tcb.buffers.as_deref_mut() {
            tcb.sender.on_echo(cx, seg.header.ack, &mut buffers.send);
        }
    }

    /// A SYN comes again, and is answered by an acknowledgment.
    // RFC 9768 3.2.2.1: "The TCP Client MUST also use the handshake encoding for the pure ACK of any retransmitted
    // SYN/ACK that confirms that the TCP Server supports AccECN."
    pub(super) fn note_syn_ack_again(&mut self, seg: &RxSegment<'_>) {
        let tcb = &mut self.transfer.tcb;
        let (flags, nxt) = (seg.header.flags, tcb.receiver.nxt());
        if let Some(marks) = tcb.counts.marks_mut()
            && flags.contains(TcpFlags::SYN_ACK)
            && matches!(flags.ace(), 0b010..=0b110)
            && seg.header.seq + 1 == nxt
        {
            marks.opening = seg.class.ecn();
            marks.report = Report::Ours;
        }
    }
}

/// Feedback in segments that leave.
impl Connection {
    /// Makes the rare parts of the segment that is being made, with `text` bytes of text in each segment cut from it:
    /// the ranges in `rare`, and counters.
    #[cold]
    #[inline(never)]
    pub(super) fn feedback(&mut self, text: u32, rare: RareOptions, ecn: EcnBits) -> RareOptions {
        let mut ranges =
            if let RareOptions::Sack(ranges) = rare { ranges } else { SackBlocks::NONE };
        let counters = self.take_option(text, &mut ranges);
        let ecn = if ecn.is_ect { Ecn::Ect0 } else { Ecn::NotEct };
        RareOptions::Feedback(Feedback { ecn, ranges, counters })
    }

    /// Takes the counters of bytes, if they are owed and there is room for them with `text` bytes of text and with at
    /// least two of the `ranges`; those that have no room with them go.
    fn take_option(&mut self, text: u32, ranges: &mut SackBlocks) -> Option<AccurateEcn> {
        let tcb = &mut self.transfer.tcb;
        let stamps = if tcb.flags.has(Flags::TIMESTAMPS) { 12 } else { 0 };
        let mss = u32::from(tcb.sender.mss());
        let marks = tcb.counts.marks_mut().filter(|marks| marks.owes_option)?;
        let (option, len) = marks.option();
        // RFC 9768 3.2.3.3: if "the smallest recommended AccECN Option would leave insufficient space for two SACK
        // blocks on a particular ACK, the Data Receiver MUST give precedence to the SACK option".
        let blocks = (TcpOptions::MAX_LEN - stamps - len).saturating_sub(4) / 8;
        let has_room = ranges.as_slice().len() <= blocks || blocks >= 2;
        if !has_room || text > 0 && (!ranges.is_empty() || text + len as u32 > mss) {
            return None;
        }
        ranges.truncate(blocks);
        marks.owes_option = false;
        Some(option)
    }
}
