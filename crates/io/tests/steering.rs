//! A stack of several shards, each with its own queue, against the kernel: over TUN and over
//! packet:, where the kernel computes the queue, and where it chooses the wrong one.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::collections::HashSet;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use common::in_namespace;
use common::needs::{self, TUN};
use whimbrel_base::Instant;
use whimbrel_io::device::boxed;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::worker::Ended;
use whimbrel_io::{
    Activity, Clock, Device, PacketWire, Port, Steered, Stop, Tun, Waker, WireSpec, Worker, entropy,
};
use whimbrel_stack::{Event, Handle, ListenerId, Shard, ShardConfig, Steering, queue_between};
use whimbrel_tcp::Tunables;
use whimbrel_wire::Endpoint;

mod common;

const SHARDS: u16 = 3;
const PATIENCE: Duration = Duration::from_secs(20);

/// An application that sends its number to each client and to each of its peers, and closes.
struct Teller {
    number: u8,
    listener: Option<ListenerId>,
    peers: Vec<Endpoint>,
    open: Vec<Handle>,
}

impl Teller {
    fn tell(&self, shard: &mut Shard, to: Handle) {
        shard.send(to, &mut Bytes::from(vec![self.number])).unwrap();
        shard.close(to);
    }
}

impl Port for Teller {
    fn drain(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        for peer in self.peers.drain(..) {
            self.open.push(shard.connect(peer, None).unwrap());
        }
        Activity::Idle
    }

    fn flush(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Accepted(listener) => {
                    while let Some(handle) = shard.accept(listener) {
                        self.tell(shard, handle);
                    }
                }
                Event::Connected(handle) if self.open.contains(&handle) => self.tell(shard, handle),
                _ => {}
            }
        }
        Activity::Idle
    }
}

struct Running {
    threads: Vec<JoinHandle<Ended<Steered, Teller>>>,
    stop: Stop,
}

impl Running {
    /// Creates a shard at each of `devices`, which listens at port 80 and connects to each of
    /// `peers` several times.
    fn new<D: Device + Send + 'static>(
        devices: Vec<D>,
        wire: &WireSpec,
        peers: &[Endpoint],
    ) -> Self {
        let stop = Stop::new().unwrap();
        let wakers: Vec<_> = devices.iter().map(|_| Waker::new().unwrap()).collect();
        let secrets = entropy::secrets().unwrap();
        let mut threads = Vec::new();
        for (number, device) in (0..).zip(Steered::join(boxed(devices), &wakers)) {
            let capabilities = device.capabilities();
            let queue = u16::from(number);
            assert_eq!(capabilities.steering, Steering::Computable { queue, queues: SHARDS });
            let mut shard = Shard::new(ShardConfig {
                tunables: Tunables::default(),
                secrets,
                capabilities,
                addresses: wire.addresses().to_vec(),
                routes: wire.routes(),
            })
            .unwrap();
            let at = Endpoint::new(wire.addresses()[0].addr, 80);
            let listener = Some(shard.listen(at, 64).unwrap());
            let peers = peers.iter().flat_map(|peer| [*peer; CALLS]).collect();
            let port = Teller { number, listener, peers, open: Vec::new() };
            let waker = wakers[usize::from(number)].clone();
            let worker = Worker::new(device, shard, port, Clock::start(), waker);
            threads.push(worker.spawn("steered", stop.clone()).unwrap());
        }
        Self { threads, stop }
    }

    fn stop(self) -> Vec<SteeringCounters> {
        self.stop.set();
        let ended = self.threads.into_iter().map(|thread| {
            let (worker, result) = thread.join().unwrap();
            result.unwrap();
            assert!(worker.port().listener.is_some());
            worker.device().steering()
        });
        ended.collect()
    }
}

/// Connects from the kernel. Returns the local port, and the number of the shard that answered.
fn ask() -> (u16, u8) {
    let mut stream = TcpStream::connect("10.9.0.2:80").unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = [0; 1];
    stream.read_exact(&mut answer).unwrap();
    (stream.local_addr().unwrap().port(), answer[0])
}

/// Checks that each connection from the kernel is answered by the shard that its ports belong to.
fn the_kernel_is_answered_at_home() {
    let mut seen = HashSet::new();
    for _ in 0..40 {
        let (port, shard) = ask();
        assert_eq!(queue_between(port, 80, SHARDS), u16::from(shard), "from port {port}");
        seen.insert(shard);
    }
    assert_eq!(seen.len(), usize::from(SHARDS));
}

/// Checks that the connections of each shard have ports of its own queue, and that all arrive.
fn each_shard_is_heard(listener: &TcpListener) {
    let own = listener.local_addr().unwrap().port();
    let mut heard = [0; SHARDS as usize];
    for _ in 0..CALLS * usize::from(SHARDS) {
        let (mut stream, from) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut said = [0; 1];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(queue_between(from.port(), own, SHARDS), u16::from(said[0]), "{from}");
        heard[usize::from(said[0])] += 1;
    }
    assert_eq!(heard, [CALLS; SHARDS as usize]);
}

fn tun_queues() -> (WireSpec, Vec<Tun>) {
    let wire: WireSpec = "tun:whim0,addr=10.9.0.2/24,queues=3".parse().unwrap();
    let WireSpec::Tun(config) = &wire else { panic!("{wire:?}") };
    let queues = Tun::open_queues(config).unwrap();
    (wire, queues)
}

fn peer(listener: &TcpListener) -> Endpoint {
    let kernel: std::net::IpAddr = "10.9.0.1".parse().unwrap();
    Endpoint::new(kernel.into(), listener.local_addr().unwrap().port())
}

#[test]
fn the_kernel_computes_the_queue_of_tun() {
    in_namespace(&[TUN], || {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let (wire, queues) = tun_queues();
        let running = Running::new(queues, &wire, &[peer(&listener)]);
        the_kernel_is_answered_at_home();
        each_shard_is_heard(&listener);
        for counters in running.stop() {
            assert_eq!(counters, SteeringCounters::default());
        }
    });
}

#[test]
fn the_kernel_computes_the_socket_of_a_fanout() {
    in_namespace(&["ip"], || {
        for line in [
            "ip link add vkernel type veth peer name vstack",
            "ip address add 10.9.0.1/24 dev vkernel",
            "ip link set vkernel up",
            "ip link set vstack up",
        ] {
            assert!(needs::command(line).status().unwrap().success(), "{line}");
        }
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let wire: WireSpec = "packet:vstack,addr=10.9.0.2/24,fanout=3".parse().unwrap();
        let WireSpec::Packet(config) = &wire else { panic!("{wire:?}") };
        let queues = PacketWire::open_fanout(config).unwrap();
        let running = Running::new(queues, &wire, &[peer(&listener)]);
        the_kernel_is_answered_at_home();
        each_shard_is_heard(&listener);
        let counters = running.stop();
        // The kernel's answer to ARP arrived by one queue, and every shard received it.
        assert!(counters[1].adopted >= 1 && counters[2].adopted >= 1, "{counters:?}");
        assert_eq!(counters.iter().map(|one| one.dropped).sum::<u64>(), 0, "{counters:?}");
    });
}

#[test]
fn frames_that_came_in_by_the_wrong_queue_are_passed_on_once() {
    in_namespace(&[TUN], || {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let (wire, mut queues) = tun_queues();
        // The kernel's first queue is now the last shard's, and so on: only the middle one's is
        // right.
        queues.reverse();
        let running = Running::new(queues, &wire, &[peer(&listener)]);
        the_kernel_is_answered_at_home();
        each_shard_is_heard(&listener);
        let counters = running.stop();
        let forwarded: Vec<_> = counters.iter().map(|one| one.forwarded).collect();
        let adopted: Vec<_> = counters.iter().map(|one| one.adopted).collect();
        // The last forwarded frame may still be under way when its shard stops.
        assert!((1..=forwarded[0]).contains(&adopted[2]), "{counters:?}");
        assert!((1..=forwarded[2]).contains(&adopted[0]), "{counters:?}");
        assert_eq!((forwarded[1], adopted[1]), (0, 0), "{counters:?}");
    });
}

/// Connections of each shard to each peer.
const CALLS: usize = 10;
