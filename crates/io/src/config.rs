//! Configuration common to all kinds of wire: the addresses of a stack, and its errors.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, MacAddress};

#[cfg(target_os = "linux")]
pub(crate) use check::{
    check_address, check_addresses, check_mtu, check_station, contains, interface_name, member,
    within_networks,
};

#[cfg(target_os = "linux")]
mod check;

/// Invalid configuration of a wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The passed descriptor is no socket for whole frames.
    #[error("the descriptor is no AF_PACKET socket of the type SOCK_RAW: open one of that kind")]
    NotPacketSocket,
    /// The name is empty or contains a slash, colon, space or the like.
    #[error(
        "interface name {0:?}: give letters, digits, '-', '_' and '.', as in whim0, but neither '.' nor '..' alone"
    )]
    Name(String),
    /// The name is too long.
    #[error(
        "interface name {name:?} has {len} bytes; the kernel takes at most 15: shorten it, as in whim0"
    )]
    NameTooLong {
        /// The given name.
        name: String,
        /// Its length in bytes.
        len: usize,
    },
    /// The stack has no address.
    #[error("the stack needs an address: give at least one, as in addr=10.9.0.2/24")]
    NoAddress,
    /// Not the address of a single host.
    #[error(
        "{0} cannot be an interface's address: it names no single host; give one, as in addr=10.9.0.2/24"
    )]
    NotAHost(Address),
    /// An address that must not leave its host.
    #[error(
        "{0} is a loopback address, which never leaves its own machine: give one of a network, as in \
         addr=10.9.0.2/24"
    )]
    Loopback(Address),
    /// The prefix is too long for the address family.
    #[error(
        "prefix length {len} of {addr} exceeds the {bits} bits of the address: give 0 to {bits}"
    )]
    PrefixLength {
        /// Address of the prefix.
        addr: Address,
        /// The given value.
        len: u8,
        /// Limit of the family.
        bits: u8,
    },
    /// An address is given twice.
    #[error("{0} is given twice: the stack and the machine need an address each")]
    Twice(Address),
    /// A host address outside of the stack's networks.
    #[error(
        "host address {0} lies in the network of none of the stack's addresses: choose one of the same prefix, as in addr=10.9.0.2/24,host=10.9.0.1"
    )]
    HostOutside(Address),
    /// A gateway outside of the stack's networks.
    #[error(
        "gateway {0} lies in the network of none of the stack's addresses: choose one of the same prefix, as in addr=10.9.0.2/24,gw=10.9.0.1"
    )]
    GatewayOutside(Address),
    /// The MTU is out of range.
    #[error("mtu {mtu}: give {least} to {most} bytes")]
    Mtu {
        /// The given value.
        mtu: u16,
        /// Minimum for the address families in use.
        least: u16,
        /// Maximum of the device.
        most: u16,
    },
    /// The number of queues is out of range.
    #[error("queues {0}: give 1 to 256")]
    Queues(u16),
    /// The number of sockets is out of range.
    #[error("fanout {0}: give 1 to 256")]
    Fanout(u16),
    /// Several queues on a wire that has one.
    #[error("{0} queues: this wire has one; tun: and packet: have several")]
    OneQueue(u16),
    /// The descriptor's interface has another layer.
    #[error("the descriptor is of a {0} interface: do not set a layer")]
    GivenLayer(&'static str),
    /// Several queues for Ethernet frames.
    #[error(
        "queues {0} for Ethernet frames: give 1, since only the shard of one queue would hear where a neighbour is"
    )]
    EthernetQueues(u16),
    /// Not the address of a single station.
    #[error(
        "{0} names no single station: give an address with an even first byte, as in mac=02:00:00:00:00:01"
    )]
    Station(MacAddress),
    /// Not a valid path of a socket.
    #[error("socket path {path:?} has {len} bytes: give 1 to {most}, as in /run/whimbrel.sock", most = Self::MOST_PATH)]
    Path {
        /// The given path.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
}

impl ConfigError {
    /// Longest path of a socket in bytes: the size in `sockaddr_un` without the terminator.
    pub const MOST_PATH: usize = 107;
}

/// Returns a default route for each address family of the stack, by the first of `gateways` in that
/// family.
pub fn default_routes(addresses: &[InterfaceAddress], gateways: &[InterfaceAddress]) -> Vec<Route> {
    let route = |any: IpAddr| {
        let of_family = |own: &&InterfaceAddress| own.addr.to_ip().is_ipv4() == any.is_ipv4();
        addresses.iter().find(of_family)?;
        let gateway = gateways.iter().find(of_family);
        let route = Route::new(any, 0);
        Some(gateway.map_or(route, |gateway| route.via(gateway.addr.to_ip())))
    };
    let unspecified: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    unspecified.into_iter().filter_map(route).collect()
}
