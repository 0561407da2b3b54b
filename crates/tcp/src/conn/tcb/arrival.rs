//! Judgement of an arriving segment by both sequence spaces; nothing is changed.

use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::TcpFlags;

use crate::RxSegment;
use crate::conn::State;
use crate::conn::tcb::Tcb;
use crate::send::AckPlace;

impl Tcb {
    /// Judges the place of SEG.ACK. Below SND.UNA nothing counts that was never sent: RFC 5961 5.2 bounds what
    /// is too old by the largest window alone, which on a young connection reaches far below ISS, so
    /// that a stranger who knows no number of ours would guess one in every few tens of thousands.
    pub(in crate::conn) fn judge_ack(&self, ack: SeqNum) -> AckPlace {
        match self.sender.seq().judge_ack(ack) {
            AckPlace::Old => {
                let fin = u64::from(self.state == State::FinWait2);
                let acked = self.counts.bytes_acked() + fin;
                let below = u64::from(self.sender.seq().una.offset_from(ack));
                if below > acked { AckPlace::TooOld } else { AckPlace::Old }
            }
            place => place,
        }
    }

    /// True if a segment is no more than an acknowledgment that later ones overtook: of nothing new, and
    /// from where the peer has sent. An answer would tell the peer what it knows, once for each that the
    /// network delays, and use up the allowance for challenges. Linux answers those at RCV.NXT.
    pub(in crate::conn) fn is_overtaken_ack(&self, seg: &RxSegment<'_>) -> bool {
        let header = &seg.header;
        seg.is_empty()
            && !header.flags.contains(TcpFlags::SYN)
            && header.flags.contains(TcpFlags::ACK)
            && header.seq.at_or_before(self.receiver.nxt())
            && matches!(self.judge_ack(header.ack), AckPlace::Old | AckPlace::Current)
    }

    /// An acknowledgment from before our last one arrived there: it lies no farther back than that.
    /// A peer whose window probe we took unawares sends such, at the edge it knows, and nothing
    /// else until its probe is acknowledged. RFC 9293 3.10.7.4: "special allowance should be made
    /// to accept valid ACKs".
    pub(in crate::conn) fn is_late_ack(&self, seg: &RxSegment<'_>) -> bool {
        let seq = seg.header.seq;
        seg.header.flags.intersection(TcpFlags::RST | TcpFlags::ACK) == TcpFlags::ACK
            && seq.at_or_after(self.receiver.seq().last_ack)
            && seq.before(self.receiver.nxt())
    }

    /// A new acknowledgment from before RCV.NXT: what a peer sends who believes that the window ended
    /// there. It was announced rounded down, and what lay beyond, a probe or the end of a segment, was
    /// taken. If some of ours was taken likewise, neither hears the other unless this counts. It lies
    /// no farther back than rounding may hide, or a probe reaches.
    pub(in crate::conn) fn is_behind_rounding(&self, seg: &RxSegment<'_>) -> bool {
        let bare = seg.is_empty() && seg.header.flags.intersection(TcpFlags::RST) == TcpFlags::NONE;
        let unit = 1 << self.receiver.scale().get();
        let hidden = if self.sender.is_persisting() { unit } else { unit - 1 };
        bare && seg.header.seq.in_window(self.receiver.nxt() - hidden, hidden)
            && seg.header.flags.contains(TcpFlags::ACK)
            && matches!(self.sender.seq().judge_ack(seg.header.ack), AckPlace::New(_))
    }

    /// Both sides have closed, and the peer's FIN comes again with a new acknowledgment: that is how
    /// some stacks acknowledge a FIN which crossed theirs.
    pub(in crate::conn) fn is_fin_again(&self, seg: &RxSegment<'_>) -> bool {
        let header = &seg.header;
        let judged = TcpFlags::SYN | TcpFlags::RST | TcpFlags::ACK | TcpFlags::FIN;
        matches!(self.state, State::Closing | State::LastAck)
            && header.flags.intersection(judged) == TcpFlags::FIN | TcpFlags::ACK
            && header.seq + seg.len() == self.receiver.nxt()
            && matches!(self.sender.seq().judge_ack(header.ack), AckPlace::New(_))
    }

    /// Both sides sent SYN, then SYN-ACK: the peer's begins before RCV.NXT, and its ACK is what
    /// completes the handshake (RFC 9293 figure 7).
    pub(in crate::conn) fn is_simultaneous_syn_ack(&self, seg: &RxSegment<'_>) -> bool {
        self.state == State::SynReceived
            && seg.header.flags.contains(TcpFlags::SYN | TcpFlags::ACK)
            && seg.header.seq + 1 == self.receiver.nxt()
            // Text that our SYN brought was not taken.
            && matches!(self.sender.seq().judge_ack(seg.header.ack), AckPlace::New(_))
    }

    /// True if a segment begins where the peer has sent something that it may take for lost: what was
    /// received, no farther back than a window, beyond which it could send nothing new; or, of a peer
    /// that takes the window for larger than it is, as far beyond.
    pub(in crate::conn) fn may_come_again(&self, seg: &RxSegment<'_>) -> bool {
        let fin = 1;
        let received = self.counts.bytes_received() + fin;
        let window = self.receiver.most_window(&self.window_bounds()).max(UNSCALED);
        let reach = u64::from(window).min(received);
        u64::from(self.receiver.nxt().offset_from(seg.header.seq)) <= reach
            || seg.header.seq.in_window(self.receiver.nxt(), self.receiver.seq().wnd() + window)
    }
}

/// Bytes: the window that needs no scale.
const UNSCALED: u32 = 65_535;
