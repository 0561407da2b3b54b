use std::cell::Cell;
use std::net::Ipv4Addr;
use std::time::Duration;

use whimbrel_wire::checksum;

use super::*;
use crate::Device;

thread_local! {
    static ORIGIN: std::time::Instant = std::time::Instant::now();
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Time of a test, which it sets.
fn read() -> std::time::Instant {
    ORIGIN.with(|origin| *origin) + PASSED.get()
}

/// Reasons of losses at the hub.
#[derive(Default, Debug)]
struct Losses(Mutex<Vec<HubLoss>>);

impl HubObserver for Losses {
    fn on_sent(&self, _: Instant, _: HubPort, _: &Bytes, _: Option<LinkOutcome>) {}

    fn on_arrived(&self, _: Instant, _: HubPort, _: &Bytes) {}

    fn on_lost(&self, _: Instant, _: &Bytes, reason: HubLoss) {
        self.0.lock().unwrap().push(reason);
    }
}

/// A hub with hosts at 10.0.0.0 and following addresses, and their wires.
struct Hosts {
    hub: Hub,
    ports: Vec<HubPort>,
    wires: Vec<super::super::MemWire>,
    losses: Arc<Losses>,
}

/// Creates a host for each delay of its link to the hub, in microseconds. From the hub it takes 1 ms.
fn hosts(delays: &[u64]) -> Hosts {
    PASSED.set(Duration::ZERO);
    let (clock, losses) = (Clock::start_with(read), Arc::new(Losses::default()));
    let hub = Hub::new(clock, move || clock.now(), Arc::clone(&losses) as _).unwrap();
    let link = |delay| LinkConfig::default().with_delay(Duration::from_micros(delay));
    let add = |(number, delay): (u8, &u64)| {
        hub.add(&[address(number)], [link(*delay), link(1_000)], u64::from(number))
    };
    let ports: Vec<_> = (0..).zip(delays).map(add).collect();
    let open = |port: &HubPort| hub.plug(*port).unwrap().open(1, clock).unwrap().remove(0);
    let wires = ports.iter().map(open).collect();
    Hosts { hub, ports, wires, losses }
}

fn address(number: u8) -> Address {
    Ipv4Addr::new(10, 0, 0, number).into()
}

/// A packet of 21 bytes, the last of which is `mark`.
fn packet(to: u8, mark: u8) -> Bytes {
    let mut bytes = [0x45, 0, 0, 21, 0, 0, 0, 0, 64, 253, 0, 0, 192, 0, 2, 1, 10, 0, 0, to, mark];
    let sum = checksum::Sum::new().add_bytes(&bytes[..20]).finish();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    Bytes::copy_from_slice(&bytes)
}

impl Hosts {
    fn send(&self, from: usize, packet: Bytes) {
        let up = self.hub.links(self.ports[from]).unwrap().up;
        up.line.push(self.hub.clock.now(), std::iter::once(packet));
    }

    /// Polls the hub after this time.
    fn poll(&self, after: Duration) -> Option<Instant> {
        PASSED.set(after);
        self.hub.poll(task::Waker::noop())
    }

    /// Marks of the packets that have arrived at a host.
    fn received(&mut self, at: usize) -> Vec<u8> {
        let mut marks = Vec::new();
        let mut deliver = |burst: &[whimbrel_stack::RxFrame<'_>]| {
            marks.extend(burst.iter().map(|frame| *frame.bytes.last().unwrap()));
        };
        self.wires[at].rx_burst(&mut deliver).unwrap();
        marks
    }
}

#[test]
fn late_hub_keeps_arrival_times_and_order() {
    let mut hosts = hosts(&[2_500, 1_500, 0]);
    hosts.send(0, packet(2, 1));
    hosts.send(1, packet(2, 2));
    let micros = Duration::from_micros;
    assert_eq!(hosts.poll(micros(0)), Some(Instant::ZERO + micros(1_500)));
    // A late poll.
    assert_eq!(hosts.poll(micros(3_000)), None);
    assert_eq!(hosts.wires[2].next_deadline(), Some(Instant::ZERO + micros(2_500)));
    assert_eq!(hosts.received(2), [2]);
    assert_eq!(hosts.wires[2].next_deadline(), Some(Instant::ZERO + micros(3_500)));
    PASSED.set(micros(3_500));
    assert_eq!(hosts.received(2), [1]);
    assert_eq!(hosts.hub.counters().forwarded, 2);
}

#[test]
fn packet_without_host_is_dropped_and_counted() {
    let mut hosts = hosts(&[0, 0]);
    hosts.send(0, packet(9, 1));
    hosts.send(0, Bytes::from_static(b"no packet"));
    hosts.send(0, Bytes::new());
    assert_eq!(hosts.poll(Duration::ZERO), None);
    assert_eq!(*hosts.losses.0.lock().unwrap(), [HubLoss::NoHost; 3]);
    assert_eq!(hosts.hub.counters(), HubCounters { no_host: 3, ..HubCounters::default() });
    assert!(hosts.received(1).is_empty());
}

#[test]
fn blocked_direction_drops_packets_until_unblocked() {
    let mut hosts = hosts(&[0, 0]);
    let (one, two) = (hosts.ports[0], hosts.ports[1]);
    hosts.hub.block(one, two);
    hosts.send(0, packet(1, 1));
    hosts.send(1, packet(0, 2));
    hosts.poll(Duration::ZERO);
    hosts.hub.unblock(one, two);
    hosts.send(0, packet(1, 3));
    hosts.poll(Duration::ZERO);
    PASSED.set(Duration::from_millis(1));
    assert_eq!((hosts.received(0), hosts.received(1)), (vec![2], vec![3]));
    assert_eq!(*hosts.losses.0.lock().unwrap(), [HubLoss::Partitioned]);
    assert_eq!(hosts.hub.counters().partitioned, 1);
}

#[test]
fn unplugged_host_loses_packets_on_both_links() {
    let mut hosts = hosts(&[5_000, 0]);
    let port = hosts.ports[0];
    hosts.send(0, packet(1, 1));
    hosts.send(1, packet(0, 2));
    hosts.poll(Duration::ZERO);
    hosts.hub.unplug(port);
    hosts.send(0, packet(1, 3));
    hosts.send(1, packet(0, 4));
    assert_eq!(hosts.poll(Duration::from_secs(1)), None);
    let links = hosts.hub.links(port).unwrap();
    assert_eq!((links.up.counters().lost_down, links.down.counters().lost_down), (2, 2));
    // A new stack at the same place.
    let wire = hosts.hub.plug(port).unwrap().open(1, hosts.hub.clock).unwrap().remove(0);
    hosts.wires[0] = wire;
    hosts.send(1, packet(0, 5));
    hosts.poll(Duration::from_secs(1));
    PASSED.set(Duration::from_secs(2));
    assert_eq!((hosts.received(0), hosts.received(1)), (vec![5], vec![]));
}

#[test]
fn many_packets_take_several_polls() {
    let hosts = hosts(&[0, 0]);
    for mark in 0..=255 {
        hosts.send(0, packet(1, mark));
        hosts.send(0, packet(1, mark));
    }
    assert_eq!(hosts.poll(Duration::ZERO), Some(Instant::ZERO));
    assert_eq!(hosts.hub.counters().forwarded, 256);
    assert_eq!(hosts.poll(Duration::ZERO), None);
    assert_eq!(hosts.hub.counters().forwarded, 512);
}
