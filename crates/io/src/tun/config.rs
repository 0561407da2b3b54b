//! What a TUN interface is to be: values that are valid once they exist.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, Family};

/// A TUN interface: its name, the stack's addresses behind it, and the machine's before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunConfig {
    name: CString,
    addresses: Vec<InterfaceAddress>,
    hosts: Vec<InterfaceAddress>,
    mtu: u16,
    queues: NonZeroU16,
    offload: Offload,
}

/// Whether the kernel checksums and cuts for us, and we for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Offload {
    /// Checksums unfinished and segments up to 64 kB in both directions (default): 21 Gbit/s
    /// where 6 to 9 pass without.
    #[default]
    On,
    /// Each frame as it would stand on a cable: for captures, and for finding faults in offloads.
    Off,
}

impl TunConfig {
    /// An interface called `name` (1 to 15 octets) to a stack that has `addresses`. The machine
    /// gets, in each of their networks, the first address that the stack has not; MTU 1500, one
    /// queue, offloads on.
    pub fn new(name: &str, addresses: Vec<InterfaceAddress>) -> Result<Self, TunConfigError> {
        let name = interface_name(name)?;
        if addresses.is_empty() {
            return Err(TunConfigError::NoAddress);
        }
        for (at, address) in addresses.iter().enumerate() {
            check_address(*address)?;
            if addresses.iter().take(at).any(|other| other.addr == address.addr) {
                return Err(TunConfigError::Twice(address.addr));
            }
        }
        let mut config = Self {
            name,
            addresses,
            hosts: Vec::new(),
            mtu: Self::DEFAULT_MTU,
            queues: NonZeroU16::MIN,
            offload: Offload::On,
        };
        config.derive_hosts();
        Ok(config)
    }

    /// The machine's own addresses, each in the network of one of the stack's, from which it takes
    /// its prefix. A network that is given none keeps what was derived.
    pub fn with_hosts(mut self, hosts: &[Address]) -> Result<Self, TunConfigError> {
        self.hosts.clear();
        for &addr in hosts {
            let network = self.addresses.iter().copied().find(|address| contains(*address, addr));
            let network = network.ok_or(TunConfigError::HostOutside(addr))?;
            let host = InterfaceAddress { addr, prefix_len: network.prefix_len };
            check_address(host)?;
            if self.addresses.iter().chain(&self.hosts).any(|other| other.addr == addr) {
                return Err(TunConfigError::Twice(addr));
            }
            self.hosts.push(host);
        }
        self.derive_hosts();
        Ok(self)
    }

    /// The largest packet, octets: 68 (RFC 791) to 65,535; 1,280 at least (RFC 8200 5) if the
    /// stack has an IPv6 address. Default 1500, what the internet carries. Smaller: more packets;
    /// larger: the peer's path may not carry what was negotiated here.
    pub fn with_mtu(mut self, mtu: u16) -> Result<Self, TunConfigError> {
        let v6 = self.addresses.iter().any(|address| address.addr.family() == Family::V6);
        let least = if v6 { 1280 } else { 68 };
        if mtu < least {
            return Err(TunConfigError::Mtu { mtu, least });
        }
        self.mtu = mtu;
        Ok(self)
    }

    /// Queues, one for each shard: 1 (default) to [`TunConfig::MAX_QUEUES`].
    pub fn with_queues(mut self, queues: u16) -> Result<Self, TunConfigError> {
        self.queues = NonZeroU16::new(queues)
            .filter(|queues| queues.get() <= Self::MAX_QUEUES)
            .ok_or(TunConfigError::Queues(queues))?;
        Ok(self)
    }

    /// Whether the device checksums and cuts.
    pub fn with_offload(mut self, offload: Offload) -> Self {
        self.offload = offload;
        self
    }

    /// The interface's name.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// The stack's addresses.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// The machine's addresses.
    pub fn hosts(&self) -> &[InterfaceAddress] {
        &self.hosts
    }

    /// The stack's addresses in whose network the machine has none: it needs a route to each.
    pub fn lone_addresses(&self) -> impl Iterator<Item = InterfaceAddress> {
        let reached = |address| self.hosts.iter().any(|host| contains(*host, address));
        self.addresses.iter().copied().filter(move |address| !reached(address.addr))
    }

    /// The stack's way to whatever lies behind the machine: a default route for each family that
    /// it has an address of.
    pub fn routes(&self) -> Vec<Route> {
        let route = |any: Address| {
            let family = any.family();
            let of_family = |address: &&InterfaceAddress| address.addr.family() == family;
            self.addresses.iter().find(of_family)?;
            let gateway = self.hosts.iter().find(of_family).map(|host| host.addr);
            Some(Route { network: any, prefix_len: 0, gateway, metric: 0 })
        };
        let unspecified = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        unspecified.into_iter().filter_map(route).collect()
    }

    /// The largest packet, octets.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The number of queues.
    pub fn queues(&self) -> u16 {
        self.queues.get()
    }

    /// Whether the device checksums and cuts.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// The MTU if none is given.
    pub const DEFAULT_MTU: u16 = 1500;
    /// The most queues that the kernel gives one interface.
    pub const MAX_QUEUES: u16 = 256;

    fn derive_hosts(&mut self) {
        for at in 0..self.addresses.len() {
            let network = self.addresses[at];
            if self.hosts.iter().any(|host| contains(network, host.addr)) {
                continue;
            }
            let taken = |addr: Address| self.addresses.iter().any(|other| other.addr == addr);
            // One candidate more than there are addresses: one of them is free, if it exists.
            let free = (0..=self.addresses.len() as u128)
                .map_while(|number| member(network, number))
                .find(|addr| !taken(*addr));
            if let Some(addr) = free {
                self.hosts.push(InterfaceAddress { addr, prefix_len: network.prefix_len });
            }
        }
    }
}

/// What makes no TUN interface.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TunConfigError {
    /// An empty name, or a slash, colon, space or the like in it.
    #[error(
        "interface name {0:?}: give letters, digits, '-', '_' and '.', as in whim0, but neither '.' nor '..' alone"
    )]
    Name(String),
    /// Too long a name.
    #[error(
        "interface name {name:?} has {len} octets; the kernel takes at most 15: shorten it, as in whim0"
    )]
    NameTooLong {
        /// The name.
        name: String,
        /// Its length, octets.
        len: usize,
    },
    /// The stack has no address.
    #[error("the stack needs an address: give at least one, as in addr=10.9.0.2/24")]
    NoAddress,
    /// Not the address of one host.
    #[error("{0} cannot be an interface's address: it names no single host")]
    NotAHost(Address),
    /// A prefix that the family has not.
    #[error(
        "prefix length {len} of {addr} exceeds the {bits} bits of the address: give 0 to {bits}"
    )]
    PrefixLength {
        /// The address.
        addr: Address,
        /// What was given.
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
    /// Too small an MTU.
    #[error("mtu {mtu}: give {least} to 65535 octets")]
    Mtu {
        /// What was given.
        mtu: u16,
        /// The least for the families in use.
        least: u16,
    },
    /// No, or too many queues.
    #[error("queues {0}: give 1 to 256")]
    Queues(u16),
}

fn interface_name(name: &str) -> Result<CString, TunConfigError> {
    if name.len() > 15 {
        return Err(TunConfigError::NameTooLong { name: name.into(), len: name.len() });
    }
    // The kernel takes more, '%' among them, which it replaces by a number: then what was typed
    // would not be what is there.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let wrong = name.is_empty() || name == "." || name == ".." || !name.chars().all(plain);
    match CString::new(name) {
        Ok(name) if !wrong => Ok(name),
        _ => Err(TunConfigError::Name(name.into())),
    }
}

/// Whether it can be one host's, in its network.
fn check_address(address: InterfaceAddress) -> Result<(), TunConfigError> {
    let InterfaceAddress { addr, prefix_len: len } = address;
    let bits = bits(addr);
    if len > bits {
        return Err(TunConfigError::PrefixLength { addr, len, bits });
    }
    // The first address of an IPv4 network is the network's, the last its broadcast address; the
    // first of an IPv6 network is its routers' (RFC 4291 2.6.1). Networks of two hosts (RFC 3021,
    // 6164) have neither.
    let mask = low_bits(bits - len);
    let host = number(addr) & mask;
    let broadcast = addr.is_v4() && host == mask;
    let reserved = bits - len > 1 && (host == 0 || broadcast);
    if reserved || addr.is_unspecified() || addr.is_multicast_or_broadcast() {
        return Err(TunConfigError::NotAHost(addr));
    }
    Ok(())
}

/// The host numbered `which` of a network, from 0 on; `None` if it has not so many.
fn member(network: InterfaceAddress, which: u128) -> Option<Address> {
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

fn contains(network: InterfaceAddress, addr: Address) -> bool {
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

#[cfg(test)]
mod tests;
