//! Why a stack could not be had on a wire, of whatever kind.

use std::io;

use crate::AddressCheckError;
#[cfg(target_os = "linux")]
use crate::{PacketError, PcapError, TunError, UnixError};

/// Why a stack could not be had on a wire.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// `mem:` is opened by `MemPair` or [`MemEnd`](crate::MemEnd), `kernel:` is the
    /// kernel's.
    #[error("this wire has no device: give tun:, tap:, packet: or unix:")]
    NoDevice,
    /// The interface could not be had.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Tun(#[from] TunError),
    /// There is no place on the interface.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The socket could not be had.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Unix(#[from] UnixError),
    /// The capture could not be read.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Pcap(#[from] PcapError),
    /// Another station has an address of the stack's.
    #[error(transparent)]
    Conflict(#[from] AddressCheckError),
    /// Addresses, routes and rules that make no host.
    #[error(transparent)]
    Config(#[from] whimbrel_stack::shard::ConfigError),
    /// The system gave no descriptor.
    #[error(transparent)]
    System(#[from] io::Error),
}
