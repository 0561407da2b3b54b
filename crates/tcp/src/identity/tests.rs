use alloc::collections::BTreeSet;
use alloc::format;
use core::time::Duration;

use proptest::prelude::*;
use whimbrel_base::{Instant, Secrets};
use whimbrel_wire::{Address, Endpoint, Flow};

use super::Identity;
use crate::Tunables;
use crate::tunables::Isn;

const HOST: Address = Address::from_v4_bytes([192, 0, 2, 1]);
const PEER: Address = Address::from_v4_bytes([198, 51, 100, 7]);

fn flow(local_port: u16, remote_port: u16) -> Flow {
    Flow { local: Endpoint::new(HOST, local_port), remote: Endpoint::new(PEER, remote_port) }
}

fn with(isn: Isn) -> Identity {
    Identity::new(&Secrets::from_seed(1), &Tunables { isn, ..Tunables::default() })
}

fn identity() -> Identity {
    with(Isn::Rfc6528)
}

#[test]
fn the_isn_of_one_flow_advances_by_one_every_256_nanoseconds() {
    let start = identity().isn(&flow(80, 5000), Instant::ZERO);
    let after = |nanos| identity().isn(&flow(80, 5000), Instant::from_nanos(nanos));
    assert_eq!(after(255), start);
    assert_eq!(after(256), start + 1);
    assert_eq!(after(256_000_000), start + 1_000_000);
}

#[test]
fn the_isn_clock_does_not_look_old_within_550_seconds() {
    let isn = |secs| identity().isn(&flow(80, 5000), Instant::ZERO + Duration::from_secs(secs));
    assert!(isn(549).after(isn(0)));
    assert!(!isn(551).after(isn(0)), "half of the circle is passed after 549.8 s");
}

#[test]
fn each_part_of_the_flow_and_the_key_change_the_isn() {
    let base = flow(80, 5000);
    let swapped = Flow { local: base.remote, remote: base.local };
    let mut other_host = base;
    other_host.local.addr = Address::from_v4_bytes([192, 0, 2, 2]);
    let mut other_peer = base;
    other_peer.remote.addr = Address::from_v4_bytes([198, 51, 100, 8]);
    let flows = [base, swapped, other_host, other_peer, flow(81, 5000), flow(80, 5001)];
    let mut isns: BTreeSet<u32> =
        flows.iter().map(|flow| identity().isn(flow, Instant::ZERO).raw()).collect();
    let mut other_key = Identity::new(&Secrets::from_seed(2), &Tunables::default());
    isns.insert(other_key.isn(&base, Instant::ZERO).raw());
    assert_eq!(isns.len(), 7);
}

#[test]
fn a_tick_of_zero_counts_as_one_nanosecond() {
    let tunables = Tunables { isn_tick_nanos: 0, ..Tunables::default() };
    let mut identity = Identity::new(&Secrets::from_seed(1), &tunables);
    let mut isn = |nanos| identity.isn(&flow(80, 5000), Instant::from_nanos(nanos));
    let start = isn(0);
    assert_eq!(isn(5), start + 5);
}

#[test]
fn host_wide_numbers_grow_with_each_connection_and_with_time() {
    let mut identity = with(Isn::HostWide);
    let mut isn = |port, now| identity.isn(&flow(80, port), now);
    let first = isn(1, Instant::ZERO);
    for count in 1..1_000_u32 {
        // Whatever the flow: 125,000 each, and a random 1 to 131,072 that is not kept.
        let gained = isn(count as u16, Instant::ZERO).distance_from(first);
        let excess = gained - (count * 125_000).cast_signed();
        assert!(excess.abs() < 131_072, "{count}: {gained}");
    }
    let later = isn(1, Instant::ZERO + Duration::from_secs(1)).offset_from(first);
    assert!(later.abs_diff(125_000_000 + 244_140) < 131_072, "{later}");
}

#[test]
fn host_wide_numbers_look_old_to_a_port_after_a_minute() {
    for (rate, looks_old) in [(250, false), (320, true)] {
        let mut identity = with(Isn::HostWide);
        let first = identity.isn(&flow(1, 80), Instant::ZERO);
        for _ in 0..rate * 60 {
            identity.isn(&flow(2, 80), Instant::ZERO);
        }
        let next = identity.isn(&flow(1, 80), Instant::ZERO + Duration::from_secs(60));
        assert_eq!(!next.after(first), looks_old, "{rate} connections/s");
    }
}

#[test]
fn plain_host_wide_numbers_are_exactly_what_anybody_expects() {
    let tunables = Tunables { isn: Isn::HostWidePlain, isn_step: 12_500, ..Tunables::default() };
    let mut identity = Identity::new(&Secrets::from_seed(1), &tunables);
    let first = identity.isn(&flow(80, 1), Instant::ZERO);
    assert_eq!(identity.isn(&flow(80, 2), Instant::ZERO), first + 12_500);
    let after = Instant::ZERO + Duration::from_millis(2_900);
    assert_eq!(identity.isn(&flow(80, 3), after), first + 2 * 12_500 + 2 * 25_000);
}

#[test]
fn timestamp_offsets_differ_by_direction_and_by_peer() {
    let identity = identity();
    let other = Address::from_v4_bytes([198, 51, 100, 8]);
    let offset = identity.timestamp_offset(&HOST, &PEER);
    assert_eq!(offset, identity.timestamp_offset(&HOST, &PEER));
    assert_ne!(offset, identity.timestamp_offset(&PEER, &HOST));
    assert_ne!(offset, identity.timestamp_offset(&HOST, &other));
}

#[test]
fn tsval_ticks_once_a_millisecond_and_wraps() {
    assert_eq!(Identity::tsval(Instant::from_nanos(999_999).tick(), 5), 5);
    assert_eq!(Identity::tsval(Instant::from_millis(1).tick(), 5), 6);
    assert_eq!(Identity::tsval(Instant::from_millis(1).tick(), u32::MAX), 0);
}

#[test]
fn debug_output_prints_no_key() {
    assert_eq!(format!("{:?}", identity()), "Identity { policy: Rfc6528, .. }");
}

proptest! {
    #[test]
    fn later_connection_of_same_hosts_has_no_earlier_tsval(
        start in 0_u64..1 << 60,
        later in 0_u64..1_000_000_000_000_000,
    ) {
        let offset = identity().timestamp_offset(&HOST, &PEER);
        let first = Identity::tsval(Instant::from_nanos(start).tick(), offset);
        let second = Identity::tsval(Instant::from_nanos(start + later).tick(), offset);
        prop_assert!(second.wrapping_sub(first) < 1 << 31);
    }

    #[test]
    fn a_later_connection_of_the_same_flow_has_a_later_isn(
        start in 0_u64..1 << 60,
        later in 256_u64..549_000_000_000,
        ports in any::<(u16, u16)>(),
    ) {
        let isn = |nanos| identity().isn(&flow(ports.0, ports.1), Instant::from_nanos(nanos));
        prop_assert!(isn(start + later).after(isn(start)));
    }
}
