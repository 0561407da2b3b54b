//! Configuration of a TUN or TAP interface. Values are valid once constructed.

use std::ffi::{CStr, CString};
use std::num::NonZeroU16;

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, EthernetHeader, MacAddress};

use crate::DuplicateAddressDetection;
use crate::config::{
    ConfigError, check_address, check_addresses, check_mtu, check_station, contains,
    default_routes, interface_name, member, within_networks,
};

pub(super) use given::TunHandle;

mod given;

/// A TUN or TAP interface: its name, the stack's addresses and the machine's.
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
    /// The queue opened elsewhere, if any.
    given: Option<TunHandle>,
}

/// Header at the front of an interface's frames.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Layer {
    /// The IP header: TUN (default).
    #[default]
    Ip,
    /// An Ethernet header: TAP. The machine and the stack find each other by ARP and Neighbour
    /// Discovery. The value is the stack's station; `None` draws one at random.
    Ethernet(Option<MacAddress>),
}

/// Offload of checksums and segmentation, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Offload {
    /// Checksums unfinished and segments up to 64 kB in both directions (default): 21 Gbit/s,
    /// compared with 6 to 9 without.
    #[default]
    On,
    /// Each frame as it would be on a cable: for captures, and to find faults in offloads.
    Off,
}

impl TunConfig {
    /// Creates a configuration for the interface `name` (1 to 15 bytes) and a stack with
    /// `addresses`. In each of their networks, the machine gets the first address that the stack
    /// does not have. The defaults are IP packets, MTU 1500, one queue, offloads on.
    pub fn new(name: &str, addresses: Vec<InterfaceAddress>) -> Result<Self, ConfigError> {
        let name = interface_name(name)?;
        check_addresses(&addresses)?;
        Ok(Self { addresses, ..Self::named(name) }.with_derived_hosts())
    }

    /// Creates a configuration for an interface without a stack: the reader of its frames decides
    /// about them. The machine gets the addresses `hosts`, which may be empty. The rest is as in
    /// [`TunConfig::new`].
    pub fn bare(name: &str, hosts: Vec<InterfaceAddress>) -> Result<Self, ConfigError> {
        hosts.iter().try_for_each(|host| check_address(*host))?;
        Ok(Self { hosts, ..Self::named(interface_name(name)?) })
    }

    /// An interface without addresses, with defaults for all else.
    fn named(name: CString) -> Self {
        Self {
            name,
            layer: Layer::Ip,
            addresses: Vec::new(),
            hosts: Vec::new(),
            mtu: Self::DEFAULT_MTU,
            queues: NonZeroU16::MIN,
            offload: Offload::On,
            dad: DuplicateAddressDetection::On,
            given: None,
        }
    }

    /// Sets the machine's addresses, each in the network of one of the stack's, which determines
    /// its prefix. Networks without an address here keep the derived one.
    pub fn with_hosts(mut self, hosts: &[Address]) -> Result<Self, ConfigError> {
        self.hosts = within_networks(&self.addresses, hosts, ConfigError::HostOutside)?;
        Ok(self.with_derived_hosts())
    }

    /// Sets the size of the largest packet in bytes: 68 (RFC 791), or 1,280 with an IPv6 address
    /// (RFC 8200 5), to 65,535 (65,521 behind an Ethernet header). Default 1500, as on the
    /// internet. Smaller values mean more packets; larger ones may exceed the peer's path.
    pub fn with_mtu(mut self, mtu: u16) -> Result<Self, ConfigError> {
        check_mtu(&self.addresses, mtu, self.layer.most_mtu())?;
        self.mtu = mtu;
        Ok(self)
    }

    /// Sets the number of queues, one for each shard: 1 (default) to [`TunConfig::MAX_QUEUES`].
    pub fn with_queues(mut self, queues: u16) -> Result<Self, ConfigError> {
        self.queues = NonZeroU16::new(queues)
            .filter(|queues| queues.get() <= Self::MAX_QUEUES)
            .ok_or(ConfigError::Queues(queues))?;
        if self.given.is_some() && queues > 1 {
            return Err(ConfigError::OneQueue(queues));
        }
        self.check_layer()
    }

    /// Sets the header of its frames. Ethernet frames have one queue: a neighbour's reply arrives
    /// on one queue, and the other shards would not receive it.
    pub fn with_layer(mut self, layer: Layer) -> Result<Self, ConfigError> {
        if self.given.is_some() && layer.kind() != self.layer.kind() {
            return Err(ConfigError::GivenLayer(self.layer.kind()));
        }
        self.layer = layer;
        self.check_layer()
    }

    /// Sets the offload of checksums and segmentation.
    pub fn with_offload(mut self, offload: Offload) -> Self {
        self.offload = offload;
        self
    }

    /// Sets duplicate address detection, used on Ethernet.
    pub fn with_dad(mut self, dad: DuplicateAddressDetection) -> Self {
        self.dad = dad;
        self
    }

    /// Returns the mode of duplicate address detection.
    pub fn dad(&self) -> DuplicateAddressDetection {
        self.dad
    }

    /// Returns the name of the interface, new or existing.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the header of its frames.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Returns the addresses that the stack has on the interface.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// Returns the addresses that the kernel gets at its end.
    pub fn hosts(&self) -> &[InterfaceAddress] {
        &self.hosts
    }

    /// Returns the stack's addresses in whose network the machine has none: it needs a route to
    /// each.
    pub fn lone_addresses(&self) -> impl Iterator<Item = InterfaceAddress> {
        let reached = |address| self.hosts.iter().any(|host| contains(*host, address));
        self.addresses.iter().copied().filter(move |address| !reached(address.addr))
    }

    /// Returns the default routes by the machine, one for each family of which it has an address.
    pub fn routes(&self) -> Vec<Route> {
        default_routes(&self.addresses, &self.hosts)
    }

    /// Returns the size of the largest packet in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Returns the number of queues.
    pub fn queues(&self) -> u16 {
        self.queues.get()
    }

    /// Returns the mode of offloads.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// MTU if none is given.
    pub const DEFAULT_MTU: u16 = 1500;
    /// Limit of an interface's queues, set by the kernel.
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

    fn with_derived_hosts(mut self) -> Self {
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
        self
    }
}

impl Layer {
    /// Returns Linux's name for it.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Ip => "tun",
            Self::Ethernet(_) => "tap",
        }
    }

    /// Returns the size of the largest packet that the kernel's interface carries: 65,535 bytes
    /// with its headers.
    fn most_mtu(self) -> u16 {
        match self {
            Self::Ip => u16::MAX,
            Self::Ethernet(_) => u16::MAX - EthernetHeader::LEN as u16,
        }
    }
}

#[cfg(test)]
mod tests;
