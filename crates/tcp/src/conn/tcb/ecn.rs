//! Explicit congestion notification (RFC 3168): its negotiation, marks of what arrives, and echoes of marks.

use whimbrel_wire::Ecn;
use whimbrel_wire::tcp::TcpFlags;

use crate::conn::marks::{EcnFeedback, MarkCounters, Report, reported};
use crate::conn::tcb::Tcb;
use crate::conn::{Connection, Flags};
use crate::send::AckPlace;
use crate::{Context, RxSegment};

impl Connection {
    /// The connection, which began with the peer's SYN, uses ECN as both SYNs agreed.
    pub fn set_ecn(&mut self, feedback: EcnFeedback) {
        let tcb = &mut self.transfer.tcb;
        match feedback {
            EcnFeedback::None => {}
            EcnFeedback::Classic => tcb.flags.set(Flags::ECN),
            EcnFeedback::Accurate { syn, may_be_marked } => {
                tcb.begin_accurate_ecn(syn, Report::Peers);
                tcb.flags.set_if(Flags::NO_ECT, !may_be_marked);
            }
        }
    }
}

impl Tcb {
    /// Takes the peer's SYN or SYN-ACK, where ours asks for ECN or agreed to it: any but one that agrees, too, ends
    /// that.
    #[cold]
    pub(in crate::conn) fn negotiate_ecn(&mut self, seg: &RxSegment<'_>) {
        // What became of the SYNs is no reduction.
        let _ = self.sender.take_reduced();
        if self.flags.has(Flags::ACCURATE) {
            self.negotiate_accurate_ecn(seg);
            if self.flags.has(Flags::ACCURATE) {
                return;
            }
        }
        let flags = seg.header.flags;
        // RFC 3168 6.1.1: "we call a SYN-ACK packet with only the ECE flag set but the CWR flag not set an
        // 'ECN-setup SYN-ACK packet'". Both are what a peer sends that reflects reserved bits (6.1.1.2).
        let agrees = match flags.contains(TcpFlags::ACK) {
            true => TcpFlags::ECE,
            false => TcpFlags::ECN_SETUP,
        };
        if flags.intersection(TcpFlags::ECN_SETUP) != agrees {
            // RFC 3168 6.1.1: "If a host has received at least one non-ECN-setup SYN or non-ECN-setup
            // SYN-ACK packet, then it SHOULD NOT set ECT on data packets."
            self.flags.clear(Flags::ECN);
        }
    }

    /// Text arrives that is in the window, and new.
    // RFC 3168 6.1.5: "the TCP data receiver SHOULD ignore the CE codepoint on out-of-window packets".
    #[cold]
    pub(in crate::conn) fn note_mark(&mut self, seg: &RxSegment<'_>) {
        // On a SYN CWR asks for ECN, and RFC 3168 6.1.1 allows no mark: "A host MUST NOT set ECT on SYN".
        if seg.header.flags.contains(TcpFlags::SYN) || self.flags.has(Flags::ACCURATE) {
            return;
        }
        // RFC 3168 6.1.3: "After the receipt of the CWR packet, acknowledgments for subsequent non-CE data
        // packets do not have the ECN-Echo flag set."
        if seg.header.flags.contains(TcpFlags::CWR) {
            self.flags.clear(Flags::ECHO);
        }
        if seg.class.ecn() == Ecn::Ce && !self.flags.has(Flags::ECHO) {
            self.flags.set(Flags::ECHO);
            // The sooner the sender hears of it the shorter is the queue; as Linux. Text beyond a hole is
            // acknowledged at once anyway.
            if seg.text_seq().at_or_before(self.receiver.nxt()) {
                self.receiver.owe_ack();
            }
        }
    }

    /// The control bits with which our SYN asks for ECN, or our SYN-ACK agrees to it.
    #[cold]
    pub(in crate::conn) fn ecn_of_syn(&mut self, cx: &mut Context, syn: TcpFlags) -> TcpFlags {
        // RFC 9768 3.1.4.1: it "SHOULD attempt to negotiate the use of AccECN at least one more time"; 3.2.3.2.2 of
        // SYN-ACKs alike.
        let is_accurate = self.flags.has(Flags::ACCURATE);
        let most = u8::from(is_accurate);
        let may_fall_back = is_accurate || !syn.contains(TcpFlags::ACK);
        if self.sender.attempts() > most && may_fall_back && cx.tunables.ecn_fallback {
            // RFC 3168 6.1.1.1: "A host that receives no reply to an ECN-setup SYN within the normal SYN
            // retransmission timeout interval MAY resend the SYN and any subsequent SYN retransmissions
            // with CWR and ECE cleared."
            cx.counters.ecn_fallbacks += u64::from(!self.flags.has(Flags::NO_ECT));
            self.flags.set(Flags::NO_ECT);
        }
        match () {
            () if self.flags.has(Flags::NO_ECT) => TcpFlags::NONE,
            () if is_accurate => match self.counts.marks_mut() {
                Some(marks) if syn.is_ack() => TcpFlags::from_ace(reported(marks.opening)),
                _ => TcpFlags::ACE,
            },
            // RFC 3168 6.1.1: "When Host B sends an ECN-setup SYN-ACK packet, it sets the ECE flag but not the
            // CWR flag."
            () if syn.contains(TcpFlags::ACK) => TcpFlags::ECE,
            () => TcpFlags::ECN_SETUP,
        }
    }

    /// ECE arrives. It says that a router marked what was sent, if ECN was negotiated and its segment's
    /// numbers are acceptable.
    pub(in crate::conn) fn on_echo(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        if !self.flags.has(Flags::ECN)
            || self.sender.has_syn()
            || !seg.header.flags.contains(TcpFlags::ACK)
        {
            return;
        }
        match self.sender.seq().judge_ack(seg.header.ack) {
            AckPlace::New(numbers) => {
                let segs = self.sender.in_segments(numbers);
                cx.counters.delivered_ce += u64::from(segs);
                self.cold_mut().count_delivered_ce(segs);
            }
            AckPlace::Current => {}
            _ => return,
        }
        if let Some(buffers) = self.buffers.as_deref_mut() {
            self.sender.on_echo(cx, seg.header.ack, &mut buffers.send);
        }
    }

    /// Takes the ECN bits of the segment that is being made, with `bytes` of text.
    // Out of line, and a number: what it returned in memory would have each segment made there.
    #[cold]
    #[inline(never)]
    pub(in crate::conn) fn take_ecn_bits(&mut self, bytes: u32) -> EcnBits {
        // RFC 3168 6.1.5, 6.1.6: neither what goes again nor a window probe has ECT.
        let is_new = !self.flags.take(Flags::AGAIN) && bytes > 0;
        if !self.flags.has(Flags::ECN) {
            return EcnBits { flags: TcpFlags::NONE, is_ect: false, is_accurate: false };
        }
        if self.flags.has(Flags::ACCURATE) {
            let is_ect = is_new && !self.flags.has(Flags::NO_ECT);
            let ace = self.counts.marks_mut().map_or(0, |marks| marks.take_ace(bytes == 0));
            return EcnBits { flags: TcpFlags::from_ace(ace), is_ect, is_accurate: true };
        }
        // RFC 3168 6.1.3: it "continues to set the ECN-Echo flag in all the ACK packets it sends (whether they
        // acknowledge CE data packets or non-CE data packets) until it receives a CWR packet".
        let mut flags = if self.flags.has(Flags::ECHO) { TcpFlags::ECE } else { TcpFlags::NONE };
        // RFC 3168 6.1.1: "A host MUST NOT set ECT on data packets unless it (...) has sent no non-ECN-setup SYN".
        // Marks are echoed all the same, if the answer agrees to the first.
        let is_ect = is_new && !self.flags.has(Flags::NO_ECT);
        if is_ect && self.sender.take_reduced() {
            flags |= TcpFlags::CWR;
        }
        EcnBits { flags, is_ect, is_accurate: false }
    }
}

/// Agreement upon accurate feedback.
impl Tcb {
    /// Takes the peer's SYN or SYN-ACK, where our SYN asks for accurate feedback or our SYN-ACK agreed to it.
    #[cold]
    fn negotiate_accurate_ecn(&mut self, seg: &RxSegment<'_>) {
        let (flags, ecn) = (seg.header.flags, seg.class.ecn());
        if let Some(marks) = self.counts.marks_mut() {
            // RFC 9768 3.1.5: it "MUST NOT switch into a different feedback mode to the one it first entered", and
            // "MUST feed back the IP-ECN field on the latest valid SYN or acceptable SYN/ACK to arrive."
            marks.opening = ecn;
            if flags.ace() == 0 {
                self.flags.set(Flags::NO_ECT);
            }
            return;
        }
        // RFC 9768 3.1.2, table 2.
        match (flags.is_ack(), flags.ace()) {
            (_, 0b000) | (true, 0b111) => self.flags.clear(Flags::ACCURATE_ECN),
            (true, 0b001) | (false, 0b011) => self.flags.clear(Flags::ACCURATE),
            (true, reported) => {
                // RFC 9768 3.1.4.1: "If a TCP Client has entered AccECN mode but then subsequently sends a SYN or
                // receives a SYN/ACK with (AE,CWR,ECE) = (0,0,0), it is still allowed to set ECT".
                self.flags.clear(Flags::NO_ECT);
                self.begin_accurate_ecn(ecn, Report::Ours);
                if let Some(marks) = self.counts.marks_mut() {
                    marks.count_text(seg);
                }
                self.judge_reported(reported);
            }
            // SYNs that cross: RFC 9768 3.1.2 has it "enter the same feedback mode as it would have entered had it
            // been a responding host".
            (false, _) => self.begin_accurate_ecn(ecn, Report::Over),
        }
    }

    /// The peer's SYN or SYN-ACK, in this ECN field, is the first that agrees.
    fn begin_accurate_ecn(&mut self, opening: Ecn, report: Report) {
        self.flags.set(Flags::ACCURATE_ECN);
        self.cold_mut().marks = Some(MarkCounters::new(opening, report));
    }

    /// The peer reports in which ECN field our SYN or SYN-ACK arrived, whose own was Not-ECT.
    pub(in crate::conn) fn judge_reported(&mut self, ace: u8) {
        // RFC 9768 3.2.2.3: if "this comparison implies an invalid transition", it "is advised to send non-ECN-capable
        // packets". "The not-ECT codepoint changes" is one.
        if matches!(ace, 0b011 | 0b100 | 0b110) {
            self.flags.set(Flags::NO_ECT);
        }
        // 3.2.2.2: it "still triggers the congestion control actions necessary to respond to the CE feedback."
        if ace == reported(Ecn::Ce) {
            self.sender.on_opening_marked();
        }
    }
}

/// The ECN bits of a segment's headers.
#[derive(Clone, Copy)]
pub(in crate::conn) struct EcnBits {
    /// ECE, or nothing; or the ACE field.
    pub(in crate::conn) flags: TcpFlags,
    /// True if routers may mark it.
    pub(in crate::conn) is_ect: bool,
    /// True if marks that arrived are counted, which the segment may tell of.
    pub(in crate::conn) is_accurate: bool,
}
