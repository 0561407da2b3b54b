//! The source that a client's bytes count for, where clients share a bound.

use std::net::IpAddr;

use whimbrel_wire::Endpoint;

/// An IPv4 address, or the IPv6 network of 64 bits within which a host may have any address (RFC 4291 2.5.4).
/// Without a peer, none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Source(u128);

impl Source {
    /// The source of what this peer sends.
    pub fn of(peer: Option<Endpoint>) -> Self {
        let Some(Endpoint { addr, .. }) = peer else { return Self::default() };
        Self(match addr.to_ip() {
            IpAddr::V4(addr) => addr.to_bits().into(),
            // Its host number is set: no IPv4 address has as many.
            IpAddr::V6(addr) => addr.to_bits() >> 64 << 64 | u128::from(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests;
