//! What wires of all kinds have in common: the addresses of a stack, and what is wrong with them.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use whimbrel_stack::{InterfaceAddress, Route, RouteMetrics};
use whimbrel_wire::{Address, Family, MacAddress};

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

/// Whether they can be a stack's: at least one, each once, each in its network.
pub(crate) fn check_addresses(addresses: &[InterfaceAddress]) -> Result<(), ConfigError> {
    if addresses.is_empty() {
        return Err(ConfigError::NoAddress);
    }
    for (at, address) in addresses.iter().enumerate() {
        check_address(*address)?;
        if addresses.iter().take(at).any(|other| other.addr == address.addr) {
            return Err(ConfigError::Twice(address.addr));
        }
    }
    Ok(())
}

/// Whether a stack with these addresses can do with packets of `mtu` bytes, and a device that
/// carries `most`: 68 (RFC 791), or 1,280 (RFC 8200 5) if one of them is of IPv6.
pub(crate) fn check_mtu(
    addresses: &[InterfaceAddress],
    mtu: u16,
    most: u16,
) -> Result<(), ConfigError> {
    let v6 = addresses.iter().any(|address| address.addr.family() == Family::V6);
    let least = if v6 { 1280 } else { 68 };
    if (least..=most).contains(&mtu) { Ok(()) } else { Err(ConfigError::Mtu { mtu, least, most }) }
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

/// Whether it can be one host's, in its network.
pub(crate) fn check_address(address: InterfaceAddress) -> Result<(), ConfigError> {
    let InterfaceAddress { addr, prefix_len: len } = address;
    let bits = bits(addr);
    if len > bits {
        return Err(ConfigError::PrefixLength { addr, len, bits });
    }
    // The first address of an IPv4 network is the network's, the last its broadcast address; the
    // first of an IPv6 network is its routers' (RFC 4291 2.6.1). Networks of two hosts (RFC 3021,
    // 6164) have neither.
    let mask = low_bits(bits - len);
    let host = number(addr) & mask;
    let broadcast = addr.is_v4() && host == mask;
    let reserved = bits - len > 1 && (host == 0 || broadcast);
    if reserved || addr.is_unspecified() || addr.is_multicast_or_broadcast() {
        return Err(ConfigError::NotAHost(addr));
    }
    // RFC 1122 3.2.1.3 (g): "Addresses of this form MUST NOT appear outside a host."
    if addr.to_ip().is_loopback() {
        return Err(ConfigError::Loopback(addr));
    }
    Ok(())
}

/// Whether it can be the stack's own station.
pub(crate) fn check_station(mac: MacAddress) -> Result<(), ConfigError> {
    if mac.is_multicast() || mac == MacAddress::default() {
        return Err(ConfigError::Station(mac));
    }
    Ok(())
}

/// A name that the kernel takes for an interface, and takes literally.
pub(crate) fn interface_name(name: &str) -> Result<CString, ConfigError> {
    if name.len() > 15 {
        return Err(ConfigError::NameTooLong { name: name.into(), len: name.len() });
    }
    // The kernel takes more, '%' among them, which it replaces by a number: then what was typed
    // would not be what is there.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let wrong = name.is_empty() || name == "." || name == ".." || !name.chars().all(plain);
    match CString::new(name) {
        Ok(name) if !wrong => Ok(name),
        _ => Err(ConfigError::Name(name.into())),
    }
}

/// The host numbered `which` of a network, from 0 on; `None` if it has not so many.
pub(crate) fn member(network: InterfaceAddress, which: u128) -> Option<Address> {
    let host_bits = bits(network.addr).checked_sub(network.prefix_len)?;
    let (first, count) = match host_bits {
        0 => return None,
        1 => (0, 2),
        _ => (1, low_bits(host_bits) - 1),
    };
    if which >= count {
        return None;
    }
    let number = (number(network.addr) & !low_bits(host_bits)) + first + which;
    Some(match network.addr.family() {
        Family::V4 => Ipv4Addr::from_bits(number as u32).into(),
        Family::V6 => Ipv6Addr::from_bits(number).into(),
    })
}

pub(crate) fn contains(network: InterfaceAddress, addr: Address) -> bool {
    let same_family = network.addr.family() == addr.family();
    let host_bits = bits(network.addr).saturating_sub(network.prefix_len);
    same_family && (number(network.addr) ^ number(addr)) & !low_bits(host_bits) == 0
}

fn bits(addr: Address) -> u8 {
    match addr.family() {
        Family::V4 => 32,
        Family::V6 => 128,
    }
}

fn number(addr: Address) -> u128 {
    match addr.to_ip() {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// A mask of the `count` lowest bits.
fn low_bits(count: u8) -> u128 {
    1u128.checked_shl(count.into()).unwrap_or(0).wrapping_sub(1)
}
