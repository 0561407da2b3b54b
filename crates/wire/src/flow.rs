//! Endpoints and flows.

use core::fmt;
use core::net::SocketAddr;

use crate::Address;

/// An address and a port: one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The host's IP address.
    pub addr: Address,
    /// Port; 0 only where the documentation allows it.
    pub port: u16,
}

impl Endpoint {
    /// Creates an endpoint.
    pub const fn new(addr: Address, port: u16) -> Self {
        Self { addr, port }
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(addr: SocketAddr) -> Self {
        Self::new(addr.ip().into(), addr.port())
    }
}

impl From<Endpoint> for SocketAddr {
    fn from(endpoint: Endpoint) -> Self {
        Self::new(endpoint.addr.to_ip(), endpoint.port)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}

/// The 4-tuple that identifies a connection, seen from this host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flow {
    /// The endpoint at this host.
    pub local: Endpoint,
    /// The endpoint at the peer.
    pub remote: Endpoint,
}

const _: () = assert!(size_of::<Flow>() == 36);
