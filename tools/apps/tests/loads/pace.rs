//! Servers with delays.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::http::reply::Expected;
use whimbrel_apps::http::{FixedBody, HttpServer, Limits};
use whimbrel_apps::load::{
    Ending, Exchange, Load, LoadPlan, Repeat, ResponseEnd, Runs, StopCondition,
};
use whimbrel_apps::peer::{CloseMode, PeerServer, Role};
use whimbrel_apps::record::Phase;
use whimbrel_apps::{Model, Pace};
use whimbrel_stack::Shard;

use crate::exchanges::plan;
use crate::world::Ran;

const THINK: Pace =
    Pace { think: Duration::from_millis(100), accept: Duration::ZERO, work: Duration::ZERO };
const SLOW_ACCEPT: Pace =
    Pace { think: Duration::ZERO, accept: Duration::from_millis(50), work: Duration::ZERO };

fn run<S: Model<Shard>>(plan: LoadPlan, server: S) -> Ran<Load<Shard>, S> {
    Ran::new("delay=10ms", Load::new(plan), server)
}

#[test]
fn delayed_response_does_not_delay_other_connections() {
    let role = Role::Respond { request: 1, answer: Bytes::from_static(b"a") };
    let server = PeerServer::new(role, CloseMode::Second).with_pace(THINK);
    let ran = run(plan(1, 1, Ending::KeepAlive), server);
    let record = ran.client().record();
    // 20 exchanges on two connections: ten in turn, each a round trip and a delay.
    assert_eq!(record.elapsed(), Duration::from_millis(20 + 10 * 120));
    assert_eq!(record.answered(), 20);
    ran.assert_nothing_leaked();
}

#[test]
fn web_server_may_delay_beyond_its_idle_limit() {
    let request = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: w\r\n\r\n");
    let plan = LoadPlan {
        exchange: Exchange { request, answer: ResponseEnd::Http(Expected::Body) },
        ..plan(1, 1, Ending::KeepAlive)
    };
    let limits = Limits { idle: Duration::from_millis(60), ..Limits::default() };
    let server = HttpServer::new(FixedBody::new(10), limits).with_pace(THINK);
    let ran = run(plan, server);
    let record = ran.client().record();
    assert_eq!((record.succeeded(), record.failed(), record.opened), (20, 0, 2));
    assert_eq!(record.elapsed(), Duration::from_millis(20 + 10 * 120));
    assert_eq!(ran.server().statistics().silent, 0);
    ran.assert_nothing_leaked();
}

#[test]
fn server_rate_is_limited_under_any_load() {
    let pace = Pace { work: Pace::work_at(100.0), ..Pace::default() };
    let role = Role::Respond { request: 1, answer: Bytes::from_static(b"a") };
    let request = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: w\r\n\r\n");
    let web = Exchange { request, answer: ResponseEnd::Http(Expected::Body) };
    for connections in [4, 20] {
        let bytes = LoadPlan { connections, ..plan(1, 1, Ending::KeepAlive) };
        let web = LoadPlan { exchange: web.clone(), ..bytes.clone() };
        // 20 responses in sequence; the first request comes after a round trip and a half.
        let whole = Duration::from_millis(30 + 20 * 10 + 10);
        let server = PeerServer::new(role.clone(), CloseMode::Second).with_pace(pace);
        let ran = run(bytes, server);
        assert_eq!(ran.client().record().elapsed(), whole, "{connections}");
        ran.assert_nothing_leaked();
        let server = HttpServer::new(FixedBody::new(10), Limits::default()).with_pace(pace);
        let ran = run(web, server);
        assert_eq!(ran.client().record().elapsed(), whole, "{connections}");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn pipelined_responses_each_take_work() {
    let pace = Pace { work: Duration::from_millis(10), ..Pace::default() };
    let role = Role::Respond { request: 1, answer: Bytes::from_static(b"a") };
    // Five requests in one segment.
    let plan = LoadPlan {
        connections: 1,
        until: StopCondition::Exchanges(1),
        ..plan(5, 5, Ending::KeepAlive)
    };
    let ran = run(plan, PeerServer::new(role, CloseMode::Second).with_pace(pace));
    assert_eq!(ran.client().record().elapsed(), Duration::from_millis(40 + 5 * 10));
}

#[test]
fn connections_leave_the_accept_queue_one_at_a_time() {
    for server in [Role::Echo, Role::Respond { request: 1, answer: Bytes::from_static(b"a") }] {
        let plan = LoadPlan { connections: 20, ..plan(1, 1, Ending::Client) };
        let server = PeerServer::new(server, CloseMode::Second).with_pace(SLOW_ACCEPT);
        let ran = run(plan, server);
        let record = ran.client().record();
        assert_eq!((record.answered(), record.opened), (20, 20));
        // All are open after a round trip; the last is accepted after 20 waits.
        assert!(record.phase(Phase::Connect).max() < 21_000_000);
        let last = record.phase(Phase::FirstByte).max() / 1_000_000;
        assert!((1_000..=1_020).contains(&last), "{last} ms");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn paced_web_server_accepts_one_connection_at_a_time() {
    let request = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: w\r\n\r\n");
    let plan = LoadPlan {
        connections: 20,
        exchange: Exchange { request, answer: ResponseEnd::Http(Expected::Body) },
        ..plan(1, 1, Ending::KeepAlive)
    };
    let server = HttpServer::new(FixedBody::new(10), Limits::default()).with_pace(SLOW_ACCEPT);
    let ran = run(plan, server);
    let record = ran.client().record();
    let last = record.phase(Phase::FirstByte).max() / 1_000_000;
    assert_eq!((record.answered(), record.opened), (20, 20));
    assert!((1_000..=1_020).contains(&last), "{last} ms");
    ran.assert_nothing_leaked();
}

#[test]
fn delayed_response_of_a_closed_connection_is_dropped() {
    let role = Role::Respond { request: 1, answer: Bytes::from_static(b"a") };
    let server = PeerServer::new(role, CloseMode::Second).with_pace(THINK);
    assert_each_run_is_answered(plan(1, 1, Ending::KeepAlive).exchange, server);

    let request = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: w\r\n\r\n");
    let exchange = Exchange { request, answer: ResponseEnd::Http(Expected::Body) };
    let server = HttpServer::new(FixedBody::new(10), Limits::default()).with_pace(THINK);
    assert_each_run_is_answered(exchange, server);
}

/// Two runs of 150 ms, in each of which a connection has one response. At the end of the first run,
/// the server delays another response. The connections of the second run take the places of those
/// of the first.
fn assert_each_run_is_answered<S: Model<Shard>>(exchange: Exchange, server: S) {
    let until = StopCondition::Elapsed(Duration::from_millis(150));
    let plan = LoadPlan { exchange, until, ..plan(1, 1, Ending::KeepAlive) };
    let client = Runs::new(plan, Repeat::times(2, Duration::ZERO));
    let ran = Ran::new("delay=10ms", client, server);
    let answered = ran.client().finished().iter().map(|run| run.record.answered());
    assert_eq!(answered.collect::<Vec<_>>(), [2, 2]);
    ran.assert_nothing_leaked();
}
