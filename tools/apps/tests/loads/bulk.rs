//! Bulk transfer in virtual time.

use std::time::Duration;

use whimbrel_apps::bulk::{Bulk, Direction, Peer, StopCondition, TransferPlan};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::transport::{ConnectOptions, Limit};
use whimbrel_apps::{ConnError, Destination};
use whimbrel_sim::pair::{PairConfig, server_at};
use whimbrel_stack::Shard;
use whimbrel_wire::{Address, Endpoint, Family};

use crate::world::{Ran, target};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn plan(direction: Direction, until: StopCondition) -> TransferPlan {
    TransferPlan {
        target: target(),
        destinations: Vec::new(),
        direction,
        streams: 2,
        until,
        rate: None,
        block: 32 << 10,
        omit: Duration::ZERO,
        interval: SECOND,
        timeout: 10 * SECOND,
        options: ConnectOptions::default(),
        peer: Peer::Plain,
        effort: || None,
    }
}

fn run(links: &str, plan: TransferPlan, role: Role) -> Ran<Bulk<Shard>, PeerServer<Shard>> {
    Ran::new(links, Bulk::new(plan), PeerServer::new(role, CloseMode::Second))
}

#[test]
fn every_byte_sent_is_confirmed_by_the_sink() {
    let ran = run("delay=5ms", plan(Direction::Send, StopCondition::Bytes(1 << 20)), Role::Sink);
    assert_eq!(ran.client().conn_error(), None);
    for stream in ran.client().streams() {
        assert_eq!(stream.totals().sent, 1 << 20);
        assert_eq!(stream.confirmed(), Some(1 << 20));
    }
    assert_eq!(ran.server().statistics().received, 2 << 20);
    ran.assert_nothing_leaked();
}

/// Data under way does not count as sent: it may be lost.
#[test]
fn lost_data_does_not_count_as_sent() {
    // The handshake takes half a second; a full segment takes six.
    let one =
        TransferPlan { streams: 1, ..plan(Direction::Send, StopCondition::Elapsed(3 * SECOND)) };
    let ran = run("rate=2k,delay=5ms", one, Role::Sink);
    let stream = &ran.client().streams()[0];
    assert!(stream.given() > 100_000, "{}", stream.given());
    assert_eq!(stream.totals().sent, 0);
    assert_eq!(stream.samples().iter().map(|sample| sample.moved.sent).sum::<u64>(), 0);
}

#[test]
fn generator_sends_for_a_time() {
    let receive = plan(Direction::Receive, StopCondition::Elapsed(3 * SECOND));
    let ran = run("rate=10M,delay=5ms", receive, Role::Chargen);
    let client = ran.client();
    assert_eq!((client.elapsed(), client.conn_error()), (3 * SECOND, None));
    let total: u64 = client.streams().iter().map(|stream| stream.totals().received).sum();
    // 10 Mbit/s less headers for 3 s.
    assert!((3_200_000..3_750_000).contains(&total), "{total}");
    for stream in client.streams() {
        let moved: u64 = stream.samples().iter().map(|sample| sample.moved.received).sum();
        assert_eq!((stream.samples().len(), moved), (3, stream.totals().received));
    }
}

#[test]
fn both_ways_at_once_move_both() {
    let both = plan(Direction::Both, StopCondition::Elapsed(2 * SECOND));
    let ran = run("rate=10M,delay=5ms", both, Role::Chargen);
    for stream in ran.client().streams() {
        let totals = stream.totals();
        assert!(totals.sent > 500_000 && totals.received > 500_000, "{totals:?}");
    }
    let sent: u64 = ran.client().streams().iter().map(|stream| stream.given()).sum();
    assert!(ran.server().statistics().received <= sent);
}

#[test]
fn rate_is_kept_and_the_application_is_then_the_limit() {
    let slow = TransferPlan {
        rate: Some(2_000_000),
        streams: 1,
        ..plan(Direction::Send, StopCondition::Elapsed(4 * SECOND))
    };
    let ran = run("delay=1ms", slow, Role::Sink);
    let stream = &ran.client().streams()[0];
    assert!((950_000..=1_000_000).contains(&stream.totals().sent), "{:?}", stream.totals());
    assert_eq!(stream.shares().greatest().map(|(limit, _)| limit), Some(Limit::App));
}

#[test]
fn window_below_the_path_is_named_as_the_limit() {
    let one =
        TransferPlan { streams: 1, ..plan(Direction::Send, StopCondition::Elapsed(4 * SECOND)) };
    let mut config = PairConfig::default();
    for rules in &mut config.tunables {
        for grows in ["net.ipv4.tcp_moderate_rcvbuf", "buffers.send.auto"] {
            rules.set_by_name(grows, "0").unwrap();
        }
    }
    let server = PeerServer::new(Role::Sink, CloseMode::Second);
    let ran: Ran<_, PeerServer<Shard>> =
        Ran::configured("rate=100M,delay=50ms", config, Bulk::new(one), server);
    let (limit, share) = ran.client().streams()[0].shares().greatest().unwrap();
    assert!(matches!(limit, Limit::Rwnd | Limit::Sndbuf) && share > 0.5, "{limit:?} {share}");
}

/// A sender learns of room in time to keep a path full that its buffer could fill.
#[test]
fn server_that_sends_is_as_fast_as_a_client_that_does() {
    let moved = |direction, role| {
        let one = TransferPlan {
            streams: 1,
            omit: SECOND,
            ..plan(direction, StopCondition::Elapsed(9 * SECOND))
        };
        let counted = run("rate=45M,delay=35ms", one, role).client().streams()[0].counted();
        counted.sent.max(counted.received)
    };
    let there = moved(Direction::Send, Role::Sink);
    let back = moved(Direction::Receive, Role::Chargen);
    assert!(there.abs_diff(back) * 50 < there, "{there} bytes there, {back} back");
}

#[test]
fn omitted_time_is_in_no_total() {
    let warm = TransferPlan {
        omit: SECOND,
        streams: 1,
        ..plan(Direction::Send, StopCondition::Elapsed(2 * SECOND))
    };
    let ran = run("rate=10M,delay=5ms", warm, Role::Sink);
    let client = ran.client();
    assert_eq!(client.elapsed(), 2 * SECOND);
    let stream = &client.streams()[0];
    let omitted: Vec<bool> = stream.samples().iter().map(|sample| sample.omitted).collect();
    assert_eq!(omitted, [true, false, false]);
    assert!(stream.counted().sent < stream.totals().sent);
    assert!((2_200_000..2_700_000).contains(&stream.counted().sent), "{:?}", stream.counted());
}

#[test]
fn peer_reset_ends_transfer_with_its_error() {
    let role = Role::Echo;
    let client = Bulk::new(plan(Direction::Receive, StopCondition::Elapsed(5 * SECOND)));
    // Neither side sends, so the end comes by time, and nothing was moved.
    let ran = Ran::new("delay=5ms", client, PeerServer::new(role, CloseMode::First));
    assert_eq!(ran.client().conn_error(), None);
    assert_eq!(ran.client().streams()[0].totals().received, 0);
    let nowhere = TransferPlan {
        target: Endpoint { port: 81, ..target() },
        ..plan(Direction::Send, StopCondition::Elapsed(SECOND))
    };
    let ran = run("delay=5ms", nowhere, Role::Sink);
    assert_eq!(ran.client().conn_error(), Some(ConnError::Refused));
}

#[test]
fn streams_go_to_first_address_with_answer() {
    let refuses = server_at(Family::V6, target().port);
    let destinations = vec![Destination::from(refuses), target().into()];
    let sought = TransferPlan {
        target: refuses,
        destinations,
        ..plan(Direction::Send, StopCondition::Bytes(1 << 20))
    };
    let ran = run("delay=5ms", sought, Role::Sink);
    let client = ran.client();
    assert_eq!((client.conn_error(), client.streams().len()), (None, 2));
    assert_eq!(
        (client.plan().target, client.unreached()),
        (target(), [(refuses, ConnError::Refused)].as_slice())
    );
    assert_eq!(ran.server().statistics().accepted, 2);
    assert_eq!(ran.server().statistics().received, 2 << 20);
    ran.assert_nothing_leaked();
}

#[test]
fn transfer_without_server_names_each_address() {
    let silent = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 77]), 80);
    let refuses = server_at(Family::V6, target().port);
    let sought = TransferPlan {
        target: silent,
        destinations: vec![silent.into(), refuses.into()],
        ..plan(Direction::Send, StopCondition::Bytes(1 << 20))
    };
    let ran = run("delay=5ms", sought, Role::Sink);
    let failed = [(refuses, ConnError::Refused), (silent, ConnError::ConnectTimeout)];
    assert_eq!(ran.client().unreached(), failed);
    assert_eq!(ran.client().conn_error(), Some(ConnError::ConnectTimeout));
    ran.assert_nothing_leaked();
}
