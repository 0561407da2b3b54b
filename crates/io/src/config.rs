//! What wires of all kinds have in common: the addresses of a stack, and what is wrong with them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use whimbrel_stack::{InterfaceAddress, Route, RouteMetrics};
use whimbrel_wire::{Address, MacAddress};

#[cfg(target_os = "linux")]
pub(crate) use check::{
    check_address, check_addresses, check_mtu, check_station, contains, interface_name, member,
};

#[cfg(target_os = "linux")]
mod check;

/// What makes no wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An empty name, or a slash, colon, space or the like in it.
    #[error(
        "interface name {0:?}: give letters, digits, '-', '_' and '.', as in whim0, but neither '.' nor '..' alone"
    )]
    Name(String),
    /// Too long a name.
    #[error(
        "interface name {name:?} has {len} bytes; the kernel takes at most 15: shorten it, as in whim0"
    )]
    NameTooLong {
        /// The name that was given.
        name: String,
        /// The length of what was given, bytes.
        len: usize,
    },
    /// The stack has no address.
    #[error("the stack needs an address: give at least one, as in addr=10.9.0.2/24")]
    NoAddress,
    /// Not the address of one host.
    #[error(
        "{0} cannot be an interface's address: it names no single host; give one, as in addr=10.9.0.2/24"
    )]
    NotAHost(Address),
    /// An address that no other host may see.
    #[error(
        "{0} is a loopback address, which never leaves its own machine: give one of a network, as in \
         addr=10.9.0.2/24"
    )]
    Loopback(Address),
    /// A prefix that the family has not.
    #[error(
        "prefix length {len} of {addr} exceeds the {bits} bits of the address: give 0 to {bits}"
    )]
    PrefixLength {
        /// The address whose prefix it is.
        addr: Address,
        /// The value that was given.
        len: u8,
        /// What the family has.
        bits: u8,
    },
    /// One address for two.
    #[error("{0} is given twice: the stack and the machine need an address each")]
    Twice(Address),
    /// A host address that cannot reach the stack.
    #[error(
        "host address {0} lies in the network of none of the stack's addresses: choose one of the same prefix, as in addr=10.9.0.2/24,host=10.9.0.1"
    )]
    HostOutside(Address),
    /// A router that cannot be reached.
    #[error(
        "gateway {0} lies in the network of none of the stack's addresses: choose one of the same prefix, as in addr=10.9.0.2/24,gw=10.9.0.1"
    )]
    GatewayOutside(Address),
    /// Too small an MTU, or too large a one.
    #[error("mtu {mtu}: give {least} to {most} bytes")]
    Mtu {
        /// The value that was given.
        mtu: u16,
        /// The least for the families in use.
        least: u16,
        /// The most that the device carries.
        most: u16,
    },
    /// No, or too many queues.
    #[error("queues {0}: give 1 to 256")]
    Queues(u16),
    /// No, or too many sockets.
    #[error("fanout {0}: give 1 to 256")]
    Fanout(u16),
    /// Several queues where there is one.
    #[error("{0} queues: this wire has one; tun: and packet: have several")]
    OneQueue(u16),
    /// Another layer than the interface of a descriptor has.
    #[error("the descriptor is of a {0} interface: leave its layer as it is")]
    GivenLayer(&'static str),
    /// Several queues for Ethernet frames.
    #[error(
        "queues {0} for Ethernet frames: give 1, since only the shard of one queue would hear where a neighbour is"
    )]
    EthernetQueues(u16),
    /// The address of a group of stations, or of none.
    #[error(
        "{0} names no single station: give an address with an even first byte, as in mac=02:00:00:00:00:01"
    )]
    Station(MacAddress),
    /// A path that is no socket's.
    #[error("socket path {path:?} has {len} bytes: give 1 to {most}, as in /run/whimbrel.sock", most = Self::MOST_PATH)]
    Path {
        /// The path that was given.
        path: PathBuf,
        /// The length of what was given, bytes.
        len: usize,
    },
}

impl ConfigError {
    /// The longest path of a socket, bytes: what `sockaddr_un` holds beside its end.
    pub const MOST_PATH: usize = 107;
}

/// A default route for each family that the stack has an address of, by way of the first of
/// `gateways` of that family.
pub fn default_routes(addresses: &[InterfaceAddress], gateways: &[InterfaceAddress]) -> Vec<Route> {
    let route = |any: Address| {
        let family = any.family();
        let of_family = |address: &&InterfaceAddress| address.addr.family() == family;
        addresses.iter().find(of_family)?;
        let gateway = gateways.iter().find(of_family).map(|host| host.addr);
        let metrics = RouteMetrics::default();
        Some(Route { network: any, prefix_len: 0, gateway, metric: 0, metrics })
    };
    let unspecified = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    unspecified.into_iter().filter_map(route).collect()
}
