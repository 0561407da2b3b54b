//! Why there is no place on an interface, and what to do.

use std::io;
use std::net::UdpSocket;

use whimbrel_base::Foreign;
use whimbrel_wire::Address;

use super::PacketConfig;
use crate::ConfigError;
use crate::entropy::EntropyError;

/// Why there is no place on an interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The system does not allow that without a privilege.
    #[error(
        "no privilege to {doing} ({error}). Run as root, or give the program CAP_NET_RAW: setcap \
         cap_net_raw+ep FILE; in a container --cap-add NET_RAW"
    )]
    Privilege {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel has no packet sockets.
    #[error("the kernel has no AF_PACKET sockets ({0}): load the module (modprobe af_packet)")]
    NoFamily(io::Error),
    /// No interface has this name.
    #[error("no interface {0}: `ip link` lists those there are; tun: makes one of its own")]
    NoInterface(String),
    /// Frames that do not begin with an Ethernet header.
    #[error(
        "interface {name} carries no Ethernet (its ARPHRD type is {hardware}): give one that does"
    )]
    NotEthernet {
        /// The name of the interface.
        name: String,
        /// What the kernel says that it is: a number `ARPHRD_*`.
        hardware: u16,
    },
    /// The interface is down.
    #[error("interface {0} is down: ip link set {0} up")]
    Down(String),
    /// The machine has the address itself.
    #[error(
        "{0} is an address of this machine's own: its kernel would answer ARP for it, and the \
         stack's peers with RST. Give the stack an address that nobody has, or take it from the \
         kernel (ip address del)"
    )]
    MachinesAddress(Address),
    /// More sockets than one device has.
    #[error("fanout={0} asked of one socket: give fanout=1, or as many shards")]
    Fanout(u16),
    /// The stack cannot do with the interface.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system gave no random bytes for a station's address.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// Anything else that the system refused.
    #[error("cannot {doing} on interface {name}: {error}")]
    Refused {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// The name of the interface.
        name: String,
        /// What the system said.
        error: io::Error,
    },
}

impl PacketError {
    /// From making a socket.
    pub(super) fn on_socket(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => Self::NoFamily(error),
            _ => Self::Privilege { doing: "open an AF_PACKET socket", error },
        }
    }

    /// From setting it up.
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

/// Whether the machine has this address, on whatever interface: then a socket can be bound to it.
pub(super) fn is_the_machines(addr: Address) -> bool {
    UdpSocket::bind((addr.to_ip(), 0)).is_ok()
}
