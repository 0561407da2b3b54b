use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;
use whimbrel_base::{PortRange, ReservedPorts, Secrets};
use whimbrel_wire::{Address, Endpoint};

use super::{Destination, PortUse, Ports, PortsExhausted, Taken};
use crate::tunables::PortOrder;
use crate::{Counters, Tunables};

mod many;

pub(super) const HOST: Address = Address::from_v4_bytes([192, 0, 2, 1]);

pub(super) const fn server(last_byte: u8) -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([198, 51, 100, last_byte]), 80)
}

fn range(first: u16, last: u16) -> PortRange {
    PortRange::new(first, last).unwrap()
}

fn ordered(order: PortOrder, first: u16, last: u16) -> Ports {
    with(1, range(first, last), &Tunables { port_order: order, ..Tunables::default() })
}

fn with(seed: u64, range: PortRange, tunables: &Tunables) -> Ports {
    Ports::new(&Secrets::from_seed(seed), range, tunables)
}

fn towards(last_byte: u8) -> Destination {
    Destination { local: HOST, remote: server(last_byte) }
}

/// A port for which `is_free` holds, which is free again at once.
fn draw(
    ports: &mut Ports,
    byte: u8,
    mut is_free: impl FnMut(u16) -> bool,
) -> Result<u16, PortsExhausted> {
    let look = |port| if is_free(port) { PortUse::Free } else { PortUse::Foreign };
    let port = ports.choose(&towards(byte), &mut Counters::default(), look)?;
    ports.release(&towards(byte), port);
    Ok(port)
}

fn ports(first: u16, last: u16) -> Ports {
    ordered(PortOrder::DoubleHash, first, last)
}

#[test]
fn every_port_of_the_range_is_drawn_once_before_any_comes_back() {
    let mut ports = ports(40_000, 40_099);
    let mut used = BTreeSet::new();
    for _ in 0..100 {
        let port = draw(&mut ports, 1, |_| true).unwrap();
        assert!(used.insert(port), "{port} came twice");
    }
    assert_eq!((used.first(), used.last()), (Some(&40_000), Some(&40_099)));
}

#[test]
fn the_next_port_is_the_one_that_a_search_would_choose() {
    use PortOrder::{DoubleHash, EvenFirst, Random, Sequential};
    for order in [DoubleHash, EvenFirst, Random, Sequential] {
        let reserved = ReservedPorts::new(&[(40_003, 40_003), (40_010, 40_012)]).unwrap();
        let tunables =
            Tunables { port_order: order, reserved_ports: reserved, ..Tunables::default() };
        let [mut by_next, mut by_search] =
            [0, 0].map(|_| with(1, range(40_000, 40_099), &tunables));
        let counters = &mut Counters::default();
        for round in 0..300 {
            let searched = draw(&mut by_search, 1, |_| true).unwrap();
            let port = match by_next.next(&towards(1)) {
                Some(next) => {
                    by_next.take_next(&towards(1), next, counters);
                    next.port()
                }
                // Reserved up to the end of what is tried first.
                None => by_next.choose(&towards(1), counters, |_| PortUse::Free).unwrap(),
            };
            assert_eq!(port, searched, "{order:?}, {round}");
            by_next.release(&towards(1), port);
        }
    }
}

#[test]
fn the_only_free_port_is_found() {
    let mut ports = ports(40_000, 40_099);
    assert_eq!(draw(&mut ports, 1, |port| port == 40_033), Ok(40_033));
}

#[test]
fn exhaustion_asks_once_for_each_port_and_names_the_limit() {
    let mut ports = ports(40_000, 40_099);
    let mut asked = 0;
    let refusal = draw(&mut ports, 1, |_| {
        asked += 1;
        false
    });
    let taken = Taken { in_use: 100, ..Taken::default() };
    assert_eq!(refusal, Err(PortsExhausted { range: range(40_000, 40_099), taken }));
    assert_eq!(asked, 100);
    assert_eq!(
        refusal.unwrap_err().to_string(),
        "no free port: of 40000 to 40099 100 are in use towards this destination and 0 wait; widen \
         net.ipv4.ip_local_port_range, or add a local address"
    );
}

#[test]
fn secrets_decide_where_ports_of_each_destination_start() {
    let first = |seed, byte| {
        let mut ports = with(seed, range(1024, 65_535), &Tunables::default());
        draw(&mut ports, byte, |_| true).unwrap()
    };
    let by_destination: BTreeSet<u16> = (0..32).map(|byte| first(1, byte)).collect();
    assert!(by_destination.len() >= 31, "{by_destination:?}");
    let by_secret: BTreeSet<u16> = (0..32).map(|seed| first(seed, 1)).collect();
    assert!(by_secret.len() >= 31, "{by_secret:?}");
    assert_eq!(first(1, 1), first(1, 1));
}

#[test]
fn connections_to_one_destination_keep_the_order_of_others() {
    let mut ports = ports(1024, 65_535);
    let before = draw(&mut ports, 1, |_| true).unwrap();
    for _ in 0..500 {
        draw(&mut ports, 2, |_| true).unwrap();
    }
    assert_eq!(draw(&mut ports, 1, |_| true), Ok(before + 1));
}

#[test]
fn a_range_of_one_port_and_the_whole_range_work() {
    assert_eq!(draw(&mut ports(1, 1), 1, |_| true), Ok(1));
    let mut all = ports(1, 65_535);
    let drawn: BTreeSet<u16> = (0..65_535).map(|_| draw(&mut all, 1, |_| true).unwrap()).collect();
    assert_eq!(drawn.len(), 65_535);
}

#[test]
fn the_range_by_default_is_that_of_linux() {
    let by_default = Tunables::default().port_range().unwrap();
    assert_eq!((by_default.first(), by_default.last()), (32_768, 60_999));
    assert_eq!(by_default.count(), 28_232);
}

#[test]
fn a_new_range_is_drawn_from_at_once() {
    let mut ports = ports(1000, 1999);
    ports.set_rules(range(5000, 5001), ReservedPorts::NONE);
    let drawn: Vec<u16> = (0..4).map(|_| draw(&mut ports, 1, |_| true).unwrap()).collect();
    assert!(drawn.iter().all(|port| ports.range().contains(*port)), "{drawn:?}");
}

#[test]
fn sequential_ports_follow_each_other_whatever_the_destination() {
    let mut ports = ordered(PortOrder::Sequential, 1024, 1028);
    let drawn = [1, 2, 1, 3, 1, 1].map(|byte| draw(&mut ports, byte, |_| true).unwrap());
    assert_eq!(drawn, [1024, 1025, 1026, 1027, 1028, 1024]);
}

#[test]
fn random_ports_come_in_no_order_and_repeat_with_their_seed() {
    let repeat = || -> Vec<u16> {
        let mut ports = ordered(PortOrder::Random, 1024, 65_535);
        (0..1_000).map(|_| draw(&mut ports, 1, |_| true).unwrap()).collect()
    };
    let drawn = repeat();
    assert_eq!(drawn, repeat());
    let in_turn = drawn.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(in_turn < 3, "{in_turn} of 999");
    let low = drawn.iter().filter(|port| **port < 33_280).count();
    assert!((430..570).contains(&low), "{low} of 1,000 in the lower half");
}

#[test]
fn half_of_the_ports_is_used_before_the_other_half() {
    for (first, last) in [(32_768, 60_999), (1_025, 1_035), (7, 7), (7, 8)] {
        let mut ports = ordered(PortOrder::EvenFirst, first, last);
        let count = usize::from(last - first) + 1;
        let mut used = BTreeSet::new();
        let mut drawn = Vec::new();
        for _ in 0..count {
            let look = |port| if used.contains(&port) { PortUse::Ours } else { PortUse::Free };
            let port = ports.choose(&towards(1), &mut Counters::default(), look).unwrap();
            assert!(used.insert(port));
            drawn.push(port);
        }
        let (even, odd) = drawn.split_at(count.div_ceil(2));
        assert!(even.iter().all(|port| (port - first) % 2 == 0), "{first} to {last}");
        assert!(odd.iter().all(|port| (port - first) % 2 == 1), "{first} to {last}");
        assert!(draw(&mut ports, 1, |port| !used.contains(&port)).is_err());
    }
}

#[test]
fn reserved_ports_are_never_drawn() {
    let reserved = ReservedPorts::new(&[(1_000, 1_009), (1_020, 1_020)]).unwrap();
    let tunables = Tunables { reserved_ports: reserved, ..Tunables::default() };
    for order in PortOrder::ALL {
        let rules = Tunables { port_order: *order, ..tunables.clone() };
        let mut ports = with(1, range(1_000, 1_029), &rules);
        let mut used = BTreeSet::new();
        while let Ok(port) = draw(&mut ports, 1, |port| !used.contains(&port)) {
            used.insert(port);
        }
        let expected: BTreeSet<u16> = (1_010..1_030).filter(|port| *port != 1_020).collect();
        assert_eq!(used, expected, "{order:?}");
    }
}

#[test]
fn all_ports_can_be_reserved() {
    let mut ports = ports(1_000, 1_009);
    ports.set_rules(range(1_000, 1_009), ReservedPorts::new(&[(1_000, 2_000)]).unwrap());
    assert_eq!(draw(&mut ports, 1, |_| true).unwrap_err().taken, Taken::default());
    assert!(ports.draw(&HOST, |_| true).is_err());
}

proptest! {
    #[test]
    fn a_free_port_is_found_whenever_there_is_one(
        first in 1_u16..=65_000,
        len in 0_u16..500,
        used in proptest::collection::btree_set(any::<u16>(), 0..400),
        seed in any::<u64>(),
        order in prop::sample::select(PortOrder::ALL),
    ) {
        let range = range(first, first + len);
        let mut ports = with(seed, range, &Tunables { port_order: order, ..Tunables::default() });
        let any_free = (first..=first + len).any(|port| !used.contains(&port));
        match draw(&mut ports, 1, |port| !used.contains(&port)) {
            Ok(port) => prop_assert!(range.contains(port) && !used.contains(&port)),
            Err(_) => prop_assert!(!any_free),
        }
    }
}
