//! Explicit congestion notification (RFC 3168) in our SYN, and acknowledgments that echo marks.

use whimbrel_wire::tcp::TcpFlags;

use crate::conn::Flags;
use crate::conn::transfer::Transfer;
use crate::send::AckPlace;
use crate::{Context, RxSegment};

impl Transfer {
    /// The control bits with which our SYN asks for ECN, or our SYN-ACK agrees to it.
    #[cold]
    pub(in crate::conn) fn ecn_of_syn(&mut self, cx: &mut Context, syn: TcpFlags) -> TcpFlags {
        let is_again = self.tcb.sender.attempts() > 0;
        if is_again && !syn.contains(TcpFlags::ACK) && cx.tunables.ecn_fallback {
            // RFC 3168 6.1.1.1: "A host that receives no reply to an ECN-setup SYN within the normal SYN
            // retransmission timeout interval MAY resend the SYN and any subsequent SYN retransmissions
            // with CWR and ECE cleared."
            cx.counters.ecn_fallbacks += u64::from(!self.tcb.flags.has(Flags::NO_ECT));
            self.tcb.flags.set(Flags::NO_ECT);
        }
        match () {
            () if self.tcb.flags.has(Flags::NO_ECT) => TcpFlags::NONE,
            // RFC 3168 6.1.1: "When Host B sends an ECN-setup SYN-ACK packet, it sets the ECE flag but not the
            // CWR flag."
            () if syn.contains(TcpFlags::ACK) => TcpFlags::ECE,
            () => TcpFlags::ECN_SETUP,
        }
    }

    /// Routers may mark `bytes` of new text, unless a SYN of ours forbids it. Returns the control bits that go with it.
    #[cold]
    pub(in crate::conn) fn mark_capable(&mut self, bytes: u32) -> TcpFlags {
        // RFC 3168 6.1.1: "A host MUST NOT set ECT on data packets unless it (...) has sent no non-ECN-setup SYN".
        // Marks are echoed all the same, if the answer agrees to the first.
        if bytes == 0 || self.tcb.flags.has(Flags::NO_ECT) {
            return TcpFlags::NONE;
        }
        self.tcb.flags.set(Flags::ECT);
        if self.tcb.sender.take_reduced() { TcpFlags::CWR } else { TcpFlags::NONE }
    }

    /// ECE arrives. It says that a router marked what was sent, if ECN was negotiated and its segment's
    /// numbers are acceptable.
    pub(in crate::conn) fn on_echo(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let tcb = &mut self.tcb;
        if !tcb.flags.has(Flags::ECN)
            || tcb.sender.has_syn()
            || !seg.header.flags.contains(TcpFlags::ACK)
        {
            return;
        }
        match tcb.sender.seq().judge_ack(seg.header.ack) {
            AckPlace::New(numbers) => {
                let segs = tcb.sender.in_segments(numbers);
                cx.counters.delivered_ce += u64::from(segs);
                tcb.stats.cold.count_delivered_ce(segs);
            }
            AckPlace::Current => {}
            _ => return,
        }
        if let Some(buffers) = tcb.buffers.as_deref_mut() {
            tcb.sender.on_echo(cx, seg.header.ack, &mut buffers.send);
        }
    }
}
