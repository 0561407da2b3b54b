//! Small values in the headers of both families.

/// The protocol of a payload: IPv4's Protocol, IPv6's Next Header (one number space, IANA's).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 hop-by-hop options (RFC 8200 4.3).
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP of IPv4 (RFC 792).
    pub const ICMP: Self = Self(1);
    /// Transmission Control Protocol (RFC 9293).
    pub const TCP: Self = Self(6);
    /// User Datagram Protocol (RFC 768).
    pub const UDP: Self = Self(17);
    /// IPv6 routing header (RFC 8200 4.4).
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header (RFC 8200 4.5).
    pub const FRAGMENT: Self = Self(44);
    /// Authentication header (RFC 4302).
    pub const AUTHENTICATION: Self = Self(51);
    /// ICMP of IPv6 (RFC 4443).
    pub const ICMPV6: Self = Self(58);
    /// IPv6: nothing follows (RFC 8200 4.7).
    pub const NO_NEXT_HEADER: Self = Self(59);
    /// IPv6 destination options (RFC 8200 4.6).
    pub const DESTINATION_OPTIONS: Self = Self(60);
}

/// The ECN field (RFC 3168 5): the low two bits of the traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotEct = 0,
    /// Capable, codepoint ECT(1): low latency, low loss (RFC 9331).
    Ect1 = 1,
    /// ECN-capable transport, codepoint ECT(0) (RFC 3168).
    Ect0 = 2,
    /// Congestion experienced: a router marked it (RFC 3168).
    Ce = 3,
}

/// IPv4's type of service and IPv6's traffic class: a DSCP (RFC 2474) above an ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// Creates a class from its parts; only the low six bits of `dscp` (0 ..= 63) count.
    #[inline]
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        Self((dscp << 2) | ecn as u8)
    }

    /// Returns the differentiated-services codepoint, 0 ..= 63.
    #[inline]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// Returns the ECN field, its two low bits.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns the class with the same DSCP and another ECN field.
    #[inline]
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        Self::new(self.dscp(), ecn)
    }
}

/// Position of a fragment (RFC 791 3.2, RFC 8200 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Identifies the packet, with its addresses (and IPv4's protocol); IPv4 uses the low 16 bits.
    pub identification: u32,
    /// Bytes of the packet's payload before this fragment: a multiple of 8, 0 ..= 65,528.
    pub offset: u16,
    /// True if more fragments follow.
    pub more: bool,
}

impl Fragment {
    /// Length of an IPv6 fragment header in bytes.
    pub const HEADER_LEN: usize = 8;

    /// Returns the IPv6 fragment header (RFC 8200 4.5) of a packet whose fragmentable part begins
    /// with `protocol`. The low three bits of the offset are dropped.
    pub const fn emit(self, protocol: Protocol) -> [u8; Self::HEADER_LEN] {
        let [high, low] = (self.offset & 0xfff8 | self.more as u16).to_be_bytes();
        let [a, b, c, d] = self.identification.to_be_bytes();
        [protocol.0, 0, high, low, a, b, c, d]
    }

    /// True if a payload of `len` bytes can be this fragment of a packet.
    pub(crate) const fn holds(self, len: usize) -> bool {
        let whole_units = !self.more || len.is_multiple_of(8);
        whole_units && (self.offset as usize).saturating_add(len) <= 65_535
    }
}
