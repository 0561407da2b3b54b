//! What a place on an interface is to be: values that are valid once they exist.

use std::ffi::{CStr, CString};
use std::num::NonZeroU16;

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, MacAddress};

use crate::DuplicateAddressDetection;
use crate::config::{
    ConfigError, check_address, check_addresses, check_mtu, check_station, contains,
    default_routes, interface_name,
};
use crate::tun::Offload;

/// A place on an interface: its name, the stack's station and addresses there, its routers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketConfig {
    name: CString,
    addresses: Vec<InterfaceAddress>,
    gateways: Vec<InterfaceAddress>,
    mac: Option<MacAddress>,
    fanout: NonZeroU16,
    offload: Offload,
    dad: DuplicateAddressDetection,
}

impl PacketConfig {
    /// A place on the interface called `name` (1 to 15 bytes) for a stack that has `addresses`,
    /// which the machine must not have: no router, a station drawn at random, one socket, offloads
    /// on. The MTU is the interface's.
    pub fn new(name: &str, addresses: Vec<InterfaceAddress>) -> Result<Self, ConfigError> {
        let name = interface_name(name)?;
        check_addresses(&addresses)?;
        Ok(Self {
            name,
            addresses,
            gateways: Vec::new(),
            mac: None,
            fanout: NonZeroU16::MIN,
            offload: Offload::On,
            dad: DuplicateAddressDetection::On,
        })
    }

    /// The routers beyond the networks of the stack's addresses, each in one of these: the first of
    /// each family is used.
    pub fn with_gateways(mut self, gateways: &[Address]) -> Result<Self, ConfigError> {
        self.gateways.clear();
        for &addr in gateways {
            let network = self.addresses.iter().find(|address| contains(**address, addr));
            let network = network.ok_or(ConfigError::GatewayOutside(addr))?;
            let gateway = InterfaceAddress { addr, prefix_len: network.prefix_len };
            check_address(gateway)?;
            if self.addresses.iter().chain(&self.gateways).any(|other| other.addr == addr) {
                return Err(ConfigError::Twice(addr));
            }
            self.gateways.push(gateway);
        }
        Ok(self)
    }

    /// The stack's station; `None`: one is drawn at random. With the interface's own, where a
    /// switch lets no other pass, the machine must not forward packets (`net.ipv4.ip_forward`,
    /// `net.ipv6.conf.all.forwarding`): it would take those to the stack for its own to forward.
    pub fn with_mac(mut self, mac: Option<MacAddress>) -> Result<Self, ConfigError> {
        mac.map_or(Ok(()), check_station)?;
        self.mac = mac;
        Ok(self)
    }

    /// Sockets, one for each shard: 1 (default) to [`PacketConfig::MAX_FANOUT`].
    pub fn with_fanout(mut self, fanout: u16) -> Result<Self, ConfigError> {
        self.fanout = NonZeroU16::new(fanout)
            .filter(|fanout| fanout.get() <= Self::MAX_FANOUT)
            .ok_or(ConfigError::Fanout(fanout))?;
        Ok(self)
    }

    /// Whether the kernel checksums and cuts what is sent. What it receives in super-frames, from
    /// its drivers or from a neighbour on the same machine, it passes on in any case.
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

    /// The name of the interface that is shared with the kernel.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// The addresses that the stack has on the interface.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// The stack's way to whatever lies behind its routers: a default route for each family that
    /// has one.
    pub fn routes(&self) -> Vec<Route> {
        let mut routes = default_routes(&self.addresses, &self.gateways);
        routes.retain(|route| route.gateway.is_some());
        routes
    }

    /// The stack's station, if it is given.
    pub fn mac(&self) -> Option<MacAddress> {
        self.mac
    }

    /// The number of sockets.
    pub fn fanout(&self) -> u16 {
        self.fanout.get()
    }

    /// Whether the kernel checksums and cuts.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// Whether the stack can do with the interface's MTU.
    pub(super) fn check_mtu(&self, mtu: u16) -> Result<(), ConfigError> {
        check_mtu(&self.addresses, mtu, u16::MAX)
    }

    /// The most sockets that the kernel lets share an interface so.
    pub const MAX_FANOUT: u16 = 256;
}

#[cfg(test)]
mod tests;
