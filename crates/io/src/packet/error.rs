//! Errors of opening a packet socket's wire.

use std::io;
use std::net::UdpSocket;

use whimbrel_base::Foreign;
use whimbrel_wire::Address;

use super::PacketConfig;
use crate::ConfigError;
use crate::entropy::EntropyError;

/// Reason why an interface could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The system requires a privilege.
    #[error(
        "no privilege to {doing} ({error}). Run as root, or give the program CAP_NET_RAW: setcap \
         cap_net_raw+ep FILE; in a container --cap-add NET_RAW"
    )]
    Privilege {
        /// The refused operation, for messages.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The kernel has no packet sockets.
    #[error("the kernel has no AF_PACKET sockets ({0}): load the module (modprobe af_packet)")]
    NoFamily(io::Error),
    /// No interface has this name.
    #[error("no interface {0}: `ip link` lists those there are; tun: makes one of its own")]
    NoInterface(String),
    /// The interface's frames do not begin with an Ethernet header.
    #[error(
        "interface {name} carries no Ethernet (its ARPHRD type is {hardware}): give one that does"
    )]
    NotEthernet {
        /// Name of the interface.
        name: String,
        /// Kind of the interface's hardware, a number `ARPHRD_*`.
        hardware: u16,
    },
    /// The interface is down.
    #[error("interface {0} is down: ip link set {0} up")]
    Down(String),
    /// The machine itself has the address.
    #[error(
        "{0} is an address of this machine's own: its kernel would answer ARP for it, and the \
         stack's peers with RST. Give the stack a free address, or take it from the \
         kernel (ip address del)"
    )]
    MachinesAddress(Address),
    /// More sockets than a device supports.
    #[error("fanout={0} asked of one socket: give fanout=1, or as many shards")]
    Fanout(u16),
    /// The stack cannot use the interface.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system returned no random bytes for a station's address.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// Another refusal by the system.
    #[error("cannot {doing} on interface {name}: {error}")]
    Refused {
        /// The refused operation, for messages.
        doing: &'static str,
        /// Name of the interface.
        name: String,
        /// The system's error.
        error: io::Error,
    },
}

impl PacketError {
    /// Converts an error of socket(2).
    pub(super) fn on_socket(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => Self::NoFamily(error),
            _ => Self::Privilege { doing: "open an AF_PACKET socket", error },
        }
    }

    /// Converts an error of the setup.
    pub(super) fn on_setup(doing: &'static str, config: &PacketConfig, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM) => Self::Privilege { doing, error },
            _ => Self::Refused {
                doing,
                name: Foreign::new(config.name().to_bytes()).to_string(),
                error,
            },
        }
    }
}

/// True if the machine has this address on any interface, because a socket can be bound to it.
pub(super) fn is_address_of_machine(addr: Address) -> bool {
    UdpSocket::bind((addr.to_ip(), 0)).is_ok()
}
