//! Which addresses are ours, and which of them speaks.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_wire::{Address, Family};

use super::{Addresses, PathClass, bits, masked};
use crate::InterfaceAddress;
use crate::shard::ConfigError;

pub(in crate::net::ip) fn addr(text: &str) -> Address {
    text.parse::<core::net::IpAddr>().expect("an address").into()
}

fn own(text: &str, prefix_len: u8) -> InterfaceAddress {
    InterfaceAddress { addr: addr(text), prefix_len }
}

fn host() -> Addresses {
    let own =
        [own("fe80::1", 64), own("10.0.0.1", 24), own("192.168.7.1", 16), own("2001:db8::1", 32)];
    Addresses::new(&own).expect("valid addresses")
}

#[test]
fn every_address_is_found_by_value_and_by_index() {
    for count in 1..=4 {
        let all: Vec<InterfaceAddress> = host().iter().take(count).copied().collect();
        let addresses = Addresses::new(&all).expect("valid addresses");
        for (index, own) in (0u16..).zip(&all) {
            assert_eq!(addresses.index_of(&own.addr), Some(index));
            assert_eq!(addresses.get(index), Some(&own.addr));
        }
        assert_eq!(addresses.index_of(&addr("10.0.0.2")), None);
        assert_eq!(addresses.get(count as u16), None);
    }
}

#[test]
fn what_cannot_be_an_address_of_ours_is_refused_by_name() {
    let none = Addresses::new(&[]).map(|_| ());
    assert_eq!(none, Err(ConfigError::AddressCount { count: 0, most: Addresses::MOST }));
    let long = Addresses::new(&[own("10.0.0.1", 33)]).map(|_| ());
    assert_eq!(long, Err(ConfigError::PrefixLength { len: 33, bits: 32 }));
    let twice = Addresses::new(&[own("::1", 128), own("::1", 64)]).map(|_| ());
    assert_eq!(twice, Err(ConfigError::DuplicateAddress(addr("::1"))));
    for absent in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"] {
        let refused = Addresses::new(&[own("10.0.0.1", 24), own(absent, 24)]).map(|_| ());
        assert_eq!(refused, Err(ConfigError::NotAHost(addr(absent))));
    }
}

#[test]
fn the_path_class_is_that_of_the_nearest_network() {
    let class = |text| host().path_class(&addr(text));
    assert_eq!(class("10.0.0.1"), PathClass::Loopback);
    assert_eq!((class("10.0.0.9"), class("10.0.1.9")), (PathClass::Link, PathClass::Remote));
    assert_eq!((class("fe80::9"), class("fe80:0:0:1::9")), (PathClass::Link, PathClass::Remote));
}

#[test]
fn the_source_is_near_the_destination_and_reaches_it() {
    let source = |text| host().source_for(&addr(text)).and_then(|index| host().get(index).copied());
    assert_eq!(source("192.168.200.3"), Some(addr("192.168.7.1")));
    assert_eq!(source("8.8.8.8"), Some(addr("10.0.0.1")), "the first of its family");
    assert_eq!(source("fe80::9"), Some(addr("fe80::1")));
    assert_eq!(source("2001:4860::8"), Some(addr("2001:db8::1")), "not confined to the link");
    let v4_only = Addresses::new(&[own("10.0.0.1", 24)]).expect("a valid address");
    assert_eq!(v4_only.source_for(&addr("::2")), None);
}

pub(in crate::net::ip) fn any_address() -> impl Strategy<Value = Address> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(Address::from_v4_bytes),
        any::<[u8; 16]>().prop_map(Address::from_bytes),
        // Neighbours, so that prefixes matter.
        (0u8..4, 0u8..4).prop_map(|(net, host)| Address::from_v4_bytes([10, 0, net, host])),
        (0u8..4, 0u8..4).prop_map(|(net, host)| {
            Address::from_bytes([0xfd, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host])
        }),
    ]
}

fn any_hosts_address() -> impl Strategy<Value = Address> {
    let names_a_host = |addr: &Address| !addr.is_unspecified() && !addr.is_multicast_or_broadcast();
    any_address().prop_filter("names a host", names_a_host)
}

/// Bit `at` of an address as its family counts them.
fn bit(addr: &Address, at: usize) -> bool {
    let bytes = addr.as_bytes();
    let family = if addr.family() == Family::V4 { &bytes[12..] } else { &bytes[..] };
    family[at / 8] & (0x80 >> (at % 8)) != 0
}

/// True if the first `len` bits agree, bit by bit.
pub(in crate::net::ip) fn share_prefix(one: &Address, other: &Address, len: u8) -> bool {
    one.family() == other.family() && (0..usize::from(len)).all(|at| bit(one, at) == bit(other, at))
}

proptest! {
    #[test]
    fn a_mask_keeps_the_first_bits_and_clears_the_others(addr in any_address(), len in 0u8..=128) {
        let bits = bits(addr.family());
        let len = len.min(bits);
        let network = masked(&addr, len);
        // An IPv6 prefix may leave an address of the same family only.
        prop_assert_eq!(network.family(), addr.family());
        for at in 0..bits {
            let expected = at < len && bit(&addr, at.into());
            prop_assert_eq!(bit(&network, at.into()), expected, "bit {}", at);
        }
    }

    #[test]
    fn look_ups_agree_with_a_scan(
        own in vec((any_hosts_address(), 0u8..=128), 1..6),
        remote in any_address(),
    ) {
        let mut all: Vec<InterfaceAddress> = Vec::new();
        for (addr, len) in own {
            if all.iter().all(|known| known.addr != addr) {
                let prefix_len = len.min(bits(addr.family()));
                all.push(InterfaceAddress { addr, prefix_len });
            }
        }
        let addresses = Addresses::new(&all).expect("valid addresses");
        let is_ours = all.iter().any(|own| own.addr == remote);
        let is_near = all.iter().any(|own| share_prefix(&own.addr, &remote, own.prefix_len));
        let class = match (is_ours, is_near) {
            (true, _) => PathClass::Loopback,
            (_, true) => PathClass::Link,
            _ => PathClass::Remote,
        };
        prop_assert_eq!(addresses.path_class(&remote), class);
        prop_assert_eq!(addresses.index_of(&remote).is_some(), is_ours);
        let source = addresses.source_for(&remote);
        let speaks = all.iter().any(|own| own.addr.family() == remote.family());
        prop_assert_eq!(source.is_some(), speaks);
        if let Some(source) = source.and_then(|index| addresses.get(index)) {
            prop_assert_eq!(source.family(), remote.family());
        }
    }
}
