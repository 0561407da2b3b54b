//! A whole stack on a TAP interface against the kernel, each test in a network namespace of its
//! own: both find each other by ARP and Neighbour Discovery.
//!
//! Needs root. Without it the tests say so and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::io::Read;
use std::net::{IpAddr, TcpListener};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as WallInstant};

use bytes::Bytes;
use common::in_namespace;
use whimbrel_io::worker::Ended;
use whimbrel_io::{
    Activity, Clock, Device, Port, Stop, Tun, TunError, Waker, WireSpec, Worker, entropy,
};
use whimbrel_stack::link::neighbours::NeighbourState;
use whimbrel_stack::{Event, Handle, Medium, Shard, ShardConfig};
use whimbrel_tcp::{Instant, Tunables};
use whimbrel_wire::{Address, Endpoint, MacAddress};

mod common;

const SPEC: &str = "tap:whim0,addr=10.9.0.2/24,addr=fd09::2/64,mac=02:77:68:69:6d:02";
const MAC: &str = "02:77:68:69:6d:02";
const PATIENCE: Duration = Duration::from_secs(10);
const MIB: usize = 1 << 20;

/// An application that sends a mebibyte to each of its peers.
struct Sender {
    peers: Vec<Endpoint>,
    open: Vec<(Handle, Bytes)>,
    closed: usize,
}

impl Sender {
    fn to(peers: &[Endpoint]) -> Self {
        Self { peers: peers.to_vec(), open: Vec::new(), closed: 0 }
    }

    fn send(&mut self, shard: &mut Shard) {
        for (handle, rest) in &mut self.open {
            if !rest.is_empty() && shard.send(*handle, rest).is_ok() && rest.is_empty() {
                shard.close(*handle);
                self.closed += 1;
            }
        }
    }
}

impl Port for Sender {
    fn drain(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        for peer in self.peers.drain(..) {
            let handle = shard.connect(peer, None).unwrap();
            self.open.push((handle, Bytes::from(vec![7; MIB])));
        }
        Activity::Idle
    }

    fn flush(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        let mut activity = Activity::Idle;
        while let Some(event) = shard.poll_event() {
            activity = Activity::Busy;
            if let Event::Connected(_) | Event::Writable(_) = event {
                self.send(shard);
            }
        }
        activity
    }
}

struct Running {
    thread: JoinHandle<Ended<Tun, Sender>>,
    stop: Stop,
}

/// The stack on the interface, driven by a thread in this one's namespace.
fn run(spec: &str, peers: &[Endpoint]) -> Running {
    let spec: WireSpec = spec.parse().unwrap();
    let WireSpec::Tap(config) = &spec else { panic!("{spec:?}") };
    let tap = Tun::open(config).unwrap();
    let shard = Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: entropy::secrets().unwrap(),
        capabilities: tap.capabilities(),
        addresses: config.addresses().to_vec(),
        routes: config.routes(),
    })
    .unwrap();
    let stop = Stop::new().unwrap();
    let waker = Waker::new().unwrap();
    let worker = Worker::new(tap, shard, Sender::to(peers), Clock::start(), waker);
    Running { thread: worker.spawn("tap-shard", stop.clone()).unwrap(), stop }
}

impl Running {
    fn stop(self) -> Worker<Tun, Sender> {
        self.stop.set();
        let (worker, result) = self.thread.join().unwrap();
        result.unwrap();
        let counters = worker.device().counters();
        assert_eq!((counters.rx_malformed, counters.tx_dropped), (0, 0), "{counters:?}");
        worker
    }
}

/// What a line of words prints; it must succeed.
fn command(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {}\n{text}{errors}", output.status);
    text
}

#[test]
fn the_kernel_finds_the_stack_by_arp_and_neighbour_discovery_and_is_answered() {
    in_namespace(|| {
        let running = run(SPEC, &[]);
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
        let worker = running.stop();
        let link = worker.shard().link().unwrap();
        assert_eq!(link.mac().to_string(), MAC);
        assert!(link.counters().answered >= 2, "{:?}", link.counters());
        assert_eq!(link.counters().conflicts, 0);
        assert_eq!(worker.shard().ip_counters().echo_replies, 7);
    });
}

#[test]
fn the_stack_finds_the_kernel_and_sends_it_super_segments() {
    in_namespace(|| {
        // The machine's addresses are there once the interface is; listening on any needs none.
        let listeners = ["0.0.0.0:0", "[::]:0"].map(|any| TcpListener::bind(any).unwrap());
        let peers: Vec<Endpoint> = ["10.9.0.1", "fd09::1"]
            .iter()
            .zip(&listeners)
            .map(|(addr, listener)| {
                let addr: IpAddr = addr.parse().unwrap();
                Endpoint::new(addr.into(), listener.local_addr().unwrap().port())
            })
            .collect();
        let running = run(SPEC, &peers);
        for listener in &listeners {
            let (mut stream, from) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert_eq!((received.len(), received.iter().all(|octet| *octet == 7)), (MIB, true));
            assert!(["10.9.0.2", "fd09::2"].contains(&from.ip().to_string().as_str()), "{from}");
        }
        let worker = running.stop();
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
    in_namespace(|| {
        let running = run(&format!("{SPEC},offload=off,mtu=1280"), &[]);
        assert!(command("ping -c 1 -W 2 10.9.0.2").contains("1 received"));
        assert!(command("ip link show whim0").contains("mtu 1280"));
        running.stop();
    });
}

#[test]
fn a_neighbour_that_is_not_there_is_forgotten_with_its_packets() {
    in_namespace(|| {
        let nobody = Endpoint::new(Address::from_v4_octets([10, 9, 0, 77]), 80);
        let running = run(SPEC, &[nobody]);
        let began = WallInstant::now();
        thread::sleep(Duration::from_millis(3_300));
        let worker = running.stop();
        let counters = worker.shard().link().unwrap().counters();
        assert!(counters.failed >= 1, "{counters:?} after {:?}", began.elapsed());
        assert!(counters.out_neighbour_failed >= 1, "{counters:?}");
    });
}

#[test]
fn a_station_is_drawn_at_random_if_none_is_given() {
    in_namespace(|| {
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
    in_namespace(|| {
        let _held = run(SPEC, &[]);
        let spec = "tun:whim0,addr=10.9.0.2/24".parse();
        let Ok(WireSpec::Tun(config)) = spec else { panic!("{spec:?}") };
        let error = Tun::open(&config).unwrap_err();
        assert!(matches!(error, TunError::Mismatch(_) | TunError::Busy(_)), "{error}");
    });
}
