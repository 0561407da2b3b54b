//! A whole stack on a TAP interface against the kernel, each test in its own network namespace:
//! both find each other by ARP and Neighbour Discovery.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::thread;
use std::time::{Duration, Instant as WallInstant};

use common::in_namespace;
use common::needs::{IPV6, TUN};
use station::{Running, Sender, command};
use whimbrel_io::device::boxed;
use whimbrel_io::{Device, Tun, TunError, WireSpec, Worker};
use whimbrel_stack::Medium;
use whimbrel_stack::link::neighbours::NeighbourState;
use whimbrel_wire::{Address, Endpoint, MacAddress};

mod common;
#[path = "common/station.rs"]
mod station;

const SPEC: &str = "tap:whim0,addr=10.9.0.2/24,mac=02:77:68:69:6d:02";
const BOTH: &str = "tap:whim0,addr=10.9.0.2/24,addr=fd09::2/64,mac=02:77:68:69:6d:02";
const MAC: &str = "02:77:68:69:6d:02";

/// Runs the stack on the interface, driven by a thread in this one's namespace.
fn run(spec: &str, peers: &[Endpoint]) -> Running<Tun> {
    let spec: WireSpec = spec.parse().unwrap();
    let WireSpec::Tap(config) = &spec else { panic!("{spec:?}") };
    station::run(&spec, Tun::open(config).unwrap(), peers)
}

/// Stops it and returns its worker; the kernel accepted all that it sent.
fn stop(running: Running<Tun>) -> Worker<Tun, Sender> {
    let worker = running.stop();
    assert_eq!(worker.device().counters().tx_dropped, 0);
    worker
}

#[test]
fn kernel_resolves_stack_by_arp_and_nd_and_gets_replies() {
    in_namespace(&[TUN, IPV6, "ip", "ping"], || {
        let running = run(BOTH, &[]);
        for (ping, neighbour) in [
            ("ping -c 3 -i 0.2 -W 2 10.9.0.2", "ip neigh show 10.9.0.2 dev whim0"),
            ("ping -6 -c 3 -i 0.2 -W 2 fd09::2", "ip neigh show fd09::2 dev whim0"),
        ] {
            let text = command(ping);
            assert!(text.contains("3 received"), "{text}");
            let text = command(neighbour);
            assert!(text.contains(MAC), "{text}");
        }
        command("ping -c 1 -W 2 -s 1400 10.9.0.2");
        let worker = stop(running);
        let link = worker.shard().link().unwrap();
        assert_eq!(link.mac().to_string(), MAC);
        assert!(link.counters().answered >= 2, "{:?}", link.counters());
        assert_eq!(link.counters().conflicts, 0);
        assert_eq!(worker.shard().ip_counters().echo_replies, 7);
    });
}

#[test]
fn an_address_that_the_kernel_has_is_not_taken() {
    in_namespace(&[TUN, "ip"], || {
        let WireSpec::Tap(config) = SPEC.parse().unwrap() else { panic!("no tap:") };
        let mut taps = boxed([Tun::open(&config).unwrap()]);
        config.dad().check(&mut taps, config.addresses()).unwrap();
        // The kernel answers for all its addresses, whichever interface is asked.
        command("ip link set lo up");
        command("ip address add 10.9.0.2/32 dev lo");
        let error = config.dad().check(&mut taps, config.addresses()).unwrap_err().to_string();
        assert!(error.contains("10.9.0.2 is in use by the station"), "{error}");
    });
}

#[test]
fn the_stack_finds_the_kernel_and_sends_it_super_segments() {
    in_namespace(&[TUN, IPV6], || {
        // The machine's addresses exist once the interface does; listening on any address needs
        // none.
        let (listeners, peers) = station::listen();
        let running = run(BOTH, &peers);
        station::receive(&listeners);
        let worker = stop(running);
        let link = worker.shard().link().unwrap();
        assert!((1..=4).contains(&link.counters().asked), "{:?}", link.counters());
        for peer in peers {
            let (state, mac) = link.neighbours().get(&peer.addr).unwrap();
            assert_ne!((state, mac), (NeighbourState::Incomplete, None));
        }
        assert!(worker.device().counters().tx_super > 0, "{:?}", worker.device().counters());
        assert_eq!(worker.port().closed, 2);
    });
}

#[test]
fn without_offloads_frames_are_as_on_a_cable() {
    in_namespace(&[TUN, "ip", "ping"], || {
        let running = run(&format!("{SPEC},offload=off,mtu=1280"), &[]);
        assert!(command("ping -c 1 -W 2 10.9.0.2").contains("1 received"));
        assert!(command("ip link show whim0").contains("mtu 1280"));
        stop(running);
    });
}

#[test]
fn a_neighbour_that_is_not_there_is_forgotten_with_its_packets() {
    in_namespace(&[TUN], || {
        let closed = Endpoint::new(Address::from_v4_bytes([10, 9, 0, 77]), 80);
        let running = run(SPEC, &[closed]);
        let began = WallInstant::now();
        thread::sleep(Duration::from_millis(3_300));
        let worker = stop(running);
        let counters = worker.shard().link().unwrap().counters();
        assert!(counters.failed >= 1, "{counters:?} after {:?}", began.elapsed());
        assert!(counters.out_neighbour_failed >= 1, "{counters:?}");
    });
}

#[test]
fn a_station_is_drawn_at_random_if_none_is_given() {
    in_namespace(&[TUN], || {
        let open = |name| {
            let spec = format!("tap:{name},addr=10.9.0.2/24").parse();
            let Ok(WireSpec::Tap(config)) = spec else { panic!("{spec:?}") };
            let Medium::Ethernet { mac } = Tun::open(&config).unwrap().capabilities().medium else {
                panic!("no Ethernet")
            };
            mac
        };
        let (one, other): (MacAddress, MacAddress) = (open("whim0"), open("whim1"));
        assert_ne!(one, other);
        assert!([one, other].iter().all(|mac| mac.0[0] & 3 == 2), "{one} {other}");
    });
}

#[test]
fn an_interface_of_the_other_kind_is_refused() {
    in_namespace(&[TUN], || {
        let _held = run(SPEC, &[]);
        let spec = "tun:whim0,addr=10.9.0.2/24".parse();
        let Ok(WireSpec::Tun(config)) = spec else { panic!("{spec:?}") };
        let error = Tun::open(&config).unwrap_err();
        assert!(matches!(error, TunError::Mismatch(_) | TunError::Busy(_)), "{error}");
    });
}
