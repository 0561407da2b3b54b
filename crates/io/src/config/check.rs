//! Checks of the addresses, MTUs, stations and names of a wire.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::{Address, Family, MacAddress};

use super::ConfigError;

/// Checks that the addresses can be a stack's: at least one, each once, each a host of its network.
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

/// Checks that `mtu` bytes suffice for these addresses, 68 (RFC 791) or 1,280 with IPv6 (RFC 8200
/// 5), and are at most `most`, the device's limit.
pub(crate) fn check_mtu(
    addresses: &[InterfaceAddress],
    mtu: u16,
    most: u16,
) -> Result<(), ConfigError> {
    let v6 = addresses.iter().any(|address| address.addr.family() == Family::V6);
    let least = if v6 { 1280 } else { 68 };
    if (least..=most).contains(&mtu) { Ok(()) } else { Err(ConfigError::Mtu { mtu, least, most }) }
}

/// Other addresses with the prefixes of the networks of `own` that they lie in, each once; `outside`
/// makes the error for one that lies in none.
pub(crate) fn within_networks(
    own: &[InterfaceAddress],
    others: &[Address],
    outside: fn(Address) -> ConfigError,
) -> Result<Vec<InterfaceAddress>, ConfigError> {
    let mut found: Vec<InterfaceAddress> = Vec::new();
    for &addr in others {
        let network = own.iter().find(|address| contains(**address, addr));
        let prefix_len = network.ok_or(outside(addr))?.prefix_len;
        check_address(InterfaceAddress { addr, prefix_len })?;
        if own.iter().chain(&found).any(|other| other.addr == addr) {
            return Err(ConfigError::Twice(addr));
        }
        found.push(InterfaceAddress { addr, prefix_len });
    }
    Ok(found)
}

/// Checks that the address can be one host's in its network.
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

/// Checks that the address can be the stack's own station.
pub(crate) fn check_station(mac: MacAddress) -> Result<(), ConfigError> {
    if mac.is_multicast() || mac == MacAddress::default() {
        return Err(ConfigError::Station(mac));
    }
    Ok(())
}

/// Returns `name` if the kernel takes it literally as the name of an interface.
pub(crate) fn interface_name(name: &str) -> Result<CString, ConfigError> {
    if name.len() > 15 {
        return Err(ConfigError::NameTooLong { name: name.into(), len: name.len() });
    }
    // The kernel takes more characters, for example '%', which it replaces by a number: the
    // interface would then not have the given name.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let wrong = name.is_empty() || name == "." || name == ".." || !name.chars().all(plain);
    match CString::new(name) {
        Ok(name) if !wrong => Ok(name),
        _ => Err(ConfigError::Name(name.into())),
    }
}

/// Returns the host numbered `which` of a network, from 0; `None` if the network has fewer.
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

/// Returns a mask of the `count` lowest bits.
fn low_bits(count: u8) -> u128 {
    1u128.checked_shl(count.into()).unwrap_or(0).wrapping_sub(1)
}
