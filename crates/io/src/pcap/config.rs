//! Configuration of a replay. Values are valid once constructed.

use std::path::{Path, PathBuf};

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::MacAddress;

use crate::config::{ConfigError, check_addresses, check_station, default_routes};

/// A capture, and the stack that receives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PcapConfig {
    path: PathBuf,
    addresses: Vec<InterfaceAddress>,
    mac: Option<MacAddress>,
    speed: Speed,
}

/// Pace of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Speed {
    /// The intervals of the capture.
    #[default]
    Captured,
    /// As fast as the stack processes the frames.
    Max,
}

impl PcapConfig {
    /// Creates a configuration for the capture at `path` and a stack with `addresses`.
    pub fn new(
        path: impl Into<PathBuf>,
        addresses: Vec<InterfaceAddress>,
    ) -> Result<Self, ConfigError> {
        check_addresses(&addresses)?;
        Ok(Self { path: path.into(), addresses, mac: None, speed: Speed::default() })
    }

    /// Sets the stack's station, for a capture of Ethernet frames. By default it is the destination
    /// of the first frame for one of its addresses.
    pub fn with_mac(mut self, mac: MacAddress) -> Result<Self, ConfigError> {
        check_station(mac)?;
        self.mac = Some(mac);
        Ok(self)
    }

    /// Sets the pace of the replay.
    pub fn with_speed(mut self, speed: Speed) -> Self {
        self.speed = speed;
        self
    }

    /// Returns the path of the capture.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the addresses of the stack.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// Returns the stack's default routes: every other host is on this wire.
    pub fn routes(&self) -> Vec<Route> {
        default_routes(&self.addresses, &[])
    }

    /// Returns the stack's station, if one was given.
    pub fn mac(&self) -> Option<MacAddress> {
        self.mac
    }

    /// Returns the pace of the replay.
    pub fn speed(&self) -> Speed {
        self.speed
    }
}
