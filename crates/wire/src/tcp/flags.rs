//! The control bits of a TCP header.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A set of control bits (RFC 9293 3.1, RFC 3168 6.1, RFC 9768 3.1). Reserved bits are not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct TcpFlags(u16);

impl TcpFlags {
    /// No control bit is set.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(1 << 0);
    /// SYN: the segment number is the sender's initial one.
    pub const SYN: Self = Self(1 << 1);
    /// RST: the connection is reset.
    pub const RST: Self = Self(1 << 2);
    /// PSH: the receiver should not wait for more before it delivers.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(1 << 4);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(1 << 5);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 7);
    /// Accurate ECN (RFC 9768); once the nonce sum.
    pub const AE: Self = Self(1 << 8);
    /// ECE and CWR: a SYN with both asks for ECN (RFC 3168 6.1.1).
    pub const ECN_SETUP: Self = Self(Self::ECE.0 | Self::CWR.0);
    /// AE, CWR and ECE: on a SYN they ask for Accurate ECN; later they are the ACE field (RFC 9768 3.1.1, 3.2.2).
    pub const ACE: Self = Self(Self::AE.0 | Self::ECN_SETUP.0);
    /// SYN and ACK: the second segment of a handshake.
    pub const SYN_ACK: Self = Self(Self::SYN.0 | Self::ACK.0);

    /// The low nine bits of `bits`, as they stand in the header's 13th and 14th byte.
    ///
    /// RFC 9293 3.1 of the reserved bits: "Must be zero in generated segments and must be ignored
    /// in received segments".
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x01ff)
    }

    /// Returns the bits as in the header, 0 ..= 0x1ff.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// True if every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the set without the bits of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the bits that are in both.
    #[inline]
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// True if no bit is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if SYN is set, whatever else is.
    #[inline]
    pub const fn is_syn(self) -> bool {
        self.contains(Self::SYN)
    }

    /// True if ACK is set, whatever else is.
    #[inline]
    pub const fn is_ack(self) -> bool {
        self.contains(Self::ACK)
    }

    /// True if FIN is set, whatever else is.
    #[inline]
    pub const fn is_fin(self) -> bool {
        self.contains(Self::FIN)
    }

    /// True if RST is set, whatever else is.
    #[inline]
    pub const fn is_rst(self) -> bool {
        self.contains(Self::RST)
    }

    /// Returns the ACE field, 0 ..= 7: AE, CWR and ECE as a number (RFC 9768 3.2.2).
    #[inline]
    pub const fn ace(self) -> u8 {
        (self.intersection(Self::ACE).0 >> Self::ECE.0.trailing_zeros()) as u8
    }

    /// The ACE field of the lowest three bits of `ace`, alone.
    #[inline]
    pub const fn from_ace(ace: u8) -> Self {
        Self((ace as u16) << Self::ECE.0.trailing_zeros()).intersection(Self::ACE)
    }

    /// Returns the sequence numbers that the bits occupy: one each for SYN and FIN, 0 ..= 2.
    #[inline]
    pub const fn sequence_len(self) -> u32 {
        self.intersection(Self(Self::SYN.0 | Self::FIN.0)).0.count_ones()
    }
}

impl BitOr for TcpFlags {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for TcpFlags {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Writes the bits as packet dumps do: `S`, `S.`, `P.`, `F.`, `R.`; `none` for the empty set.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (flag, letter) in LETTERS {
            if self.contains(flag) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const LETTERS: [(TcpFlags, &str); 9] = [
    (TcpFlags::FIN, "F"),
    (TcpFlags::SYN, "S"),
    (TcpFlags::RST, "R"),
    (TcpFlags::PSH, "P"),
    (TcpFlags::ACK, "."),
    (TcpFlags::URG, "U"),
    (TcpFlags::ECE, "E"),
    (TcpFlags::CWR, "W"),
    (TcpFlags::AE, "e"),
];

#[cfg(test)]
mod tests;
