//! What a TUN or TAP interface is to be: values that are valid once they exist.

use std::ffi::{CStr, CString};
use std::num::NonZeroU16;

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, EthernetHeader, MacAddress};

use crate::DuplicateAddressDetection;
use crate::config::{
    ConfigError, check_address, check_addresses, check_mtu, check_station, contains,
    default_routes, interface_name, member,
};

pub(super) use given::TunHandle;

mod given;

/// A TUN or TAP interface: its name, the stack's addresses behind it, and the machine's before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunConfig {
    name: CString,
    layer: Layer,
    addresses: Vec<InterfaceAddress>,
    hosts: Vec<InterfaceAddress>,
    mtu: u16,
    queues: NonZeroU16,
    offload: Offload,
    dad: DuplicateAddressDetection,
    /// The queue of it that somebody else opened.
    given: Option<TunHandle>,
}

/// What the frames of an interface begin with.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Layer {
    /// The IP header: TUN (default).
    #[default]
    Ip,
    /// An Ethernet header: TAP. The machine and the stack find each other by ARP and Neighbour
    /// Discovery; the stack's station is this, or one drawn at random.
    Ethernet(Option<MacAddress>),
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
    /// An interface called `name` (1 to 15 bytes) to a stack that has `addresses`. The machine
    /// gets, in each of their networks, the first address that the stack has not; IP packets, MTU
    /// 1500, one queue, offloads on.
    pub fn new(name: &str, addresses: Vec<InterfaceAddress>) -> Result<Self, ConfigError> {
        let name = interface_name(name)?;
        check_addresses(&addresses)?;
        let mut config = Self {
            name,
            layer: Layer::Ip,
            addresses,
            hosts: Vec::new(),
            mtu: Self::DEFAULT_MTU,
            queues: NonZeroU16::MIN,
            offload: Offload::On,
            dad: DuplicateAddressDetection::On,
            given: None,
        };
        config.derive_hosts();
        Ok(config)
    }

    /// An interface with no stack behind it: whatever its frames are for is up to who reads them. The
    /// machine gets these addresses, and none if there are none. As [`TunConfig::new`] otherwise.
    pub fn bare(name: &str, hosts: Vec<InterfaceAddress>) -> Result<Self, ConfigError> {
        hosts.iter().try_for_each(|host| check_address(*host))?;
        Ok(Self {
            name: interface_name(name)?,
            layer: Layer::Ip,
            addresses: Vec::new(),
            hosts,
            mtu: Self::DEFAULT_MTU,
            queues: NonZeroU16::MIN,
            offload: Offload::On,
            dad: DuplicateAddressDetection::On,
            given: None,
        })
    }

    /// The machine's own addresses, each in the network of one of the stack's, from which it takes
    /// its prefix. A network that is given none keeps what was derived.
    pub fn with_hosts(mut self, hosts: &[Address]) -> Result<Self, ConfigError> {
        self.hosts.clear();
        for &addr in hosts {
            let network = self.addresses.iter().copied().find(|address| contains(*address, addr));
            let network = network.ok_or(ConfigError::HostOutside(addr))?;
            let host = InterfaceAddress { addr, prefix_len: network.prefix_len };
            check_address(host)?;
            if self.addresses.iter().chain(&self.hosts).any(|other| other.addr == addr) {
                return Err(ConfigError::Twice(addr));
            }
            self.hosts.push(host);
        }
        self.derive_hosts();
        Ok(self)
    }

    /// The largest packet, bytes: 68 (RFC 791) to 65,535 (65,521 behind an Ethernet header); 1,280 at least (RFC 8200 5) if the
    /// stack has an IPv6 address. Default 1500, what the internet carries. Smaller: more packets;
    /// larger: the peer's path may not carry what was negotiated here.
    pub fn with_mtu(mut self, mtu: u16) -> Result<Self, ConfigError> {
        check_mtu(&self.addresses, mtu, self.layer.most_mtu())?;
        self.mtu = mtu;
        Ok(self)
    }

    /// Queues, one for each shard: 1 (default) to [`TunConfig::MAX_QUEUES`].
    pub fn with_queues(mut self, queues: u16) -> Result<Self, ConfigError> {
        self.queues = NonZeroU16::new(queues)
            .filter(|queues| queues.get() <= Self::MAX_QUEUES)
            .ok_or(ConfigError::Queues(queues))?;
        if self.given.is_some() && queues > 1 {
            return Err(ConfigError::OneQueue(queues));
        }
        self.check_layer()
    }

    /// What its frames begin with. Ethernet frames have one queue: an answer of a neighbour comes
    /// in on one, and the shards of the others would never hear of it.
    pub fn with_layer(mut self, layer: Layer) -> Result<Self, ConfigError> {
        if self.given.is_some() && layer.kind() != self.layer.kind() {
            return Err(ConfigError::GivenLayer(self.layer.kind()));
        }
        self.layer = layer;
        self.check_layer()
    }

    /// Whether the device checksums and cuts.
    pub fn with_offload(mut self, offload: Offload) -> Self {
        self.offload = offload;
        self
    }

    /// Whether others are asked for the stack's addresses first, where frames are Ethernet's.
    pub fn with_dad(mut self, dad: DuplicateAddressDetection) -> Self {
        self.dad = dad;
        self
    }

    /// Whether others are asked for the stack's addresses first.
    pub fn dad(&self) -> DuplicateAddressDetection {
        self.dad
    }

    /// The name of the interface, new or there already.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// The addresses that the stack has on the interface.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// The addresses that the kernel gets at its end.
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
        default_routes(&self.addresses, &self.hosts)
    }

    /// The largest packet, bytes.
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

    fn check_layer(self) -> Result<Self, ConfigError> {
        if let Layer::Ethernet(mac) = self.layer {
            mac.map_or(Ok(()), check_station)?;
            if self.queues() > 1 {
                return Err(ConfigError::EthernetQueues(self.queues()));
            }
        }
        check_mtu(&self.addresses, self.mtu, self.layer.most_mtu())?;
        Ok(self)
    }

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

impl Layer {
    /// What Linux calls it.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Ip => "tun",
            Self::Ethernet(_) => "tap",
        }
    }

    /// The largest packet that the kernel's interface carries: with its headers, 65,535 bytes.
    fn most_mtu(self) -> u16 {
        match self {
            Self::Ip => u16::MAX,
            Self::Ethernet(_) => u16::MAX - EthernetHeader::LEN as u16,
        }
    }
}

#[cfg(test)]
mod tests;
