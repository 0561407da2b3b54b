//! An address of either family, in 16 bytes.
//!
//! Tables, hashes and records hold IPv4 and IPv6 side by side, so an IPv4 address is stored in its
//! IPv4-mapped form `::ffff:a.b.c.d`. On the wire that form is never valid in an IPv6 header (RFC
//! 4291 2.5.5.2 reserves it for a node's own representation). The IPv6 parser refuses it, so the
//! two families cannot be confused.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 or IPv6 address. 16 bytes, no padding; the `std` type takes 17.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Address([u8; 16]);

/// The IP version that an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// IP version 4 (RFC 791).
    V4,
    /// IP version 6 (RFC 8200).
    V6,
}

impl Address {
    /// Creates an IPv4 address from its four bytes.
    #[inline]
    pub const fn from_v4_bytes([a, b, c, d]: [u8; 4]) -> Self {
        Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// Creates an address from its 16 bytes; IPv4 in the IPv4-mapped form.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes; IPv4 in the IPv4-mapped form.
    #[inline]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the IP version: 4 for an IPv4-mapped address.
    #[inline]
    pub fn family(&self) -> Family {
        if self.is_v4() { Family::V4 } else { Family::V6 }
    }

    /// True if this is an IPv4 address.
    #[inline]
    pub fn is_v4(&self) -> bool {
        // This compares two words in memory, instead of 12 bytes that are loaded and combined.
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h]) == 0
            && u32::from_le_bytes([i, j, k, l]) == 0xffff_0000
    }

    /// Returns the last four bytes: the whole of an IPv4 address.
    #[inline]
    pub const fn v4_bytes(&self) -> [u8; 4] {
        let [_, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d] = self.0;
        [a, b, c, d]
    }

    /// Converts to the standard library's type.
    pub fn to_ip(&self) -> IpAddr {
        if self.is_v4() {
            IpAddr::V4(Ipv4Addr::from(self.v4_bytes()))
        } else {
            IpAddr::V6(Ipv6Addr::from(self.0))
        }
    }

    /// True if this is `0.0.0.0` or `::`.
    pub fn is_unspecified(&self) -> bool {
        self.to_ip().is_unspecified()
    }

    /// True if this names a group of hosts: multicast of either family, or IPv4's limited broadcast.
    pub fn is_multicast_or_broadcast(&self) -> bool {
        match self.to_ip() {
            IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast(),
            IpAddr::V6(v6) => v6.is_multicast(),
        }
    }
}

impl From<Ipv4Addr> for Address {
    fn from(addr: Ipv4Addr) -> Self {
        Self::from_v4_bytes(addr.octets())
    }
}

impl From<Ipv6Addr> for Address {
    fn from(addr: Ipv6Addr) -> Self {
        Self(addr.octets())
    }
}

impl From<IpAddr> for Address {
    fn from(addr: IpAddr) -> Self {
        match addr {
            IpAddr::V4(v4) => v4.into(),
            IpAddr::V6(v6) => v6.into(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_ip().fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_ip().fmt(f)
    }
}

const _: () = assert!(size_of::<Address>() == 16);

#[cfg(test)]
mod tests;
