//! What a socket between two processes is to be: values that are valid once they exist.

use std::path::{Path, PathBuf};

use whimbrel_stack::{InterfaceAddress, Route};

use crate::config::{ConfigError, check_addresses, check_mtu, default_routes};

/// A wire to another process: where they meet, and the addresses of the stack at this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnixConfig {
    path: PathBuf,
    addresses: Vec<InterfaceAddress>,
    mtu: u16,
}

impl UnixConfig {
    /// A wire that meets the other at `path` (1 to 107 bytes), to a stack that has `addresses`;
    /// MTU 1500.
    pub fn new(
        path: impl Into<PathBuf>,
        addresses: Vec<InterfaceAddress>,
    ) -> Result<Self, ConfigError> {
        let path = path.into();
        let len = path.as_os_str().len();
        if len == 0 || len > ConfigError::MOST_PATH {
            return Err(ConfigError::Path { path, len });
        }
        check_addresses(&addresses)?;
        Ok(Self { path, addresses, mtu: Self::DEFAULT_MTU })
    }

    /// The largest packet, bytes: 68 (1,280 with an IPv6 address) to 65,535, the same at both
    /// ends. Default 1500, so that what is measured here holds on a cable. Smaller: more packets
    /// and calls; larger: fewer.
    pub fn with_mtu(mut self, mtu: u16) -> Result<Self, ConfigError> {
        check_mtu(&self.addresses, mtu, u16::MAX)?;
        self.mtu = mtu;
        Ok(self)
    }

    /// Where both ends meet.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The addresses that the stack has on this wire.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// The stack's way to the rest of the world: all of it lies at the other end.
    pub fn routes(&self) -> Vec<Route> {
        default_routes(&self.addresses, &[])
    }

    /// The largest packet, bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The MTU if none is given.
    pub const DEFAULT_MTU: u16 = 1500;
}
