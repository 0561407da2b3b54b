//! A whole stack with its own station on an interface of the machine, each test in its own network
//! namespace: one end of a veth pair has the kernel's addresses, the other the stack.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant as WallInstant};

use common::in_namespace;
use common::needs::IPV6;
use socket2::{Domain, Socket, Type};
use station::{PATIENCE, Running, attempt, command};
use whimbrel_io::config::ConfigError;
use whimbrel_io::device::boxed;
use whimbrel_io::packet::RING_FRAMES;
use whimbrel_io::worker::WorkerError;
use whimbrel_io::{AddressCheckError, Device, PacketConfig, PacketError, PacketWire, WireSpec};
use whimbrel_stack::ip::FrameDrop;
use whimbrel_wire::Endpoint;

mod common;
#[path = "common/station.rs"]
mod station;

const SPEC: &str = "packet:vstack,addr=10.9.0.2/24,addr=fd09::2/64,mac=02:77:68:69:6d:02";
const MAC: &str = "02:77:68:69:6d:02";

fn config(spec: &str) -> PacketConfig {
    match spec.parse() {
        Ok(WireSpec::Packet(config)) => config,
        other => panic!("{other:?}"),
    }
}

/// Runs the stack on the interface, driven by a thread in this one's namespace.
fn run(spec: &str, peers: &[Endpoint]) -> Running<PacketWire> {
    station::run(&spec.parse().unwrap(), PacketWire::open(&config(spec)).unwrap(), peers)
}

/// Runs `test`, which needs these and `ip`, where the kernel has addresses on one end of a veth
/// pair, and none on the other.
fn with_kernel_peer(needs: &[&str], test: impl FnOnce() + Send + 'static) {
    let has_ipv6 = needs.contains(&IPV6);
    in_namespace(&[&["ip"], needs].concat(), move || {
        command("ip link add vkernel type veth peer name vstack");
        command("ip address add 10.9.0.1/24 dev vkernel");
        if has_ipv6 {
            command("ip address add fd09::1/64 dev vkernel nodad");
        }
        command("ip link set vkernel up");
        command("ip link set vstack up");
        test();
    });
}

/// Sends a ping that is answered, at once or once the interface has its carrier back.
fn ping(target: &str) {
    let began = WallInstant::now();
    while !attempt(&format!("ping -c 1 -W 1 {target}")).0 {
        assert!(began.elapsed() < PATIENCE, "{target} does not answer");
    }
}

#[test]
fn kernel_resolves_stack_by_arp_and_nd_and_gets_replies() {
    with_kernel_peer(&[IPV6, "ping"], || {
        let running = run(SPEC, &[]);
        ping("10.9.0.2");
        ping("-6 fd09::2");
        for neighbour in ["10.9.0.2", "fd09::2"] {
            let text = command(&format!("ip neigh show {neighbour} dev vkernel"));
            assert!(text.contains(MAC), "{text}");
        }
        ping("-s 1400 10.9.0.2");
        let worker = running.stop();
        let link = worker.shard().link().unwrap();
        assert_eq!(link.mac().to_string(), MAC);
        assert_eq!(link.counters().conflicts, 0);
        assert!(worker.shard().ip_counters().echo_replies >= 3);
        assert_eq!(worker.device().counters().tx_dropped, 0);
    });
}

/// Sends a mebibyte to the kernel over both families; returns how many segments were super.
fn send_to_the_kernel(spec: &str) -> u64 {
    let (listeners, peers) = station::listen();
    let running = run(spec, &peers);
    station::receive(&listeners);
    let counters = running.stop().device().counters().clone();
    assert_eq!(counters.tx_dropped, 0, "{counters:?}");
    counters.tx_super
}

#[test]
fn the_kernel_cuts_what_the_stack_sends_in_super_segments() {
    with_kernel_peer(&[IPV6], || assert!(send_to_the_kernel(SPEC) > 0));
}

#[test]
fn without_offloads_the_stack_cuts_and_sums_itself() {
    with_kernel_peer(&[IPV6], || {
        assert_eq!(send_to_the_kernel(&format!("{SPEC},offload=off")), 0);
    });
}

#[test]
fn an_interface_that_goes_down_and_up_again_carries_on() {
    with_kernel_peer(&["ping"], || {
        let running = run(SPEC, &[]);
        ping("10.9.0.2");
        command("ip link set vstack down");
        assert!(!attempt("ping -c 1 -W 1 10.9.0.2").0);
        command("ip link set vstack up");
        ping("10.9.0.2");
        running.stop();
    });
}

#[test]
fn an_interface_that_is_removed_ends_the_worker_with_the_reason() {
    with_kernel_peer(&["ping"], || {
        let running = run(SPEC, &[]);
        ping("10.9.0.2");
        command("ip link delete vkernel");
        let (_, result) = running.thread.join().unwrap();
        let Err(WorkerError::Device { name, error }) = result else { panic!("{result:?}") };
        assert_eq!(name, "packet:vstack");
        assert!(error.to_string().contains("interface is gone"), "{error}");
    });
}

#[test]
fn passed_socket_reaches_interface_of_its_own_namespace() {
    with_kernel_peer(&["ping"], || {
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).unwrap();
        let opened = thread::spawn(move || {
            // SAFETY: unshare takes no pointer. The namespace is this thread's alone.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            let here = PacketWire::open(&config(SPEC)).unwrap_err();
            assert!(matches!(here, PacketError::NoInterface(_)), "{here}");
            let config = config(SPEC).with_socket(socket.into()).unwrap();
            assert_eq!(config, config.clone());
            PacketWire::open(&config).unwrap()
        });
        let wire = opened.join().unwrap();
        assert_eq!(wire.name(), "packet:vstack");
        let running = station::run(&SPEC.parse().unwrap(), wire, &[]);
        ping("10.9.0.2");
        running.stop();
        let other = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("0.0.0.0:0"));
        let error = config(SPEC).with_socket(other.unwrap().into()).unwrap_err();
        assert!(matches!(error, ConfigError::NotPacketSocket), "{error}");
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        let error = config(SPEC).with_socket(file.into()).unwrap_err();
        assert!(matches!(error, ConfigError::NotPacketSocket), "{error}");
    });
}

#[test]
fn frames_that_nobody_took_in_time_are_counted() {
    with_kernel_peer(&[], || {
        // The kernel's own frames of IPv6, if it has that, would be counted, too.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        let mut wire = PacketWire::open(&config(SPEC)).unwrap();
        command(&format!("ip neigh add 10.9.0.2 lladdr {MAC} dev vkernel"));
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        let most = RING_FRAMES as u64;
        for _ in 0..most + 500 {
            socket.send_to(&[7; 64], "10.9.0.2:9").unwrap();
        }
        let mut taken = 0;
        let mut drain = |wire: &mut PacketWire| {
            while let count @ 1.. = wire.rx_burst(&mut |_| {}).unwrap() {
                taken += count as u64;
            }
            taken
        };
        assert_eq!(drain(&mut wire), most);
        // The ring reports its drops with the next frame that fits.
        socket.send_to(&[7; 64], "10.9.0.2:9").unwrap();
        assert_eq!(drain(&mut wire), most + 1);
        let missed = wire.counters().rx_missed;
        assert!((500..600).contains(&missed), "{:?}", wire.counters());
    });
}

/// Checks over the interface whether the stack may have these addresses.
fn check(spec: &str, meanwhile: impl FnOnce()) -> Result<(), AddressCheckError> {
    let config = config(spec);
    let wire = PacketWire::open(&config).unwrap();
    meanwhile();
    config.dad().check(&mut boxed([wire]), config.addresses())
}

/// Returns the station of the interface `name`, as the error prints it.
fn station_of(name: &str) -> String {
    let text = command(&format!("ip link show {name}"));
    let words: Vec<_> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "link/ether").unwrap();
    words[at + 1].to_owned()
}

#[test]
fn an_address_that_the_kernel_has_is_not_taken() {
    with_kernel_peer(&[IPV6], || {
        let kernel = station_of("vkernel");
        for (spec, addr, add) in [
            ("packet:vstack,addr=10.9.0.7/24", "10.9.0.7", "10.9.0.7/24 dev vkernel"),
            ("packet:vstack,addr=fd09::7/64", "fd09::7", "fd09::7/64 dev vkernel nodad"),
        ] {
            // The machine's own addresses are refused when the wire is opened.
            let error =
                check(spec, || drop(command(&format!("ip address add {add}")))).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, AddressCheckError::Conflict { .. }), "{text}");
            assert!(text.contains(addr) && text.contains(&kernel), "{text}");
        }
    });
}

#[test]
fn free_addresses_pass_dad_within_a_second_or_skip_it() {
    with_kernel_peer(&[], || {
        let began = WallInstant::now();
        check(SPEC, || {}).unwrap();
        let asked = began.elapsed();
        assert!(asked >= Duration::from_millis(890), "{asked:?}");
        let began = WallInstant::now();
        check(&format!("{SPEC},dad=off"), || drop(command("ip address show"))).unwrap();
        assert!(began.elapsed() < asked);
    });
}

#[test]
fn address_in_use_is_defended_against_kernel_and_stack() {
    with_kernel_peer(&[IPV6, "ping"], || {
        let running = run(SPEC, &[]);
        ping("10.9.0.2");
        let theirs = "packet:vkernel,addr=10.9.0.2/24,mac=02:77:68:69:6d:09";
        let error = check(theirs, || {}).unwrap_err().to_string();
        assert!(error.contains("10.9.0.2") && error.contains(MAC), "{error}");
        command("ip address add fd09::2/64 dev vkernel");
        let began = WallInstant::now();
        while !command("ip -6 address show dev vkernel").contains("dadfailed") {
            assert!(began.elapsed() < PATIENCE, "the kernel took our address");
        }
        running.stop();
    });
}

#[test]
fn two_stations_share_an_interface_and_get_their_own_frames() {
    with_kernel_peer(&["ping"], || {
        let first = run(SPEC, &[]);
        let second = run("packet:vstack,addr=10.9.0.3/24", &[]);
        ping("10.9.0.2");
        ping("10.9.0.3");
        for (running, others) in [(first, "10.9.0.3"), (second, "10.9.0.2")] {
            let worker = running.stop();
            assert_eq!(worker.shard().link().unwrap().counters().conflicts, 0, "{others}");
            let misrouted = worker.shard().ip_counters().dropped(FrameDrop::OtherStation);
            assert_eq!(misrouted, 0, "{:?}", worker.shard().ip_counters());
        }
    });
}

#[test]
fn what_stands_in_the_way_is_named() {
    with_kernel_peer(&[IPV6], || {
        let refused = |spec: &str| PacketWire::open(&config(spec)).unwrap_err();
        let nowhere = refused("packet:nowhere,addr=10.9.0.2/24");
        assert!(matches!(&nowhere, PacketError::NoInterface(name) if name == "nowhere"));
        assert!(nowhere.to_string().contains("no interface nowhere"), "{nowhere}");
        let taken = refused("packet:vstack,addr=10.9.0.1/24").to_string();
        assert!(taken.contains("10.9.0.1 is an address of this machine's own"), "{taken}");
        assert!(matches!(
            refused("packet:vstack,addr=fd09::1/64"),
            PacketError::MachinesAddress(_)
        ));
        assert!(matches!(refused(&format!("{SPEC},fanout=2")), PacketError::Fanout(2)));
        command("ip link set vstack down");
        let down = refused(SPEC).to_string();
        assert!(down.contains("ip link set vstack up"), "{down}");
        command("ip link set lo up");
        command("ip link set vstack mtu 1000");
        command("ip link set vstack up");
        let small = refused(SPEC).to_string();
        assert!(small.contains("mtu 1000: give 1280"), "{small}");
    });
}
