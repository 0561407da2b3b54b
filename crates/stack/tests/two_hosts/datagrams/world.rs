//! Two hosts with many sockets each, and what is between them.

use std::collections::{BTreeMap, BinaryHeap};

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets, SipHasher24};
use whimbrel_stack::{
    Capabilities, Event, InterfaceAddress, Medium, RxFrame, SendTo, Shard, ShardConfig, TxBatch,
    UdpHandle,
};
use whimbrel_tcp::Tunables;
use whimbrel_udp::{Bind, Local, Received};
use whimbrel_wire::{Address, Endpoint, Family};

/// The amount of traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) seed: u64,
    pub(crate) datagrams: u64,
}

/// The hosts, and every datagram that was sent.
pub(crate) struct World {
    traffic: Traffic,
    random: Random,
    now: u64,
    hosts: [Host; 2],
    /// Packets on their way: when, to whom, in which order.
    under_way: BinaryHeap<Packet>,
    packets: u64,
    /// By number: whom each is for, until it arrives.
    expected: BTreeMap<u64, Expected>,
    sent: u64,
    received: u64,
    lost_packets: u64,
}

struct Host {
    shard: Shard,
    sockets: Vec<Socket>,
}

/// A socket, and where it receives.
#[derive(Clone, Copy)]
struct Socket {
    handle: UdpHandle,
    at: Endpoint,
    /// From whom alone.
    peer: Option<Endpoint>,
}

/// The receiver and the sender of a datagram, and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Expected {
    host: usize,
    from: Endpoint,
    to: Endpoint,
    len: usize,
}

/// In the order of arrival, the earliest greatest.
#[derive(PartialEq, Eq)]
struct Packet {
    at: u64,
    number: u64,
    to: usize,
    bytes: Vec<u8>,
}

impl Ord for Packet {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers that repeat with a seed.
struct Random {
    prf: SipHasher24,
    drawn: u64,
}

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        self.prf.hash(&self.drawn.to_le_bytes()) % bound
    }
}

impl World {
    pub(crate) fn new(traffic: Traffic) -> Self {
        let hosts = [1, 2].map(|last| Host::new(traffic.seed, last));
        let random = Random { prf: SipHasher24::new_with_keys(traffic.seed, 7), drawn: 0 };
        let (under_way, expected) = (BinaryHeap::new(), BTreeMap::new());
        let mut world = Self {
            traffic,
            random,
            now: 0,
            hosts,
            under_way,
            packets: 0,
            expected,
            sent: 0,
            received: 0,
            lost_packets: 0,
        };
        for which in 0..SOCKETS {
            world.bind(which);
        }
        world
    }

    /// A socket at each host: at one address, or at all of a family; each port has two. A third of the
    /// pairs are connected to each other.
    fn bind(&mut self, which: u16) {
        let v6 = which % 2 == 1;
        let port = 1_000 + which / 2;
        let addresses = [1, 2].map(|last| address(v6, last));
        let family = if v6 { Family::V6 } else { Family::V4 };
        let mut pair = Vec::new();
        for (host, addr) in self.hosts.iter_mut().zip(addresses) {
            let local = if which % 4 < 2 { Local::Address(addr) } else { Local::Every(family) };
            let handle = host.shard.udp_bind(&Bind::new(local, port)).expect("a free port");
            host.shard.udp_set_recv_size(handle, 16 << 20);
            pair.push(Socket { handle, at: Endpoint::new(addr, port), peer: None });
        }
        if which.is_multiple_of(3) {
            let ends = [pair[1].at, pair[0].at];
            for ((host, socket), peer) in self.hosts.iter_mut().zip(&mut pair).zip(ends) {
                host.shard.udp_connect(socket.handle, peer).expect("a peer");
                socket.peer = Some(peer);
            }
        }
        for (host, socket) in self.hosts.iter_mut().zip(pair) {
            host.sockets.push(socket);
        }
    }

    /// Sends all of them, some at a time, and looks at what arrives.
    pub(crate) fn play(mut self) {
        while self.sent < self.traffic.datagrams || !self.under_way.is_empty() {
            for _ in 0..self.random.below(24) {
                self.send();
            }
            self.transmit();
            self.now += 1 + self.random.below(400_000);
            self.arrive();
        }
        self.end();
    }

    fn send(&mut self) {
        if self.sent == self.traffic.datagrams {
            return;
        }
        let side = self.random.below(2) as usize;
        let which = self.random.below(u64::from(SOCKETS)) as usize;
        let from = self.hosts[side].sockets[which];
        // To any socket of the same family there, unless it is connected.
        let other =
            (which + 2 * self.random.below(u64::from(SOCKETS) / 2) as usize) % usize::from(SOCKETS);
        let target = self.hosts[1 - side].sockets[other];
        let to = from.peer.unwrap_or(target.at);
        // Most are small, some take many packets.
        let len = match self.random.below(16) {
            0 => 12 + self.random.below(9_000),
            1 => 12,
            _ => 12 + self.random.below(1_400),
        } as usize;
        let data = content(self.traffic.seed, self.sent, len);
        let send = SendTo::peer(to);
        if self.hosts[side].shard.udp_send(from.handle, data, &send).is_ok() {
            let expected = Expected { host: 1 - side, from: from.at, to, len };
            self.expected.insert(self.sent, expected);
            self.sent += 1;
        }
    }

    fn transmit(&mut self) {
        for side in [0, 1] {
            let mut batch = TxBatch::new(64);
            loop {
                let more = self.hosts[side].shard.tx(&mut batch);
                for packet in batch.pending() {
                    assert!(packet.len() <= MTU, "beyond the MTU");
                    let bytes = packet.to_vec();
                    self.packets += 1;
                    if self.random.below(100) == 0 {
                        self.lost_packets += 1;
                        continue;
                    }
                    // Some overtake others.
                    let delay = 100_000 + self.random.below(5) * self.random.below(400_000);
                    let (at, number, to) = (self.now + delay, self.packets, 1 - side);
                    self.under_way.push(Packet { at, number, to, bytes });
                }
                batch.consume(batch.pending().len());
                if !more {
                    break;
                }
            }
        }
    }

    fn arrive(&mut self) {
        let mut bursts = [Vec::new(), Vec::new()];
        while self.under_way.peek().is_some_and(|next| next.at <= self.now) {
            let Some(packet) = self.under_way.pop() else { break };
            bursts[packet.to].push(packet.bytes);
        }
        for (side, burst) in bursts.iter().enumerate() {
            let now = Instant::from_nanos(self.now);
            let frames: Vec<_> =
                burst.iter().map(|bytes| RxFrame::new(bytes, SegMeta::SINGLE)).collect();
            self.hosts[side].shard.rx(now, &frames);
            self.hosts[side].shard.advance(now, 1_024);
            self.receive(side);
        }
    }

    fn receive(&mut self, side: usize) {
        while let Some(event) = self.hosts[side].shard.poll_event() {
            let Event::Udp(handle) = event else { panic!("{event:?}") };
            let socket = self.hosts[side].sockets.iter().find(|it| it.handle == handle);
            let socket = *socket.expect("a socket of ours");
            while let Some(received) = self.hosts[side].shard.udp_recv(handle) {
                self.take(side, &socket, &received);
            }
        }
    }

    fn take(&mut self, side: usize, socket: &Socket, received: &Received) {
        let number = received.data.first_chunk().expect("a number");
        let number = u64::from_le_bytes(*number);
        let expected = self.expected.remove(&number).expect("sent, and not received before");
        let Received { from, to, ref data, .. } = *received;
        let seen = Expected { host: side, from, to, len: data.len() };
        assert_eq!(seen, expected, "number {number}");
        assert_eq!(to, socket.at, "number {number} is for another socket");
        assert!(socket.peer.is_none_or(|peer| peer == from), "number {number}: a stranger's");
        assert!(*data == content(self.traffic.seed, number, data.len()), "number {number} altered");
        self.received += 1;
    }

    /// Checks that what did not arrive was lost on the way, or refused by a socket that is connected elsewhere.
    fn end(mut self) {
        let mut refused = 0;
        for host in &self.hosts {
            let counters = &host.shard.udp().counters;
            // A connected socket sends to one that no other keeps from receiving.
            assert_eq!((counters.in_errors, counters.icmp_errors), (0, 0));
            refused += counters.no_ports;
            host.shard.check_invariants().expect("what must hold");
        }
        let lost = self.sent - self.received - refused;
        assert_eq!(self.expected.len() as u64, lost + refused);
        assert!(lost <= self.lost_packets, "{lost} lost with {} packets", self.lost_packets);
        assert!(self.received > self.sent / 2, "{} of {}", self.received, self.sent);
        println!(
            "seed {}: {} sent in {} packets, {} received, {refused} refused, {lost} lost",
            self.traffic.seed, self.sent, self.packets, self.received
        );
        for host in &mut self.hosts {
            for socket in &host.sockets {
                assert!(host.shard.udp_close(socket.handle));
            }
            assert_eq!(host.shard.census().udp_sockets, 0);
        }
    }
}

impl Host {
    fn new(seed: u64, last: u8) -> Self {
        let own =
            |v6| InterfaceAddress { addr: address(v6, last), prefix_len: if v6 { 64 } else { 24 } };
        let shard = Shard::new(ShardConfig {
            tunables: Tunables::default(),
            secrets: Secrets::from_seed(seed * 2 + u64::from(last)),
            capabilities: Capabilities::plain(Medium::Ip, MTU as u16),
            addresses: vec![own(false), own(true)],
            routes: Vec::new(),
        });
        Self { shard: shard.expect("a valid configuration"), sockets: Vec::new() }
    }
}

fn address(v6: bool, last: u8) -> Address {
    if v6 {
        let mut bytes = [0; 16];
        (bytes[0], bytes[15]) = (0xfd, last);
        Address::from_bytes(bytes)
    } else {
        Address::from_v4_bytes([10, 0, 0, last])
    }
}

/// The bytes of a datagram: its number, and what follows from that and the seed.
fn content(seed: u64, number: u64, len: usize) -> Bytes {
    let prf = SipHasher24::new_with_keys(seed, number);
    let mut data = number.to_le_bytes().to_vec();
    let mut word = 0_u64;
    while data.len() < len {
        data.extend_from_slice(&prf.hash(&word.to_le_bytes()).to_le_bytes());
        word += 1;
    }
    data.truncate(len);
    data.into()
}

/// Of each host.
const SOCKETS: u16 = 60;
const MTU: usize = 1_500;
