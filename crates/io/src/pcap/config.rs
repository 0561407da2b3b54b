//! What is to be replayed, and to whom: values that are valid once they exist.

use std::path::{Path, PathBuf};

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::MacAddress;

use crate::config::{ConfigError, check_addresses, check_station, default_routes};

/// A capture, and the stack that is to see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PcapConfig {
    path: PathBuf,
    addresses: Vec<InterfaceAddress>,
    mac: Option<MacAddress>,
    speed: Speed,
}

/// How fast the frames of the capture come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Speed {
    /// At the distances that they have in the capture.
    #[default]
    Captured,
    /// Each as soon as the one before it was dealt with.
    Max,
}

impl PcapConfig {
    /// The capture at `path`, for a stack that has `addresses`.
    pub fn new(
        path: impl Into<PathBuf>,
        addresses: Vec<InterfaceAddress>,
    ) -> Result<Self, ConfigError> {
        check_addresses(&addresses)?;
        Ok(Self { path: path.into(), addresses, mac: None, speed: Speed::default() })
    }

    /// The stack's station, for a capture of Ethernet frames. By default the one that the first
    /// frame for one of its addresses is for.
    pub fn with_mac(mut self, mac: MacAddress) -> Result<Self, ConfigError> {
        check_station(mac)?;
        self.mac = Some(mac);
        Ok(self)
    }

    /// How fast the frames of the capture come.
    pub fn with_speed(mut self, speed: Speed) -> Self {
        self.speed = speed;
        self
    }

    /// Where the capture is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The addresses that the stack has.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// The stack's way to the rest of the world: all of it is where the frames come from.
    pub fn routes(&self) -> Vec<Route> {
        default_routes(&self.addresses, &[])
    }

    /// The stack's station, if one was given.
    pub fn mac(&self) -> Option<MacAddress> {
        self.mac
    }

    /// How fast the frames of the capture come.
    pub fn speed(&self) -> Speed {
        self.speed
    }
}
