//! Who a client is for bounds that clients share.

use whimbrel_wire::Endpoint;

/// An IPv4 address, or the IPv6 network of 64 bits within which a host may have any address (RFC 4291 2.5.4).
/// Without a peer, none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Source(u128);

impl Source {
    /// The source of what this peer sends.
    pub fn of(peer: Option<Endpoint>) -> Self {
        let Some(Endpoint { addr, .. }) = peer else { return Self::default() };
        let bits = u128::from_be_bytes(*addr.octets());
        Self(if addr.is_v4() { bits } else { bits >> 64 << 64 })
    }
}

#[cfg(test)]
mod tests;
