//! Counts how often a transfer asks the transport. With a look at each stream for each event it was
//! a thousand times too often with a thousand streams.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::{Address, Endpoint};

use crate::Model;
use crate::bulk::{Bulk, Direction, Peer, StopCondition, TransferPlan};
use crate::transport::{
    ConnectOptions, OpenError, Reading, SenderStats, StackUsage, Transport, TransportEvent,
};

/// A transport of connections that open at once; each takes bytes while it has room.
#[derive(Default)]
struct Counting {
    room: Vec<usize>,
    events: VecDeque<TransportEvent<Self>>,
    /// Calls of `send` and `recv`.
    calls: usize,
}

impl Transport for Counting {
    type Id = u32;
    type Listener = ();

    fn place(id: u32) -> u32 {
        id
    }

    fn connect(
        &mut self,
        _: Endpoint,
        _: &ConnectOptions,
        _: &mut Bytes,
    ) -> Result<u32, OpenError> {
        let id = u32::try_from(self.room.len()).expect("few");
        self.room.push(ROOM);
        self.events.push_back(TransportEvent::Connected(id));
        Ok(id)
    }

    fn accept(&mut self, (): ()) -> Option<u32> {
        None
    }

    fn send(&mut self, id: u32, data: &mut Bytes) -> Result<usize, crate::ConnError> {
        self.calls += 1;
        let room = &mut self.room[id as usize];
        let taken = data.len().min(*room);
        *room -= taken;
        let _ = data.split_to(taken);
        Ok(taken)
    }

    fn recv(&mut self, _: u32) -> Reading {
        self.calls += 1;
        Reading::Pending
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, _: u32) {}

    fn abort(&mut self, _: u32) {}

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        self.events.pop_front()
    }

    fn sender_stats(&self, _: u32) -> Option<SenderStats> {
        None
    }

    fn retransmits(&self) -> Option<u64> {
        None
    }

    fn stack_usage(&self) -> Option<StackUsage> {
        None
    }

    fn local(&self, _: u32) -> Option<Endpoint> {
        None
    }

    fn remote(&self, _: u32) -> Option<Endpoint> {
        None
    }
}

/// A running transfer with full buffers, and the count of its calls reset.
fn running(streams: u32, rate: Option<u64>) -> (Bulk<Counting>, Counting) {
    let second = Duration::from_secs(1);
    let plan = TransferPlan {
        target: Endpoint::new(Address::from_v4_octets([192, 0, 2, 1]), 80),
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
    let (mut bulk, mut net) = (Bulk::new(plan), Counting::default());
    while bulk.poll(&mut net, Instant::ZERO, 64) {}
    net.calls = 0;
    (bulk, net)
}

#[test]
fn stream_with_news_alone_is_moved_on() {
    for streams in [2, 100, 1_000] {
        let (mut bulk, mut net) = running(streams, None);
        for id in [0, streams / 2, streams - 1] {
            net.room[id as usize] = ROOM;
            net.events.push_back(TransportEvent::Writable(id));
            while bulk.poll(&mut net, Instant::ZERO, 64) {}
            assert_eq!(net.room[id as usize], 0, "{streams} streams");
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
    net.room.fill(ROOM);
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
