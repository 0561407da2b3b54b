//! Counters of routers' marks, for Accurate ECN (RFC 9768): of those that arrive, and of those that the peer says
//! arrived.
//!
//! ```text
//!   SYN (AE, CWR, ECE) ->            <- SYN,ACK: the ECN field in which the SYN arrived
//!   ACK: the field of the SYN,ACK -> <- ACE field: packets that arrived marked, modulo 8
//!                                       option: bytes that arrived in each codepoint, modulo 2^24
//! ```

use whimbrel_wire::Ecn;
use whimbrel_wire::tcp::{AccurateEcn, AccurateEcnOrder};

use crate::RxSegment;

/// The feedback of marks that both SYNs agreed upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnFeedback {
    /// There is none, and no text may be marked.
    None,
    /// One echo in a round trip (RFC 3168 6.1.3).
    Classic,
    /// Counters (RFC 9768 3.2).
    Accurate {
        /// The ECN field of the peer's latest SYN.
        syn: Ecn,
        /// False if the handshake had a SYN or SYN-ACK without AE, CWR and ECE: no text may be marked (3.1.5).
        may_be_marked: bool,
    },
}

/// The counters of one connection whose feedback is accurate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MarkCounters {
    /// r.cep: packets that arrived marked CE.
    pub(super) ce_packets: u32,
    /// r.e0b, r.ceb, r.e1b: bytes of text that arrived in ECT(0), CE and ECT(1).
    bytes: [u32; 3],
    /// s.cep: packets that the peer says arrived marked CE, modulo 8.
    pub(super) peer_ce_packets: u8,
    /// s.ceb: bytes of text that the peer's options say arrived marked CE, modulo 2^24.
    peer_ce_bytes: u32,
    /// The ECN field of the peer's latest SYN or SYN-ACK.
    pub(super) opening: Ecn,
    /// The acknowledgment that reports an ECN field instead of counting.
    pub(super) report: Report,
    /// CE marks that arrived since the last acknowledgment left.
    ce_since_ack: u8,
    /// The last packet arrived marked CE.
    was_ce: bool,
    /// The last feedback told of marks.
    was_told: bool,
    /// A counter of bytes changed since an option left, or none left yet.
    pub(super) owes_option: bool,
    /// The peer's feedback cannot be trusted: nothing is made of it.
    pub(super) is_deaf: bool,
}

/// The acknowledgment whose ACE field tells in which ECN field the SYN-ACK arrived (RFC 9768 3.2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Report {
    /// Ours, which is still to leave.
    Ours,
    /// The peer's, which is still to arrive.
    Peers,
    /// Neither.
    Over,
}

impl MarkCounters {
    // RFC 9768 3.2.1: "it initializes its counters to r.cep = 5, r.e0b = r.e1b = 1 and r.ceb = 0", and "to s.cep =
    // 5, s.e0b = s.e1b = 1 and s.ceb = 0."
    pub(super) const fn new(opening: Ecn, report: Report) -> Self {
        // RFC 9768 3.2.2.2: "If a TCP Client in AccECN mode receives a CE mark in the IP-ECN field of a SYN/ACK, it
        // MUST increment r.cep, but no more than once".
        let is_marked = matches!((report, opening), (Report::Ours, Ecn::Ce));
        Self {
            ce_packets: INITIAL_CE_PACKETS as u32 + is_marked as u32,
            bytes: INITIAL_BYTES,
            peer_ce_packets: INITIAL_CE_PACKETS,
            peer_ce_bytes: 0,
            opening,
            report,
            ce_since_ack: 0,
            was_ce: false,
            was_told: false,
            owes_option: true,
            is_deaf: false,
        }
    }

    /// A packet or several joined ones arrive. Returns true if their marks are to be acknowledged at once.
    pub(super) fn count(&mut self, seg: &RxSegment<'_>) -> bool {
        let (is_ce, text) = (seg.class.ecn() == Ecn::Ce, seg.payload.len());
        self.count_text(seg);
        let packets = if is_ce { seg.meta.segs.max(1) } else { 0 };
        self.ce_packets = self.ce_packets.wrapping_add(packets.into());
        self.ce_since_ack = self.ce_since_ack.saturating_add(packets.min(7) as u8);
        // RFC 9768 3.2.2.5.1: "An AccECN Data Receiver SHOULD emit an ACK whenever a data packet marked CE arrives
        // after the previous packet was not CE." And it "MUST emit an ACK if 'n' CE marks have arrived since the
        // previous ACK. If there is unacknowledged data at the receiver, 'n' SHOULD be 2. If there is no
        // unacknowledged data at the receiver, 'n' SHOULD be 3".
        let begins = is_ce && text > 0 && !self.was_ce;
        self.was_ce = is_ce;
        begins || self.ce_since_ack >= if text > 0 { 2 } else { 3 }
    }

    /// Text arrives: that of a SYN-ACK, too, whose mark is counted elsewhere.
    pub(super) fn count_text(&mut self, seg: &RxSegment<'_>) {
        let text = seg.payload.len();
        if let Some(counter) = place_of(seg.class.ecn()).and_then(|place| self.bytes.get_mut(place))
        {
            *counter = counter.wrapping_add(text);
            self.owes_option |= text > 0;
        }
    }

    /// The ACE field of a segment that leaves; `is_bare` if it has no text.
    pub(super) fn take_ace(&mut self, is_bare: bool) -> u8 {
        self.ce_since_ack = 0;
        if self.report == Report::Ours && is_bare {
            self.report = Report::Over;
            return reported(self.opening);
        }
        self.ace()
    }

    /// The ACE field without a report: the number of packets that arrived marked, modulo 8.
    pub(super) const fn ace(&self) -> u8 {
        (self.ce_packets & 7) as u8
    }

    /// The option, with every counter that has changed; with all to test the path while none has.
    // RFC 9768 3.2.3.3: "Whenever possible, it SHOULD include a field for every byte counter that has changed at some
    // time during the connection".
    pub(super) fn option(&self) -> (AccurateEcn, usize) {
        let [ect0, ce, ect1] = self.bytes;
        let [has_ect0, has_ce, has_ect1] =
            [0, 1, 2].map(|at| self.bytes.get(at) != INITIAL_BYTES.get(at));
        let (order, counters) = if has_ect1 && !has_ect0 {
            (AccurateEcnOrder::Ect1First, [ect1, ce, ect0])
        } else {
            (AccurateEcnOrder::Ect0First, [ect0, ce, ect1])
        };
        let len = match (has_ect0, has_ce, has_ect1) {
            (true, _, true) | (false, false, false) => 3,
            (_, true, _) => 2,
            _ => 1,
        };
        // With its kind, its length, and padding.
        (
            AccurateEcn::new(order, counters.get(..len).unwrap_or(&counters)),
            if len == 3 { 12 } else { 8 },
        )
    }

    /// Takes the counters that an acknowledgment of `segs` segments of `mss` bytes brings. Returns the number of
    /// packets that they say arrived marked, and false if the two contradict each other.
    pub(super) fn take(
        &mut self,
        ace: u8,
        option: Option<AccurateEcn>,
        segs: u32,
        mss: u32,
    ) -> (u32, bool) {
        // RFC 9768 3.2.2.2: it "subtracts them from the incoming ACE counter to work out the minimum positive
        // increment it could apply to s.cep".
        let least = u32::from(ace.wrapping_sub(self.peer_ce_packets) & 7);
        let most = segs.max(least);
        let (packets, agree) = match option.and_then(|it| it.ce_bytes()) {
            Some(bytes) => {
                let more = bytes.wrapping_sub(self.peer_ce_bytes) & 0xff_ffff;
                self.peer_ce_bytes = bytes;
                let marked = more.div_ceil(mss).min(most);
                (least + marked.saturating_sub(least) / 8 * 8, more == 0 || least > 0 || segs >= 8)
            }
            // 3.2.2.5.2: "If the Data Sender has not received AccECN TCP Options to give it more dependable
            // information, and it detects that the ACE field could have cycled, it SHOULD deem whether it cycled by
            // taking the safest likely case under the prevailing conditions." Where nothing is marked that is no.
            None if self.was_told || least > 0 => (least + 8 * ((most - least) / 8), true),
            None => (least, true),
        };
        self.peer_ce_packets = ace;
        self.was_told = packets > 0;
        (packets, agree)
    }
}

/// The ACE field that reports in which ECN field a SYN or SYN-ACK arrived: RFC 9768 3.1.1 and 3.2.2.1, tables 2
/// and 3.
pub(crate) const fn reported(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The place of a codepoint's counter.
const fn place_of(ecn: Ecn) -> Option<usize> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(0),
        Ecn::Ce => Some(1),
        Ecn::Ect1 => Some(2),
    }
}

/// The option of a SYN-ACK, whose counters are those that all begin with.
pub(super) fn initial_option() -> AccurateEcn {
    AccurateEcn::new(AccurateEcnOrder::Ect0First, &INITIAL_BYTES)
}

/// The packets marked CE that each side begins with (RFC 9768 3.2.1).
pub(crate) const INITIAL_CE_PACKETS: u8 = 5;
const INITIAL_BYTES: [u32; 3] = [1, 0, 1];

#[cfg(test)]
mod tests;
