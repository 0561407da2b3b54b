//! The network inside: its addresses, and a free place for it.

use std::fs;
use std::net::IpAddr;

use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::{Address, Endpoint};

use crate::failure::Failure;
use crate::proc;

/// The network between the program and the gateway: 10.0.N.0/24 and, if the machine has IPv6,
/// fd77:6869:6d62::/64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InsideNetwork {
    third: u8,
    has_ipv6: bool,
}

impl InsideNetwork {
    /// Chooses 10.0.2.0/24, or the next that neither the machine nor a wire with these addresses has a
    /// route to.
    pub(super) fn choose(wire: &[InterfaceAddress]) -> Result<Self, Failure> {
        let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
        let is_free = |third: &u8| {
            !routes.lines().any(|line| leads_to(line, *third))
                && !wire.iter().any(|own| is_in(own, *third))
        };
        let third = (FIRST..=LAST).find(is_free).ok_or_else(|| {
            let text = format!(
                "the machine routes to each of 10.0.{FIRST}.0/24 to 10.0.{LAST}.0/24, so none is left \
                 for the program: remove one of the routes (`ip route`)"
            );
            Failure::run(text)
        })?;
        Ok(Self { third, has_ipv6: proc::has_ipv6() })
    }

    /// The program's addresses.
    pub(super) fn program(self) -> Vec<InterfaceAddress> {
        self.both(PROGRAM)
    }

    /// The gateway's addresses: its own, and the name server's.
    pub(super) fn gateway(self) -> Vec<InterfaceAddress> {
        let mut all = self.both(GATEWAY);
        all.push(InterfaceAddress { addr: self.v4(DNS), prefix_len: 24 });
        all
    }

    /// The gateway's address of the family of `other`.
    pub(super) fn gateway_of_family(self, other: Address) -> Address {
        if other.is_v4() { self.v4(GATEWAY) } else { v6(GATEWAY) }
    }

    /// The program's address of the family of `other`, if it has one.
    pub(super) fn program_of_family(self, other: Address) -> Option<Address> {
        self.program().iter().map(|own| own.addr).find(|own| own.is_v4() == other.is_v4())
    }

    /// The address that programs ask for names.
    pub(super) fn name_server(self) -> Address {
        self.v4(DNS)
    }

    /// True for the gateway's own address of either family.
    pub(super) fn is_gateway(self, addr: Address) -> bool {
        addr == self.v4(GATEWAY) || addr == v6(GATEWAY)
    }

    /// True for any address of the network.
    pub(super) fn contains(self, addr: Address) -> bool {
        let front =
            |of: Address, bytes: usize| of.as_bytes().get(..bytes) == addr.as_bytes().get(..bytes);
        front(self.v4(GATEWAY), 15) || front(v6(GATEWAY), 8)
    }

    /// The name server's port.
    pub(super) fn name_service(self) -> Endpoint {
        Endpoint::new(self.name_server(), DNS_PORT)
    }

    fn both(self, last: u8) -> Vec<InterfaceAddress> {
        let mut all = vec![InterfaceAddress { addr: self.v4(last), prefix_len: 24 }];
        if self.has_ipv6 {
            all.push(InterfaceAddress { addr: v6(last), prefix_len: 64 });
        }
        all
    }

    fn v4(self, last: u8) -> Address {
        Address::from_v4_bytes([10, 0, self.third, last])
    }
}

fn v6(last: u8) -> Address {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(b"\xfdwhimb");
    bytes[15] = last;
    Address::from_bytes(bytes)
}

/// True if the network of this address and 10.0.`third`.0/24 overlap.
fn is_in(own: &InterfaceAddress, third: u8) -> bool {
    let IpAddr::V4(addr) = own.addr.to_ip() else { return false };
    let shared = u32::from(own.prefix_len.min(24));
    let mask = u32::MAX.checked_shl(32 - shared).unwrap_or(0);
    (addr.to_bits() ^ u32::from_be_bytes([10, 0, third, 0])) & mask == 0
}

/// True if a line of `/proc/net/route` is a route into 10.0.`third`.0/24, other than the default one.
fn leads_to(line: &str, third: u8) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let mut number = |at| u32::from_str_radix(words.nth(at)?, 16).ok().map(u32::from_be);
    // Destination, gateway, flags, count, use, metric, mask.
    let (Some(destination), Some(mask)) = (number(0), number(5)) else { return false };
    let shared = mask & u32::MAX << 8;
    mask != 0 && (destination ^ u32::from_be_bytes([10, 0, third, 0])) & shared == 0
}

/// Third bytes of the networks to choose from.
const FIRST: u8 = 2;
const LAST: u8 = 250;
/// Last bytes of addresses.
const GATEWAY: u8 = 2;
const DNS: u8 = 3;
const PROGRAM: u8 = 100;
/// RFC 1035 4.2.
pub(super) const DNS_PORT: u16 = 53;

#[cfg(test)]
mod tests;
