//! Explicit congestion notification (RFC 3168): its negotiation, and marks of what arrives.

use whimbrel_wire::tcp::TcpFlags;

use crate::RxSegment;
use crate::conn::Flags;
use crate::conn::tcb::Tcb;

impl Tcb {
    /// The connection uses ECN, as both SYNs agreed.
    pub(in crate::conn) const fn set_ecn(&mut self) {
        self.flags.set(Flags::ECN);
    }

    /// Takes the peer's SYN or SYN-ACK, where ours asks for ECN or agreed to it: any but one that agrees, too, ends
    /// that.
    #[cold]
    pub(in crate::conn) fn negotiate_ecn(&mut self, flags: TcpFlags) {
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
        // What became of the SYNs is no reduction.
        let _ = self.sender.take_reduced();
    }

    /// Text arrives, some of it in the window.
    // RFC 3168 6.1.5: "the TCP data receiver SHOULD ignore the CE codepoint on out-of-window packets".
    #[cold]
    pub(in crate::conn) fn note_mark(&mut self, seg: &RxSegment<'_>) {
        // On a SYN CWR asks for ECN, and RFC 3168 6.1.1 allows no mark: "A host MUST NOT set ECT on SYN".
        if seg.header.flags.contains(TcpFlags::SYN) {
            return;
        }
        // RFC 3168 6.1.3: "After the receipt of the CWR packet, acknowledgments for subsequent non-CE data
        // packets do not have the ECN-Echo flag set."
        if seg.header.flags.contains(TcpFlags::CWR) {
            self.flags.clear(Flags::ECHO);
        }
        if seg.ce && !self.flags.has(Flags::ECHO) {
            self.flags.set(Flags::ECHO);
            // The sooner the sender hears of it the shorter is the queue; as Linux. Text beyond a hole is
            // acknowledged at once anyway.
            if seg.text_seq().at_or_before(self.receiver.nxt()) {
                self.receiver.owe_ack();
            }
        }
    }
}
