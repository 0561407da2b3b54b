//! The network as one host of a world has it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use crate::Stack;
use crate::host_names::{HostAddresses, HostNames};

/// A host of a [`World`](super::World): its stack, and the names of the others. Clones are the same
/// host.
#[derive(Clone, Debug)]
pub struct Net {
    pub(super) name: Arc<str>,
    pub(super) stack: Stack,
    pub(super) names: Arc<HostNames>,
    pub(super) addresses: HostAddresses,
}

impl Net {
    /// Returns the stack of the host. It ends when the host crashes; a restarted host has another.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the IPv4 address of the host with this name; an address as text is returned itself.
    ///
    /// [`TcpStream::connect`](crate::TcpStream::connect) with `"web:80"` asks the machine for the
    /// address, because tokio's `ToSocketAddrs` cannot be implemented elsewhere: pass
    /// `(net.lookup("web")?, 80)`. `Connector` (feature `hyper-util`) looks names up here.
    ///
    /// # Errors
    ///
    /// `NotFound`: the world has no host of this name.
    pub fn lookup(&self, name: &str) -> io::Result<IpAddr> {
        self.names.lookup(name)
    }

    /// Returns the name of this host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the IPv4 address of this host, in 10.0.0.0/8.
    pub const fn address(&self) -> IpAddr {
        IpAddr::V4(self.addresses.v4)
    }

    /// Returns the IPv6 address of this host, in fd00::/64.
    pub const fn address_v6(&self) -> IpAddr {
        IpAddr::V6(self.addresses.v6)
    }
}
