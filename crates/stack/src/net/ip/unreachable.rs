//! Why a destination cannot be reached.

use whimbrel_wire::Family;

/// The reason why a destination is unreachable, as an ICMP error says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unreachable {
    /// There is no route to it (`ENETUNREACH`): code 0.
    Network,
    /// It does not answer on its link (`EHOSTUNREACH`): code 1, in IPv6 3.
    Host,
    /// A host on the way forbids it (`EHOSTUNREACH`, in IPv6 `EACCES`): code 13, in IPv6 1.
    Prohibited,
    /// No socket has its port (`ECONNREFUSED`): code 3, in IPv6 4. TCP itself answers by a reset.
    Port,
    /// The packet is longer than the path takes, and may not be cut (`EMSGSIZE`): code 4, in IPv6 type 2,
    /// with the MTU. RFC 8201 4: a host takes no MTU below 1,280 over IPv6 for true.
    TooBig {
        /// The longest packet that passes, in bytes.
        mtu: u16,
    },
    /// The hop limit ran out at a router (`EHOSTUNREACH`): type 11, in IPv6 3, code 0.
    HopLimit,
}

impl Unreachable {
    /// The type of the ICMP error.
    pub(super) fn icmp_type(self, family: Family) -> u8 {
        match (self, family) {
            (Self::HopLimit, Family::V4) => 11,
            (Self::HopLimit, Family::V6) => 3,
            (_, Family::V4) => 3,
            // RFC 4443 3.2: Packet Too Big is a message of its own.
            (Self::TooBig { .. }, Family::V6) => 2,
            (_, Family::V6) => 1,
        }
    }

    /// The word behind the checksum. RFC 1191 4: the MTU stands "in the low-order 16 bits of the ICMP header
    /// field that is labelled "unused""; RFC 4443 3.2: in all of its 32 bits.
    pub(super) fn word(self) -> u32 {
        match self {
            Self::TooBig { mtu } => mtu.into(),
            Self::Network | Self::Host | Self::Prohibited | Self::Port | Self::HopLimit => 0,
        }
    }

    /// RFC 792, RFC 1812 5.2.7.1; RFC 4443 3.1.
    pub(super) fn code(self, family: Family) -> u8 {
        match (self, family) {
            (Self::Network | Self::HopLimit, _) | (Self::TooBig { .. }, Family::V6) => 0,
            (Self::Host, Family::V4) => 1,
            (Self::Host, Family::V6) | (Self::Port, Family::V4) => 3,
            (Self::Prohibited, Family::V4) => 13,
            (Self::Prohibited, Family::V6) => 1,
            (Self::Port, Family::V6) | (Self::TooBig { .. }, Family::V4) => 4,
        }
    }
}
