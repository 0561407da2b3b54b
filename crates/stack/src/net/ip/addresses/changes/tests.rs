//! Addresses come and go, and numbers stay with those that they were given to.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use whimbrel_wire::Address;

use super::super::{Addresses, PathClass, tests::addr};
use crate::InterfaceAddress;
use crate::shard::ConfigError;

fn own(number: u32) -> InterfaceAddress {
    let addr = Address::from_v4_bytes((0x0a00_0000 + number * 256 + 1).to_be_bytes());
    InterfaceAddress { addr, prefix_len: 24 }
}

fn host(count: u32) -> Addresses {
    Addresses::new(&(0..count).map(own).collect::<Vec<_>>()).expect("valid addresses")
}

#[test]
fn the_last_address_goes_and_another_comes() {
    let mut addresses = host(1);
    assert_eq!(addresses.remove(&own(0).addr), Some(own(0)));
    assert!(addresses.is_empty());
    // Nothing is left that anybody could be taken for.
    for absent in [own(0).addr, addr("::"), addr("0.0.0.0")] {
        assert_eq!(addresses.local_index_of(&absent), None);
        assert_eq!(addresses.source_for(&absent), None);
    }
    assert_eq!(addresses.path_class(&addr("10.0.0.9")), PathClass::Remote);
    assert_eq!(addresses.add(own(7), &BTreeSet::new()), Ok(0));
    assert_eq!(addresses.source_for(&addr("8.8.8.8")), Some(0));
    assert_eq!(addresses.path_class(&addr("10.0.7.9")), PathClass::Link);
}

#[test]
fn a_number_that_is_in_use_is_given_to_nobody() {
    let mut addresses = host(2);
    addresses.remove(&own(0).addr);
    assert_eq!(addresses.add(own(5), &BTreeSet::from([0])), Ok(2));
    assert_eq!(addresses.add(own(6), &BTreeSet::new()), Ok(0));
}

#[test]
fn the_bound_is_said_with_what_would_be_beyond_it() {
    let mut addresses = host(Addresses::MOST as u32);
    let beyond = addresses.add(own(Addresses::MOST as u32), &BTreeSet::new());
    let count = Addresses::MOST + 1;
    assert_eq!(beyond, Err(ConfigError::AddressCount { count, most: Addresses::MOST }));
    let mut addresses = host(2);
    addresses.take_any();
    for number in 2..66 {
        addresses.add(own(number), &BTreeSet::new()).expect("64 are kept");
    }
    let beyond = addresses.add(own(66), &BTreeSet::new());
    assert_eq!(beyond, Err(ConfigError::AddressCount { count: 67, most: 66 }));
    assert_eq!(addresses.intern(addr("192.0.2.1")), Some(66), "the first of others");
}

#[test]
fn an_address_is_added_once_and_loopback_never() {
    let mut addresses = host(1);
    for known in ["10.0.0.1", "127.0.0.1", "::1"] {
        let again = InterfaceAddress { addr: addr(known), prefix_len: 8 };
        let refused = addresses.add(again, &BTreeSet::new());
        assert_eq!(refused, Err(ConfigError::DuplicateAddress(addr(known))));
        assert!(addresses.is_local(&addr(known)));
    }
    assert_eq!(addresses.index_of(&addr("127.0.0.1")), None, "no other packets are for it");
    assert!(!addresses.is_local(&addr("127.0.0.2")));
    let index = addresses.local_index_of(&addr("::1")).expect("every host has it");
    assert_eq!(addresses.get(index), Some(&addr("::1")));
    assert_eq!(addresses.source_for(&addr("::1")), Some(index));
}

proptest! {
    /// Against a map of what was added and not removed.
    #[test]
    fn numbers_do_not_move(steps in proptest::collection::vec((any::<bool>(), 0u32..6), 0..60)) {
        let mut addresses = host(2);
        let mut model: BTreeMap<u32, u16> = BTreeMap::from([(0, 0), (1, 1)]);
        for (adds, number) in steps {
            if adds {
                match addresses.add(own(number), &BTreeSet::new()) {
                    Ok(index) => {
                        prop_assert!(model.values().all(|taken| *taken != index));
                        prop_assert_eq!(model.insert(number, index), None);
                    }
                    Err(_) => prop_assert!(model.contains_key(&number)),
                }
            } else {
                let removed = addresses.remove(&own(number).addr);
                prop_assert_eq!(removed.is_some(), model.remove(&number).is_some());
            }
            prop_assert_eq!(addresses.len(), model.len());
            for number in 0..6 {
                let own = own(number);
                let index = model.get(&number).copied();
                prop_assert_eq!(addresses.index_of(&own.addr), index);
                let class = if index.is_some() { PathClass::Loopback } else { PathClass::Remote };
                prop_assert_eq!(addresses.path_class(&own.addr), class);
                if let Some(index) = index {
                    prop_assert_eq!(addresses.get(index), Some(&own.addr));
                }
            }
            let mut numbered: Vec<_> = addresses.numbered().map(|(index, _)| index).collect();
            let mut expected: Vec<_> = model.values().copied().collect();
            numbered.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(numbered, expected);
        }
    }
}
