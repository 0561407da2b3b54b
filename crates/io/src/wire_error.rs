//! Errors of opening a stack on a wire of any kind.

use std::io;

use crate::AddressCheckError;
#[cfg(target_os = "linux")]
use crate::{PacketError, PcapError, TunError, UnixError};

/// Reason why a stack could not be opened on a wire.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// `mem:` is opened by `MemPair` or [`MemEnd`](crate::MemEnd), `kernel:` is the
    /// kernel's.
    #[error("this wire has no device: give tun:, tap:, packet: or unix:")]
    NoDevice,
    /// The interface could not be opened.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The packet socket could not be opened.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The socket to another process could not be opened.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Unix(#[from] UnixError),
    /// The capture could not be read.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Pcap(#[from] PcapError),
    /// Another station has an address of the stack.
    #[error(transparent)]
    Conflict(#[from] AddressCheckError),
    /// The addresses, routes and rules are no valid host.
    #[error(transparent)]
    Config(#[from] whimbrel_stack::shard::ConfigError),
    /// The system returned no descriptor.
    #[error(transparent)]
    System(#[from] io::Error),
}
