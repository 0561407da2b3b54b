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
}

impl Unreachable {
    /// The type of the ICMP error.
    pub(super) fn icmp_type(self, family: Family) -> u8 {
        match family {
            Family::V4 => 3,
            Family::V6 => 1,
        }
    }

    /// RFC 792, RFC 1812 5.2.7.1; RFC 4443 3.1.
    pub(super) fn code(self, family: Family) -> u8 {
        match (self, family) {
            (Self::Network, _) => 0,
            (Self::Host, Family::V4) => 1,
            (Self::Host, Family::V6) | (Self::Port, Family::V4) => 3,
            (Self::Prohibited, Family::V4) => 13,
            (Self::Prohibited, Family::V6) => 1,
            (Self::Port, Family::V6) => 4,
        }
    }
}
