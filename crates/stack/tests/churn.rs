//! Short connections by the hundred thousand, in virtual time: none fails, none waits for more than
//! its path, and nothing grows.
//!
//! `cargo test --release -p whimbrel-stack --test churn -- --ignored --nocapture --test-threads 1`
//! plays the long forms: a million connections from one address to one port, and the load at which a
//! host of host-wide ISNs refused one in eleven. One at a time, as memory is the process's.

use std::time::Duration;

use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{
    Capabilities, Event, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard,
    ShardConfig, Steering, TxBatch,
};
use whimbrel_tcp::table::Secrets;
use whimbrel_tcp::{Instant, SegMeta, Tunables};
use whimbrel_wire::{Address, Endpoint};

/// Who sends the first FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Client,
    Server,
}

/// One way, and the beat of the world.
const STEP: Duration = Duration::from_micros(250);
/// From SYN to SYN-ACK.
const ROUND_TRIP: u64 = 2;

const CLIENT: Address = Address::from_v4_octets([10, 0, 0, 1]);
const SERVER: Address = Address::from_v4_octets([10, 0, 0, 2]);

/// Two hosts, and what became of their connections.
struct World {
    hosts: [Shard; 2],
    /// Packets under way to each, which arrive with the next step.
    under_way: [Vec<Vec<u8>>; 2],
    listener: ListenerId,
    first: First,
    step: u64,
    /// When each connection began, by its handle's index.
    begun: Vec<u64>,
    connected: u64,
    /// Round trips beyond the path's, of the connection that waited for most.
    most_extra: u64,
    delayed: u64,
    most_waiting: [usize; 2],
}

fn tunables(settings: &[(&str, &str)]) -> Tunables {
    let mut tunables = Tunables::default();
    // The class of a link: as long as a remote path's.
    tunables.set_by_name("msl", "60s").expect("a time");
    for (name, value) in settings {
        tunables.set_by_name(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    tunables
}

fn host(addr: Address, seed: u64, tunables: &Tunables) -> Shard {
    let config = ShardConfig {
        tunables: tunables.clone(),
        secrets: Secrets::from_seed(seed),
        capabilities: Capabilities {
            medium: Medium::Ip,
            mtu: 1500,
            max_super: 1500,
            tx_checksum: false,
            steering: Steering::None,
        },
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Shard::new(config).expect("a valid configuration")
}

impl World {
    fn new(first: First, settings: &[(&str, &str)]) -> Self {
        let tunables = tunables(settings);
        let mut hosts = [host(CLIENT, 1, &tunables), host(SERVER, 2, &tunables)];
        let listener = hosts[1].listen(Endpoint::new(SERVER, 80), 4_096).expect("free");
        Self {
            hosts,
            under_way: [Vec::new(), Vec::new()],
            listener,
            first,
            step: 0,
            begun: Vec::new(),
            connected: 0,
            most_extra: 0,
            delayed: 0,
            most_waiting: [0; 2],
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + STEP * self.step as u32
    }

    fn connect(&mut self) -> Result<(), ConnectError> {
        let handle = self.hosts[0].connect(Endpoint::new(SERVER, 80), None)?;
        let index = handle.index() as usize;
        self.begun.resize(self.begun.len().max(index + 1), 0);
        self.begun[index] = self.step;
        Ok(())
    }

    /// `count` connections at `rate` a second, and the time it takes them to end.
    fn play(&mut self, count: u64, rate: u64) {
        let begin = self.step;
        let steps_a_second = 1_000_000 / STEP.as_micros() as u64;
        let mut opened = 0;
        while opened < count {
            let due = ((self.step - begin + 1) * rate / steps_a_second).min(count);
            self.tell_time();
            while opened < due {
                self.connect().unwrap_or_else(|error| panic!("connection {opened}: {error}"));
                opened += 1;
            }
            self.advance();
        }
        for _ in 0..40 {
            self.advance();
        }
        assert_eq!(self.connected, count);
    }

    fn tell_time(&mut self) {
        let now = self.now();
        self.hosts.iter_mut().for_each(|host| host.tell_time(now));
    }

    /// One way of the path.
    fn advance(&mut self) {
        self.carry();
        self.step += 1;
        let now = self.now();
        for (host, packets) in self.hosts.iter_mut().zip(&mut self.under_way) {
            let frames: Vec<_> =
                packets.iter().map(|packet| RxFrame::new(packet, SegMeta::SINGLE)).collect();
            host.rx(now, &frames);
            packets.clear();
            while host.advance(now, 256) {}
        }
        self.serve();
        self.consume();
        let waiting = [0, 1].map(|side: usize| self.hosts[side].census().time_wait);
        self.most_waiting = [0, 1].map(|side| self.most_waiting[side].max(waiting[side]));
    }

    fn carry(&mut self) {
        for side in [0, 1] {
            let mut batch = TxBatch::new(64);
            loop {
                let more = self.hosts[side].tx(&mut batch);
                let packets = batch.pending().iter().map(|segment| segment.to_vec());
                self.under_way[1 - side].extend(packets);
                batch.consume(batch.pending().len());
                if !more {
                    break;
                }
            }
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.hosts[1].poll_event() {
            match event {
                Event::Accepted(_) => {
                    while let Some(handle) = self.hosts[1].accept(self.listener) {
                        if self.first == First::Server {
                            self.hosts[1].close(handle);
                        }
                    }
                }
                Event::Readable(handle) => close_at_end(&mut self.hosts[1], handle),
                other => panic!("{other:?}"),
            }
        }
    }

    fn consume(&mut self) {
        while let Some(event) = self.hosts[0].poll_event() {
            match event {
                Event::Connected(handle) => {
                    let took = self.step - self.begun[handle.index() as usize];
                    let extra = took.saturating_sub(ROUND_TRIP).div_ceil(ROUND_TRIP);
                    self.most_extra = self.most_extra.max(extra);
                    self.delayed += u64::from(extra > 0);
                    self.connected += 1;
                    if self.first == First::Client {
                        self.hosts[0].close(handle);
                    }
                }
                Event::Readable(handle) => close_at_end(&mut self.hosts[0], handle),
                other => panic!("{other:?}"),
            }
        }
    }

    /// After 2 MSL nothing is left.
    fn end(mut self) {
        for host in &mut self.hosts {
            let end = Instant::ZERO + STEP * self.step as u32 + Duration::from_secs(121);
            while host.advance(end, 4_096) {}
            let census = host.census();
            let left = [census.connections, census.syn_entries, census.time_wait, census.flows];
            assert_eq!((left, census.timers, census.destinations), ([0; 4], 0, 0));
            host.check_invariants().expect("what must hold");
        }
        self.under_way.iter_mut().for_each(Vec::clear);
    }
}

fn close_at_end(host: &mut Shard, handle: Handle) {
    if matches!(host.recv(handle), Recv::End | Recv::Closed(_)) {
        host.close(handle);
    }
}

/// What this process holds, octets; 0 where nobody tells.
#[allow(clippy::disallowed_methods, reason = "a test asks the machine how much memory it has")]
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).map_or(0, |pages: u64| pages * 4096)
}

/// The server closes first: its TIME-WAITs are met by new SYNs from the same ports. Returns how many
/// octets of memory the last three quarters took.
fn many_from_one_address(count: u64, rate: u64, settings: &[(&str, &str)]) -> u64 {
    let mut world = World::new(First::Server, settings);
    world.play(count / 4, rate);
    let before = resident();
    world.play_on(count - count / 4, rate);
    let grown = resident().saturating_sub(before);
    assert_eq!((world.delayed, world.most_waiting[0]), (0, 0));
    let counters = world.hosts[1].counters();
    assert_eq!(counters.challenge_acks + counters.time_wait_overflow + counters.listen_drops, 0);
    println!("{count} connections, {} waited at once, {grown} octets more", world.most_waiting[1]);
    world.end();
    grown
}

impl World {
    fn play_on(&mut self, count: u64, rate: u64) {
        let before = core::mem::take(&mut self.connected);
        self.play(count, rate);
        self.connected += before;
    }
}

const FEW_PORTS: (&str, &str) = ("net.ipv4.ip_local_port_range", "40000 41999");

#[test]
fn a_server_that_closes_first_delays_nobody_however_often_ports_come_back() {
    many_from_one_address(40_000, 20_000, &[FEW_PORTS]);
}

#[test]
#[ignore = "a million connections"]
fn a_million_connections_from_one_address_to_one_port() {
    let grown = many_from_one_address(1_000_000, 100_000, &[]);
    assert!(grown < 8 << 20, "{grown} octets more");
}

/// The client closes first: as many connections as ports by reuse delay, at `ports` a second.
fn client_closes_first(ports: u64, seconds: u64, settings: &[(&str, &str)]) {
    let mut world = World::new(First::Client, settings);
    // A connection holds its port for a little longer than it waits.
    let rate = ports * 98 / 100;
    world.play(rate * seconds, rate);
    let counters = world.hosts[0].counters();
    assert_eq!((world.delayed, counters.ports_exhausted), (0, 0));
    assert!(counters.time_wait_taken_over > rate * (seconds - 2), "the ports came back");
    assert!(world.most_waiting[0] as u64 <= ports);
    world.end();
}

#[test]
fn a_client_that_closes_first_gets_all_that_its_ports_allow() {
    client_closes_first(2_000, 12, &[FEW_PORTS]);
}

#[test]
#[ignore = "850,000 connections"]
fn a_client_that_closes_first_gets_28_232_connections_a_second() {
    client_closes_first(28_232, 30, &[]);
}

/// The load of the report on illumos: a fixed rate, ports at random, the server closes first.
fn ports_at_random(count: u64, rates: &[u64], more: &[(&str, &str)]) {
    for rate in rates {
        for timestamps in ["on", "off"] {
            let random = [("ports", "random"), ("net.ipv4.tcp_timestamps", timestamps)];
            let settings: Vec<_> = random.iter().chain(more).copied().collect();
            let mut world = World::new(First::Server, &settings);
            world.play(count, *rate);
            // What they send is nothing to the ISN clock: it is never outrun.
            assert_eq!(world.delayed, 0, "{rate}/s, timestamps {timestamps}");
            assert!(world.hosts[1].counters().time_wait_recycled > count / 4);
            world.end();
        }
    }
}

const RATES: [u64; 6] = [250, 300, 500, 1_000, 10_000, 100_000];

#[test]
fn ports_that_come_back_at_random_delay_nobody_at_any_rate() {
    // At 250/s 300 ports come back about once in 1.2 s.
    ports_at_random(2_000, &RATES[..4], &[("net.ipv4.ip_local_port_range", "40000 40299")]);
    ports_at_random(5_000, &RATES[4..], &[FEW_PORTS]);
}

#[test]
#[ignore = "1.2 million connections: minutes"]
fn the_load_of_the_report_delays_nobody_at_any_rate() {
    ports_at_random(100_000, &RATES, &[]);
}
