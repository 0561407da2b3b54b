//! ECN of a handshake: what the peer's SYNs asked for, and what our SYN-ACK answers.

use whimbrel_wire::Ecn;
use whimbrel_wire::tcp::TcpFlags;

use crate::Tunables;
use crate::conn::{EcnFeedback, INITIAL_CE_PACKETS, reported};

/// True if a SYN asks for accurate feedback, and the tunables allow it.
// RFC 9768 3.1.3: of "any combination other than (0,0,0), (0,1,1) or (1,1,1)" it says that "the Server MUST negotiate the
// use of AccECN as if the three flags had been set to (1,1,1)."
pub(super) fn asks_accurate(flags: TcpFlags, tunables: &Tunables) -> bool {
    tunables.ecn.answers_accurate() && !matches!(flags.ace(), 0 | CLASSIC)
}

/// The number of times that the clock had the SYN-ACK repeated, 0 ..= 31; and if the feedback of ECN is accurate (RFC
/// 9768), that, and the ECN field of the latest SYN.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Repeats(u8);

impl Repeats {
    /// Those of the cookie that this third segment of a handshake brings.
    // RFC 9768 3.2.2.1, note 3: "The values 0b000 or 0b001 will remind it that it did not enter AccECN mode".
    pub(super) fn of_cookie(third: TcpFlags, tunables: &Tunables) -> Self {
        let is_accurate = tunables.ecn.answers_accurate() && third.ace() > 1;
        Self(if is_accurate { ACCURATE } else { 0 })
    }

    /// The feedback is accurate, and a SYN arrived in this ECN field.
    pub(super) const fn set_accurate(&mut self, syn: Ecn) {
        self.0 = self.0 & COUNT | ACCURATE | (syn as u8) << FIELD.trailing_zeros();
    }

    #[inline]
    pub(super) const fn count(self) -> u8 {
        self.0 & COUNT
    }

    #[inline]
    pub(super) const fn set_count(&mut self, count: u8) {
        self.0 = self.0 & !COUNT | count & COUNT;
    }

    /// Returns all of it; the highest bit is set if the feedback is accurate.
    #[inline]
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(super) const fn is_accurate(self) -> bool {
        self.0 & ACCURATE != 0
    }

    /// The control bits of a SYN-ACK that agrees to accurate feedback.
    pub(super) const fn flags(self) -> TcpFlags {
        // RFC 9768 3.2.3.2.2: "If this retransmission times out, to expedite connection setup, the TCP Server SHOULD
        // retransmit the SYN/ACK with (AE,CWR,ECE) = (0,0,0) and no AccECN Option".
        if self.gave_up() { TcpFlags::NONE } else { TcpFlags::from_ace(reported(self.field())) }
    }

    /// The ACE field of an acknowledgment: nothing but the SYN has arrived, which does not count.
    pub(super) const fn ace(self) -> TcpFlags {
        if self.is_accurate() { TcpFlags::from_ace(INITIAL_CE_PACKETS) } else { TcpFlags::NONE }
    }

    /// The feedback that was agreed upon; `has_ecn` if the latest SYN asked for some.
    pub(super) const fn feedback(self, has_ecn: bool) -> EcnFeedback {
        match has_ecn {
            _ if self.is_accurate() => {
                let may_be_marked = has_ecn && !self.gave_up();
                EcnFeedback::Accurate { syn: self.field(), may_be_marked }
            }
            true => EcnFeedback::Classic,
            false => EcnFeedback::None,
        }
    }

    /// A SYN-ACK left without AE, CWR and ECE.
    const fn gave_up(self) -> bool {
        self.count() > 1
    }

    const fn field(self) -> Ecn {
        match self.0 & FIELD {
            0 => Ecn::NotEct,
            FIELD_ECT1 => Ecn::Ect1,
            FIELD => Ecn::Ce,
            _ => Ecn::Ect0,
        }
    }
}

/// AE, CWR and ECE of a SYN that asks for the feedback of RFC 3168.
pub(super) const CLASSIC: u8 = 0b011;
const COUNT: u8 = 0x1f;
const FIELD: u8 = 0b11 << 5;
const FIELD_ECT1: u8 = 0b01 << 5;
const ACCURATE: u8 = 1 << 7;
