//! Configuration of a socket between two processes. Values are valid once constructed.

use std::path::{Path, PathBuf};

use whimbrel_stack::{InterfaceAddress, Route};

use crate::config::{ConfigError, check_addresses, check_mtu, default_routes};

/// A wire to another process: the path of the socket, and the addresses of the stack at this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnixConfig {
    path: PathBuf,
    addresses: Vec<InterfaceAddress>,
    mtu: u16,
}

impl UnixConfig {
    /// Creates a configuration for a socket at `path` (1 to 107 bytes) and a stack with
    /// `addresses`, with MTU 1500.
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

    /// Sets the size of the largest packet in bytes: 68 (1,280 with an IPv6 address) to 65,535, the
    /// same at both ends. Default 1500, so that measurements apply to a cable. Smaller values mean
    /// more packets and calls, larger ones fewer.
    pub fn with_mtu(mut self, mtu: u16) -> Result<Self, ConfigError> {
        check_mtu(&self.addresses, mtu, u16::MAX)?;
        self.mtu = mtu;
        Ok(self)
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the addresses that the stack has on this wire.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// Returns the stack's default routes: every other host is at the other end.
    pub fn routes(&self) -> Vec<Route> {
        default_routes(&self.addresses, &[])
    }

    /// Returns the size of the largest packet in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// MTU if none is given.
    pub const DEFAULT_MTU: u16 = 1500;
}
