//! Ethernet II frames (RFC 894, RFC 2464), without preamble and frame check sequence.
//!
//! One IEEE 802.1Q tag is recognised: a *priority* tag (VLAN identifier 0) marks a frame of the
//! untagged network and is skipped. A frame of another VLAN belongs to another network: it keeps
//! [`EtherType::VLAN`] and its tag, so that a dispatch on the type drops it. Skipping every tag was
//! rejected: a frame could pass from one VLAN into another.

use core::fmt;

use crate::ParseError;
use crate::cursor::{Reader, Writer};

/// A 48-bit link-layer address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations of the link.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// True if this names a group of stations; broadcast is one.
    pub const fn is_multicast(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 1
    }

    /// Returns the group of an IPv6 multicast address.
    ///
    /// RFC 2464 7: "the Ethernet multicast address whose first two octets are the value 3333
    /// hexadecimal and whose last four octets are the last four octets of DST".
    pub const fn of_ipv6_multicast(dst: core::net::Ipv6Addr) -> Self {
        let [.., a, b, c, d] = dst.octets();
        Self([0x33, 0x33, a, b, c, d])
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Type of a frame's payload. Values below 0x0600 are IEEE 802.3 lengths, which Whimbrel does not
/// support.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EtherType(pub u16);

impl EtherType {
    /// An IPv4 packet follows (RFC 894).
    pub const IPV4: Self = Self(0x0800);
    /// An ARP packet follows (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// An IEEE 802.1Q tag.
    pub const VLAN: Self = Self(0x8100);
    /// An IPv6 packet follows (RFC 2464).
    pub const IPV6: Self = Self(0x86dd);
}

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EthernetHeader {
    /// The receiving station or group.
    pub dst: MacAddress,
    /// The station that sent the frame.
    pub src: MacAddress,
    /// Type of the payload.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Bytes of an untagged header.
    pub const LEN: usize = 14;

    /// Parses the header. Returns what follows it, too: the packet, and padding to the link's
    /// minimum, if any.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut fields = Reader(frame);
        let dst = MacAddress(fields.array()?);
        let src = MacAddress(fields.array()?);
        let mut ether_type = EtherType(fields.u16()?);
        if ether_type == EtherType::VLAN {
            let mut tagged = fields;
            let vlan = tagged.u16()? & 0x0fff;
            if vlan == 0 {
                ether_type = EtherType(tagged.u16()?);
                fields = tagged;
            }
        }
        Ok((Self { dst, src, ether_type }, fields.0))
    }

    /// Returns the header's bytes, untagged.
    #[inline]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut fields = Writer(&mut bytes);
        fields.bytes(&self.dst.0);
        fields.bytes(&self.src.0);
        fields.u16(self.ether_type.0);
        bytes
    }
}

#[cfg(test)]
mod tests;
