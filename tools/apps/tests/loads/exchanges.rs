//! Exchanges of fixed sizes against servers of bytes: transactions, connections, both.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::load::{
    Correction, Ending, Exchange, FastOpen, Load, LoadPlan, ResponseEnd, StopCondition,
};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::record::Phase;
use whimbrel_stack::Shard;

use crate::world::{Ran, target};

pub(crate) fn plan(request: usize, answer: u64, ending: Ending) -> LoadPlan {
    let second = Duration::from_secs(1);
    LoadPlan {
        target: target(),
        destinations: Vec::new(),
        exchange: Exchange {
            request: Bytes::from(vec![b'q'; request]),
            answer: ResponseEnd::Bytes(answer),
        },
        connections: 2,
        until: StopCondition::Exchanges(20),
        rate: None,
        offset: Duration::ZERO,
        ending,
        timeout: 5 * second,
        connect_timeout: 5 * second,
        warmup: Duration::ZERO,
        interval: second,
        correction: Correction::On,
        local: Vec::new(),
        fast_open: FastOpen::Off,
    }
}

fn run(plan: LoadPlan, role: Role, close_mode: CloseMode) -> Ran<Load<Shard>, PeerServer<Shard>> {
    Ran::new("delay=10ms", Load::new(plan), PeerServer::new(role, close_mode))
}

#[test]
fn transactions_on_kept_connections_take_a_round_trip_each() {
    let role = Role::Respond { request: 100, answer: Bytes::from_static(&[b'a'; 3_000]) };
    let ran = run(plan(100, 3_000, Ending::KeepAlive), role, CloseMode::Second);
    let record = ran.client().record();
    assert_eq!((record.answered(), record.opened, record.body), (20, 2, 60_000));
    assert_eq!(record.elapsed(), Duration::from_millis(220));
    let statistics = ran.server().statistics();
    assert_eq!((statistics.requests, statistics.received, statistics.sent), (20, 2_000, 60_000));
    ran.assert_nothing_leaked();
}

#[test]
fn configured_side_closes_after_each_transaction() {
    let endings = [
        (Ending::Server, CloseMode::First),
        (Ending::Client, CloseMode::Second),
        (Ending::Reset, CloseMode::Second),
        (Ending::Client, CloseMode::Reset),
    ];
    for (ending, close_mode) in endings {
        let ran = run(plan(1, 1, ending), Role::Echo, close_mode);
        let record = ran.client().record();
        assert_eq!((record.answered(), record.failed(), record.opened), (20, 0, 20));
        // A connection that the server resets after this side closed was answered all the same.
        let unclean = if close_mode == CloseMode::Reset { 20 } else { 0 };
        assert_eq!(record.unclean, unclean, "{ending:?} {close_mode:?}");
        assert_eq!(ran.server().statistics().accepted, 20);
        ran.assert_nothing_leaked();
    }
}

#[test]
fn empty_exchange_ends_with_an_open_connection() {
    let ran = run(plan(0, 0, Ending::Client), Role::Discard, CloseMode::Second);
    let record = ran.client().record();
    assert_eq!((record.answered(), record.opened, record.body), (20, 20, 0));
    assert_eq!(record.service.max() / 1_000_000, record.phase(Phase::Connect).max() / 1_000_000);
    ran.assert_nothing_leaked();
}

#[test]
fn more_answers_than_fit_into_memory_are_made_a_piece_at_a_time() {
    let mut plan = plan(65_536, u64::MAX, Ending::Client);
    (plan.connections, plan.until) = (1, StopCondition::Exchanges(1));
    plan.timeout = Duration::from_millis(200);
    // The requests are for 64 TiB in all, by 64 KiB.
    let role = Role::Respond { request: 1, answer: Bytes::from(vec![b'a'; 1 << 30]) };
    let ran = run(plan, role, CloseMode::Second);
    assert_eq!((ran.client().record().answered(), ran.client().record().failed()), (0, 1));
    assert!(ran.server().statistics().sent > 0);
    ran.assert_nothing_leaked();
}

#[test]
fn connections_are_counted_by_the_syn_that_opened_them() {
    let plan = LoadPlan {
        timeout: Duration::from_secs(300),
        connect_timeout: Duration::from_secs(300),
        ..plan(1, 1, Ending::Client)
    };
    let server = PeerServer::new(Role::Echo, CloseMode::Second);
    let ran = Ran::new("delay=10ms,loss=30%", Load::new(plan), server);
    let syns = ran.client().record().syns.unwrap();
    let repeated = syns.iter().map(|(syns, count)| u64::from(syns - 1) * count).sum::<u64>();
    let counters = ran.pair.world.host(ran.pair.client).0.counters();
    assert_eq!((syns.total(), repeated), (20, counters.syn_retrans));
    assert!(syns.late() > 0);
}

#[test]
fn handshakes_that_never_end_are_counted_by_their_age() {
    let plan = LoadPlan {
        until: StopCondition::Elapsed(Duration::from_secs(8)),
        connect_timeout: Duration::from_secs(300),
        ..plan(1, 1, Ending::Client)
    };
    let ran = Ran::new(
        "delay=10ms,loss=100%",
        Load::new(plan),
        PeerServer::new(Role::Echo, CloseMode::Second),
    );
    let left = ran.client().close();
    assert_eq!((left.in_flight, left.opening), (2, 2));
    assert_eq!(left.opening_for.oldest(), Duration::from_secs(8));
    assert_eq!(left.unanswered_for.oldest(), Duration::from_secs(8));
    let ages: Vec<_> = left.opening_for.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!((ages, ran.client().record().syns), (vec![(7, 2)], None));
}

#[test]
fn phases_of_a_warm_up_are_not_measured() {
    let warm = LoadPlan {
        until: StopCondition::Elapsed(Duration::from_secs(1)),
        warmup: Duration::from_secs(1),
        ..plan(1, 1, Ending::Client)
    };
    let ran = run(warm, Role::Echo, CloseMode::Second);
    let record = ran.client().record();
    let phases = Phase::ALL.map(|phase| record.phase(phase).len());
    // Twenty in each of the two seconds, on each of two connections; some are under way at the end.
    assert!(phases.iter().all(|count| (20..=40).contains(count)), "{phases:?}");
    assert_eq!(record.syns.map(|syns| syns.total()), Some(phases[0]));
    assert!(record.opened > phases[0]);
}
