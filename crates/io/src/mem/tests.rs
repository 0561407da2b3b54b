use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use whimbrel_base::Secrets;
use whimbrel_stack::{Event, InterfaceAddress, Shard, ShardConfig};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use super::*;
use crate::device::boxed;
use crate::{Activity, Port, Stop, Worker};

/// Reports each event, and releases the connections concerned.
struct Reporter(Sender<Event>);

impl Port for Reporter {
    fn drain(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            self.0.send(event).unwrap();
        }
        Activity::Idle
    }
}

#[test]
fn handshake_takes_link_delay_and_wakes_both_workers() {
    let delay = |delay| LinkConfig::default().with_delay(delay);
    let (there, back) = (delay(Duration::from_millis(30)), delay(Duration::from_millis(20)));
    let (client, server) = MemWire::pair(there, back, 1).unwrap();
    let clock = client.clock();
    let (stop, (reported, events)) = (Stop::new().unwrap(), mpsc::channel());

    let mut listening = shard(&server, SERVER.addr);
    listening.listen(SERVER, 1).unwrap();
    let waker = server.waker();
    let worker = Worker::new(server, listening, Reporter(reported.clone()), clock, waker);
    let server = worker.spawn("server", stop.clone()).unwrap();
    // Let it fall asleep: the SYN must wake it.
    std::thread::sleep(Duration::from_millis(20));
    let mut connecting = shard(&client, CLIENT);
    connecting.set_now(clock.now());
    let begun = clock.now();
    let handle = connecting.connect(SERVER, None).unwrap();
    let waker = client.waker();
    let worker = Worker::new(client, connecting, Reporter(reported), clock, waker);
    let client = worker.spawn("client", stop.clone()).unwrap();

    let wait = Duration::from_secs(10);
    assert_eq!(events.recv_timeout(wait), Ok(Event::Connected(handle)));
    let took = clock.now().since(begun);
    assert!(matches!(events.recv_timeout(wait), Ok(Event::Accepted(_))));
    assert!(took >= Duration::from_millis(50), "a round trip took {took:?}");
    stop.set();
    let (server, client) = (server.join().unwrap().0, client.join().unwrap().0);
    assert_eq!(client.device().outward_counters().delivered, server.device().counters().rx_frames);
    assert!(client.device().counters().rx_frames >= 1);
}

#[test]
fn super_segments_arrive_as_packets_of_the_mtu() {
    let (mut first, mut second) =
        MemWire::pair(LinkConfig::default(), LinkConfig::default(), 1).unwrap();
    let mut batch = TxBatch::new(1);
    let filled = batch.fill(|segment| {
        let bytes = [0x45; 40];
        segment.header_room()[..40].copy_from_slice(&bytes);
        segment.set_header_len(40);
        segment.transport_offset = 20;
        segment.gso_size = 1_000;
        segment.payload.push(Bytes::from(vec![7; 2_500])).is_ok()
    });
    assert_eq!(filled, Some(true));
    assert_eq!(first.tx_burst(&mut batch).unwrap(), TxOutcome::Drained);

    let mut lens = Vec::new();
    let taken = second.rx_burst(&mut |burst| {
        lens.extend(burst.iter().map(|frame| frame.bytes.len()));
    });
    assert_eq!(taken.unwrap(), 3);
    assert_eq!(lens, [1_040, 1_040, 540]);
    assert_eq!((first.counters().tx_frames, first.counters().tx_super), (1, 1));
    assert_eq!(second.counters().rx_bytes, 2_620);
    assert_eq!(second.next_deadline(), None);
}

#[test]
fn each_shard_keeps_its_ports_and_forwards_misrouted_frames() {
    for wrong in [false, true] {
        let (first, second) = MemEnd::pair(LinkConfig::default(), LinkConfig::default(), 1);
        let mut sender = first.open(1, Clock::start()).unwrap().remove(0);
        let mut devices = second.open(2, Clock::start()).unwrap();
        if wrong {
            devices.reverse();
        }
        let wakers: Vec<_> = devices.iter().map(MemWire::waker).collect();
        let mut queues = crate::Steered::join(boxed(devices), &wakers);
        // Segments from ports 0 to 7 to port 80: every other pair of ports belongs to shard 1.
        let mut batch = TxBatch::new(8);
        for port in 0..8 {
            let filled = batch.fill(|segment| {
                let (header, _) = segment.header_room().split_at_mut(40);
                header.copy_from_slice(&segment_from(port));
                segment.set_header_len(40);
                segment.transport_offset = 20;
                true
            });
            assert_eq!(filled, Some(true));
        }
        sender.tx_burst(&mut batch).unwrap();
        let mut taken = [Vec::new(), Vec::new()];
        for _ in 0..2 {
            for (queue, taken) in queues.iter_mut().zip(&mut taken) {
                let port = |frame: &RxFrame<'_>| frame.bytes[21];
                queue.rx_burst(&mut |burst| taken.extend(burst.iter().map(port))).unwrap();
            }
        }
        assert_eq!(taken, [vec![0, 1, 4, 5], vec![2, 3, 6, 7]], "wrong: {wrong}");
        for queue in &queues {
            let passed = if wrong { 4 } else { 0 };
            let steering = queue.steering();
            assert_eq!((steering.forwarded, steering.adopted), (passed, passed));
            assert_eq!(queue.next_deadline(), None);
        }
    }
}

/// Returns an IPv4 and a TCP header, from this port to port 80.
fn segment_from(port: u8) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let pairs = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = pairs.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..24].copy_from_slice(&[0, port, 0, 80]);
    packet[32] = 0x50;
    packet
}

fn shard(wire: &MemWire, addr: Address) -> Shard {
    Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: wire.capabilities(),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap()
}

const CLIENT: Address = Address::from_v4_bytes([10, 0, 0, 1]);
const SERVER: Endpoint = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 80);
