//! Configuration of a packet socket's wire. Values are valid once constructed.

use std::ffi::{CStr, CString};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;

use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, MacAddress};

use super::passed::PassedSocket;
use crate::DuplicateAddressDetection;
use crate::config::{
    ConfigError, check_addresses, check_mtu, check_station, default_routes, interface_name,
    within_networks,
};
use crate::tun::Offload;

/// A stack's place on an interface: the interface's name, the stack's station and addresses there,
/// its routers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketConfig {
    name: CString,
    addresses: Vec<InterfaceAddress>,
    gateways: Vec<InterfaceAddress>,
    mac: Option<MacAddress>,
    fanout: NonZeroU16,
    offload: Offload,
    dad: DuplicateAddressDetection,
    socket: Option<PassedSocket>,
}

impl PacketConfig {
    /// Creates a configuration for the interface `name` (1 to 15 bytes) and a stack with
    /// `addresses`, which the machine must not have. The defaults are no router, a random station,
    /// one socket and offloads on. The MTU is the interface's.
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
            socket: None,
        })
    }

    /// Sets the routers to other networks, each in a network of one of the stack's addresses. The
    /// first of each family is used.
    pub fn with_gateways(mut self, gateways: &[Address]) -> Result<Self, ConfigError> {
        self.gateways = within_networks(&self.addresses, gateways, ConfigError::GatewayOutside)?;
        Ok(self)
    }

    /// Sets the stack's station; `None` draws one at random. Use the interface's own if a switch
    /// blocks other stations; then the machine must not forward packets (`net.ipv4.ip_forward`,
    /// `net.ipv6.conf.all.forwarding`), or it would forward those sent to the stack.
    pub fn with_mac(mut self, mac: Option<MacAddress>) -> Result<Self, ConfigError> {
        mac.map_or(Ok(()), check_station)?;
        self.mac = mac;
        Ok(self)
    }

    /// Sets the number of sockets, one for each shard: 1 (default) to [`PacketConfig::MAX_FANOUT`].
    pub fn with_fanout(mut self, fanout: u16) -> Result<Self, ConfigError> {
        self.fanout = NonZeroU16::new(fanout)
            .filter(|fanout| fanout.get() <= Self::MAX_FANOUT)
            .ok_or(ConfigError::Fanout(fanout))?;
        Ok(self)
    }

    /// Sets whether the kernel computes checksums and segments what is sent. Super-frames that it
    /// receives, from its drivers or from a neighbour on the same machine, are passed on in any
    /// case.
    pub fn with_offload(mut self, offload: Offload) -> Self {
        self.offload = offload;
        self
    }

    /// Sets duplicate address detection, used on Ethernet.
    pub fn with_dad(mut self, dad: DuplicateAddressDetection) -> Self {
        self.dad = dad;
        self
    }

    /// Uses `socket` instead of opening one: an `AF_PACKET` socket of the type `SOCK_RAW`, opened in another
    /// network namespace or by a parent process that has CAP_NET_RAW. The interface is the one that has
    /// the name in the namespace of the socket. This needs no privilege; the socket becomes non-blocking.
    /// One device can use it, once.
    ///
    /// That the machine has none of the stack's addresses is not checked: its namespace may be another.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NotPacketSocket`] if `socket` is no AF_PACKET socket of the type SOCK_RAW.
    pub fn with_socket(mut self, socket: OwnedFd) -> Result<Self, ConfigError> {
        self.socket = Some(PassedSocket::new(socket).ok_or(ConfigError::NotPacketSocket)?);
        Ok(self)
    }

    /// Returns the socket opened elsewhere, if there is one.
    pub(super) fn socket(&self) -> Option<&PassedSocket> {
        self.socket.as_ref()
    }

    /// Returns the mode of duplicate address detection.
    pub fn dad(&self) -> DuplicateAddressDetection {
        self.dad
    }

    /// Returns the name of the interface that is shared with the kernel.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the addresses that the stack has on the interface.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// Returns the default routes by the stack's routers, one for each family that has one.
    pub fn routes(&self) -> Vec<Route> {
        let mut routes = default_routes(&self.addresses, &self.gateways);
        routes.retain(|route| route.gateway.is_some());
        routes
    }

    /// Returns the stack's station, if it is given.
    pub fn mac(&self) -> Option<MacAddress> {
        self.mac
    }

    /// Returns the number of sockets.
    pub fn fanout(&self) -> u16 {
        self.fanout.get()
    }

    /// Returns the mode of offloads.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// Checks that the interface's MTU suffices for the stack's addresses.
    pub(super) fn check_mtu(&self, mtu: u16) -> Result<(), ConfigError> {
        check_mtu(&self.addresses, mtu, u16::MAX)
    }

    /// Limit of sockets that share an interface, set by the kernel.
    pub const MAX_FANOUT: u16 = 256;
}

#[cfg(test)]
mod tests;
