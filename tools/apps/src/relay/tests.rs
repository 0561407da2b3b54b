use alloc::vec;

use bytes::Bytes;
use whimbrel_base::Instant;

use super::{FAR_FAILED, HALF_CLOSED, PIECE, Pair, Relay, RelayStatistics, Sides};
use crate::test_transport::{Fate, TestTransport};
use crate::transport::{ConnError, Reading, TransportEvent};

/// A relay of flows, of which both ends have the same number.
struct World {
    near: TestTransport,
    far: TestTransport,
    relay: Relay<TestTransport, TestTransport>,
    now: Instant,
}

impl World {
    fn of(flows: u32) -> Self {
        let [near, far] = [(); 2].map(|()| TestTransport::open(flows as usize));
        let mut world = Self { near, far, relay: Relay::default(), now: Instant::ZERO };
        for id in 0..flows {
            let sides = Sides { near: &mut world.near, far: &mut world.far };
            let pair = Pair { near: id, far: id, first: Bytes::new() };
            world.relay.join(sides, pair, world.now);
        }
        world
    }

    fn on_near(&mut self, event: &TransportEvent<TestTransport>) -> bool {
        let sides = Sides { near: &mut self.near, far: &mut self.far };
        self.relay.on_near(sides, event, self.now)
    }

    fn on_far(&mut self, event: &TransportEvent<TestTransport>) -> bool {
        let sides = Sides { near: &mut self.near, far: &mut self.far };
        self.relay.on_far(sides, event, self.now)
    }

    fn poll(&mut self) -> bool {
        let sides = Sides { near: &mut self.near, far: &mut self.far };
        self.relay.poll(sides, self.now, 64)
    }

    fn statistics(&self) -> RelayStatistics {
        *self.relay.statistics()
    }

    /// No flow, and nothing that waits for one, is left.
    fn assert_empty(&self) {
        assert_eq!(self.statistics().open, 0);
        assert_eq!(self.relay.next_deadline(), None);
        assert!(self.relay.ready.is_empty() && self.relay.half_closed.is_empty());
    }
}

fn data(len: usize) -> Reading {
    Reading::Data(vec![7; len].into())
}

fn text(text: &'static [u8]) -> Reading {
    Reading::Data(Bytes::from_static(text))
}

#[test]
fn bytes_and_fin_pass_in_each_direction_alone() {
    let mut world = World::of(1);
    world.near.says(0, [text(b"request"), Reading::End]);
    assert!(world.on_near(&TransportEvent::Readable(0)));
    assert_eq!((world.far.heard(0), world.far.fate(0)), (&b"request"[..], Fate::Shut));
    assert_eq!(world.near.fate(0), Fate::Open);
    world.far.says(0, [text(b"re"), text(b"sponse")]);
    assert!(world.on_far(&TransportEvent::Readable(0)));
    assert_eq!(world.near.heard(0), b"response");
    world.far.says(0, [Reading::End]);
    world.on_far(&TransportEvent::Readable(0));
    assert_eq!((world.near.fate(0), world.far.fate(0)), (Fate::Closed, Fate::Closed));
    assert!(!world.on_near(&TransportEvent::Readable(0)), "it is gone");
    let RelayStatistics { flows, finished, bytes_up, bytes_down, .. } = world.statistics();
    assert_eq!((flows, finished, bytes_up, bytes_down), (1, 1, 7, 8));
    world.assert_empty();
}

#[test]
fn header_precedes_data_and_is_not_counted() {
    let [mut near, mut far] = [(); 2].map(|()| TestTransport::open(1));
    let mut relay = Relay::default();
    near.says(0, [text(b"data")]);
    far.at(0).room = 3;
    let pair = Pair { near: 0, far: 0, first: Bytes::from_static(b"header ") };
    relay.join(Sides { near: &mut near, far: &mut far }, pair, Instant::ZERO);
    assert_eq!((far.heard(0), relay.statistics().bytes_up), (&b"hea"[..], 0));
    far.at(0).room = 100;
    let sides = Sides { near: &mut near, far: &mut far };
    relay.on_far(sides, &TransportEvent::Writable(0), Instant::ZERO);
    assert_eq!((far.heard(0), relay.statistics().bytes_up), (&b"header data"[..], 4));
}

#[test]
fn full_side_stops_reading_of_other() {
    let mut world = World::of(1);
    world.far.at(0).room = 1_000;
    world.near.says(0, (0..10).map(|_| data(PIECE)));
    world.on_near(&TransportEvent::Readable(0));
    for _ in 0..10 {
        world.on_near(&TransportEvent::Readable(0));
    }
    assert_eq!(world.near.at(0).input.len(), 9, "one piece is held");
    assert_eq!(world.statistics().bytes_up, 1_000);
    // The other direction is not stopped.
    world.far.says(0, [text(b"come on")]);
    world.on_far(&TransportEvent::Readable(0));
    assert_eq!(world.near.heard(0), b"come on");
    world.far.at(0).room = usize::MAX;
    world.on_far(&TransportEvent::Writable(0));
    while world.poll() {}
    assert_eq!(world.far.heard(0).len(), 10 * PIECE);
}

#[test]
fn reset_of_either_side_resets_other() {
    let mut world = World::of(3);
    world.on_near(&TransportEvent::Closed(0, Some(ConnError::Reset)));
    world.far.says(1, [text(b"last"), Reading::Failed(ConnError::Reset)]);
    world.on_far(&TransportEvent::Readable(1));
    assert_eq!(world.near.heard(1), b"last");
    world.near.at(2).refusal = Some(ConnError::Reset);
    world.far.says(2, [text(b"lost")]);
    world.on_far(&TransportEvent::Readable(2));
    for id in 0..3 {
        assert_eq!((world.near.fate(id), world.far.fate(id)), (Fate::Aborted, Fate::Aborted));
    }
    let RelayStatistics { near_failed, far_failed, .. } = world.statistics();
    assert_eq!((near_failed, far_failed), (2, 1));
    world.assert_empty();
}

/// Neither reads: the server's data waits for the client, and the client's for the server, who resets.
#[test]
fn reset_passes_to_clients_that_do_not_read() {
    let mut world = World::of(2);
    world.relay = Relay::default().with_patience();
    for id in 0..2 {
        let sides = Sides { near: &mut world.near, far: &mut world.far };
        world.relay.join(sides, Pair { near: id, far: id, first: Bytes::new() }, world.now);
        world.near.at(id).room = 10;
        world.far.at(id).room = 0;
        world.far.says(id, [data(100), data(100), Reading::Failed(ConnError::Reset)]);
        world.on_far(&TransportEvent::Readable(id));
        world.near.says(id, [data(100)]);
        world.on_near(&TransportEvent::Readable(id));
        world.on_far(&TransportEvent::Closed(id, Some(ConnError::Reset)));
        assert_eq!(world.near.fate(id), Fate::Open, "it may read on");
    }
    for _ in 0..3 {
        world.now = world.relay.next_deadline().expect("a look is due");
        world.near.at(0).room = 50;
        world.on_near(&TransportEvent::Writable(0));
        world.poll();
    }
    assert!(world.now <= Instant::ZERO + 3 * FAR_FAILED);
    assert_eq!((world.near.fate(0), world.near.fate(1)), (Fate::Open, Fate::Aborted));
    world.near.at(0).room = 1000;
    world.on_near(&TransportEvent::Writable(0));
    assert_eq!((world.near.heard(0).len(), world.near.heard(1).len()), (200, 10));
    assert_eq!((world.near.fate(0), world.far.fate(0)), (Fate::Aborted, Fate::Aborted));
    assert_eq!((world.statistics().far_failed, world.statistics().bytes_up), (2, 0));
    world.assert_empty();
}

/// As of a web server that answers before it has read all, and closes.
#[test]
fn response_of_server_that_takes_no_more_arrives() {
    for (behind, fate) in [(Some(Reading::End), Fate::Closed), (None, Fate::Aborted)] {
        let mut world = World::of(1);
        world.far.at(0).refusal = Some(ConnError::Reset);
        world.far.says(0, [text(b"too large")]);
        world.far.says(0, behind);
        world.near.says(0, [data(100)]);
        world.near.at(0).room = 3;
        world.on_near(&TransportEvent::Readable(0));
        assert_eq!(world.near.fate(0), Fate::Open, "more is to come");
        world.near.at(0).room = 100;
        world.on_near(&TransportEvent::Writable(0));
        assert_eq!(world.near.heard(0), b"too large");
        assert_eq!(world.near.fate(0), fate);
        assert_eq!(world.statistics().far_failed, 1);
        world.assert_empty();
    }
}

#[test]
fn silent_client_of_ended_server_is_closed_after_60_s() {
    let mut world = World::of(2);
    for id in 0..2 {
        world.far.says(id, [text(b"bye"), Reading::End]);
        world.on_far(&TransportEvent::Readable(id));
        assert_eq!(world.near.fate(id), Fate::Shut);
    }
    // At the first look both had passed data since.
    world.now = world.now + HALF_CLOSED;
    world.poll();
    assert_eq!(world.statistics().open, 2);
    world.near.says(0, [text(b"still here")]);
    world.on_near(&TransportEvent::Readable(0));
    world.now = world.now + HALF_CLOSED;
    world.poll();
    assert_eq!((world.near.fate(0), world.near.fate(1)), (Fate::Shut, Fate::Closed));
    assert_eq!((world.statistics().abandoned, world.statistics().open), (1, 1));
    world.near.says(0, [Reading::End]);
    world.on_near(&TransportEvent::Readable(0));
    assert_eq!(world.statistics().finished, 1);
    world.assert_empty();
}

/// 1,000 clients that send without end, half of them to a server that takes nothing: one piece of each is
/// held, and a client between them waits for one turn of each.
#[test]
fn endless_senders_hold_one_piece_each_and_delay_by_one_turn() {
    let mut world = World::of(1_001);
    for id in 0..1_000 {
        if id % 2 == 0 {
            world.far.at(id).room = 0;
        }
        world.near.says(id, (0..8).map(|_| Reading::Data(Bytes::from_static(&[0; PIECE]))));
        world.on_near(&TransportEvent::Readable(id));
        let read = 8 - world.near.at(id).input.len();
        assert_eq!(read, 1, "{id}: no turn passes on more than one piece");
        world.far.at(id).output.clear();
    }
    world.near.says(1_000, [text(b"honest")]);
    world.on_near(&TransportEvent::Readable(1_000));
    assert_eq!(world.far.heard(1_000), b"honest");
    let before = world.statistics().bytes_up;
    world.poll();
    assert_eq!(world.statistics().bytes_up - before, 64 * PIECE as u64, "the budget of a poll");
    assert_eq!(world.relay.ready.len(), 500, "each waits once");
    world.relay.cut(Sides { near: &mut world.near, far: &mut world.far });
    assert_eq!(world.statistics().cut, 1_001);
    assert_eq!((world.near.fate(1_000), world.far.fate(1_000)), (Fate::Aborted, Fate::Aborted));
    world.assert_empty();
}
