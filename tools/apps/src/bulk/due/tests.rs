//! Counts how often a transfer asks the transport. With a look at each stream for each event it was
//! a thousand times too often with a thousand streams.

use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::{Address, Endpoint};

use crate::Model;
use crate::bulk::{Bulk, Direction, Peer, StopCondition, TransferPlan};
use crate::test_transport::TestTransport;
use crate::transport::{ConnectOptions, TransportEvent};

/// A running transfer with full buffers, and the count of its calls reset.
fn running(streams: u32, rate: Option<u64>) -> (Bulk<TestTransport>, TestTransport) {
    let second = Duration::from_secs(1);
    let plan = TransferPlan {
        target: Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 80),
        destinations: Vec::new(),
        direction: Direction::Send,
        streams,
        until: StopCondition::Elapsed(second * 10),
        rate,
        block: BLOCK,
        omit: Duration::ZERO,
        interval: second,
        timeout: second,
        options: ConnectOptions::default(),
        peer: Peer::Plain,
        effort: || None,
    };
    let (mut bulk, mut net) = (Bulk::new(plan), TestTransport::connecting(ROOM));
    while bulk.poll(&mut net, Instant::ZERO, 64) {}
    net.calls = 0;
    (bulk, net)
}

#[test]
fn stream_with_news_alone_is_moved_on() {
    for streams in [2, 100, 1_000] {
        let (mut bulk, mut net) = running(streams, None);
        for id in [0, streams / 2, streams - 1] {
            net.connections[id as usize].room = ROOM;
            net.events.push_back(TransportEvent::Writable(id));
            while bulk.poll(&mut net, Instant::ZERO, 64) {}
            assert_eq!(net.connections[id as usize].room, 0, "{streams} streams");
            assert!(net.calls <= CALLS, "{} calls for {streams} streams", net.calls);
            net.calls = 0;
        }
        while bulk.poll(&mut net, Instant::ZERO, 64) {}
        assert_eq!(net.calls, 0, "nothing happened");
    }
}

#[test]
fn rate_schedules_a_streams_next_block() {
    // Two blocks a second.
    let (mut bulk, mut net) = running(100, Some(2 * 8 * BLOCK as u64));
    net.connections.iter_mut().for_each(|it| it.room = ROOM);
    let due = bulk.next_deadline().expect("a block");
    assert!(due > Instant::ZERO);
    while bulk.poll(&mut net, Instant::ZERO, 64) {}
    assert_eq!(net.calls, 0, "no time has passed");
    while bulk.poll(&mut net, due, 64) {}
    let given: u64 = bulk.streams().iter().map(super::super::Stream::given).sum();
    assert_eq!(given, 100 * BLOCK as u64);
}

#[test]
fn end_reaches_each_stream() {
    let (mut bulk, mut net) = running(100, None);
    while bulk.poll(&mut net, Instant::ZERO + Duration::from_secs(10), 64) {}
    assert_eq!(net.calls, 100, "each is read, for what the other side says to it");
}

const BLOCK: usize = 1_000;
/// Room for two and a half blocks.
const ROOM: usize = 2_500;
/// Calls for one event: waiting text, two blocks, one without room, and one read.
const CALLS: usize = 5;
