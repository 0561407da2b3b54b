//! The HTTP load against the HTTP server.

use std::time::Duration;

use whimbrel_apps::http::reply::Expected;
use whimbrel_apps::http::{CloseBy, Composition, FixedBody, HttpServer, Limits};
use whimbrel_apps::load::{
    Correction, Ending, Exchange, FastOpen, Load, LoadPlan, ResponseEnd, StopCondition,
};
use whimbrel_apps::record::Phase;
use whimbrel_apps::{ConnError, Pace, Part, Record};
use whimbrel_stack::Shard;

use crate::world::{NoServer, Ran, target};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn plan(ending: Ending, until: StopCondition) -> LoadPlan {
    let composition = Composition {
        method: "GET",
        target: "/",
        host: "server",
        fields: &[],
        body: b"",
        persistent: ending == Ending::KeepAlive,
    };
    LoadPlan {
        target: target(),
        destinations: Vec::new(),
        exchange: Exchange {
            request: composition.compose().unwrap(),
            answer: ResponseEnd::Http(Expected::Body),
        },
        connections: 4,
        until,
        rate: None,
        offset: Duration::ZERO,
        ending,
        timeout: 5 * SECOND,
        connect_timeout: 5 * SECOND,
        warmup: Duration::ZERO,
        interval: SECOND,
        correction: Correction::On,
        local: Vec::new(),
        fast_open: FastOpen::Off,
    }
}

type HttpRun = Ran<Load<Shard>, HttpServer<FixedBody>>;

fn run(links: &str, plan: LoadPlan) -> HttpRun {
    let close_by = match plan.ending {
        Ending::KeepAlive | Ending::Server => CloseBy::Server,
        Ending::Client | Ending::Reset => CloseBy::Client,
    };
    let limits = Limits { close_by, ..Limits::default() };
    Ran::new(links, Load::new(plan), HttpServer::new(FixedBody::new(1_000), limits))
}

fn millis(record: &Record, phase: Phase, quantile: f64) -> u64 {
    record.phase(phase).value_at_quantile(quantile) / 1_000_000
}

#[test]
fn kept_connections_take_one_round_trip_for_each_request() {
    let ran = run("delay=10ms", plan(Ending::KeepAlive, StopCondition::Exchanges(100)));
    let record = ran.client().record();
    assert_eq!((record.answered(), record.failed(), record.opened), (100, 0, 4));
    assert_eq!(record.statuses.iter().collect::<Vec<_>>(), [(&200, &100)]);
    assert_eq!(record.body, 100_000);
    assert_eq!(ran.server().statistics().requests, 100);
    assert_eq!(record.phase(Phase::Connect).len(), 4);
    assert_eq!(millis(record, Phase::Connect, 1.0), 20);
    assert_eq!(millis(record, Phase::FirstByte, 1.0), 20);
    // A round trip to open, and 25 for the requests of each connection.
    assert_eq!(record.elapsed(), Duration::from_millis(520));
    ran.assert_nothing_leaked();
}

#[test]
fn connection_for_each_request_closes_as_set_and_is_timed() {
    for ending in [Ending::Server, Ending::Client, Ending::Reset] {
        let ran = run("delay=10ms", plan(ending, StopCondition::Exchanges(40)));
        let record = ran.client().record();
        assert_eq!((record.answered(), record.failed(), record.unclean), (40, 0, 0), "{ending:?}");
        assert_eq!(record.opened, 40);
        let [client, server] =
            [ran.pair.client, ran.pair.server].map(|host| ran.pair.world.host(host).0);
        let waits = [client, server].map(|shard| shard.counters().time_wait);
        match ending {
            Ending::Server => assert!(waits[0] == 0 && waits[1] >= 36, "{waits:?}"),
            Ending::Client => assert!(waits[0] >= 36 && waits[1] == 0, "{waits:?}"),
            _ => assert_eq!((waits, client.counters().out_rsts), ([0, 0], 40)),
        }
        let close = record.phase(Phase::Close);
        if ending == Ending::Client {
            assert_eq!(close.max() / 1_000_000, 20, "FIN there, FIN back");
        }
        ran.assert_nothing_leaked();
    }
}

#[test]
fn requests_at_a_rate_fall_due_evenly() {
    let at_rate = LoadPlan {
        rate: Some(100.0),
        ..plan(Ending::KeepAlive, StopCondition::Elapsed(5 * SECOND))
    };
    let ran = run("delay=1ms", at_rate);
    let record = ran.client().record();
    assert_eq!((record.answered() + ran.client().close().in_flight, record.failed()), (500, 0));
    let spread = record.intervals.spread(record.elapsed()).unwrap();
    assert!(spread.min >= 98.0 && spread.max <= 101.0, "{spread:?}");
    assert_eq!(ran.client().close().never_begun, 0);
}

#[test]
fn parts_of_a_load_add_up() {
    let whole = LoadPlan {
        rate: Some(90.0),
        ..plan(Ending::KeepAlive, StopCondition::Elapsed(5 * SECOND))
    };
    let mut sum = Record::new(SECOND);
    let (mut in_flight, mut never_begun) = (0, 0);
    for number in 0..3 {
        let part = whole.part(Part { number, of: 3 });
        assert_eq!(part.connections, if number == 0 { 2 } else { 1 });
        let ran = run("delay=1ms", part);
        let first = ran.client().record().intervals.counts()[0];
        assert_eq!(first.exchanges, 30);
        sum += ran.client().record();
        in_flight += ran.client().close().in_flight;
        never_begun += ran.client().close().never_begun;
    }
    assert_eq!((sum.answered() + in_flight, sum.elapsed()), (450, 5 * SECOND));
    assert_eq!(sum.corrected.len(), sum.answered() + in_flight + never_begun);
    let counted =
        plan(Ending::KeepAlive, StopCondition::Exchanges(100)).part(Part { number: 2, of: 3 });
    assert_eq!(counted.until, StopCondition::Exchanges(33));
}

#[test]
fn corrected_latency_counts_exchanges_delayed_by_a_stall() {
    // One connection with a round trip of 100 ms answers 10 a second of the 20 that fall due.
    let at_rate = LoadPlan {
        rate: Some(20.0),
        connections: 1,
        ..plan(Ending::KeepAlive, StopCondition::Elapsed(10 * SECOND))
    };
    let ran = run("delay=50ms", at_rate);
    let record = ran.client().record();
    assert_eq!(record.service.value_at_quantile(0.5) / 1_000_000, 100);
    let worst = record.corrected.max();
    assert!((4_900_000_000..5_200_000_000).contains(&worst), "{worst}");
    let close = ran.client().close();
    assert_eq!(record.answered() + close.in_flight + close.never_begun, 200);
    // The unanswered half counts, except for three: the first and fastest took two round trips, and
    // these had waited for less.
    assert_eq!(record.corrected.len(), 197);
}

#[test]
fn server_that_stalls_to_the_end_was_waited_for_until_then() {
    let stalls = Pace { think: 3_600 * SECOND, ..Pace::default() };
    for (correction, waits) in [(Correction::On, 200), (Correction::Off, 0)] {
        let at_rate = LoadPlan {
            rate: Some(20.0),
            warmup: SECOND,
            timeout: 60 * SECOND,
            correction,
            ..plan(Ending::KeepAlive, StopCondition::Elapsed(10 * SECOND))
        };
        let server = HttpServer::new(FixedBody::new(10), Limits::default()).with_pace(stalls);
        let ran = Ran::new("delay=10ms", Load::new(at_rate), server);
        let record = ran.client().record();
        assert_eq!((record.answered(), record.service.len()), (0, 0));
        // All of them but those of the warm-up: from none to ten seconds.
        assert_eq!(record.corrected.len(), waits);
        let [half, all] = [0.5, 1.0].map(|at| record.corrected.value_at_quantile(at) / 1_000_000);
        let expected = if waits == 0 { (0..=0, 0..=0) } else { (4_900..=5_100, 9_900..=10_100) };
        assert!(expected.0.contains(&half) && expected.1.contains(&all), "{half} and {all} ms");
    }
}

#[test]
fn cut_off_exchanges_do_not_lower_the_latency() {
    let at_rate = LoadPlan {
        rate: Some(100.0),
        connections: 20,
        ..plan(Ending::KeepAlive, StopCondition::Elapsed(SECOND))
    };
    let ran = run("delay=50ms", at_rate);
    assert!(ran.client().close().in_flight > 0);
    let fastest = ran.client().record().corrected.min() / 1_000_000;
    assert!(fastest >= 99, "{fastest} ms");
}

#[test]
fn warm_up_is_made_and_not_measured() {
    let warm =
        LoadPlan { warmup: SECOND, ..plan(Ending::KeepAlive, StopCondition::Elapsed(SECOND)) };
    let ran = run("delay=10ms", warm);
    let record = ran.client().record();
    assert_eq!(record.elapsed(), SECOND);
    assert!((196..=200).contains(&record.answered()), "{}", record.answered());
    assert!(ran.server().statistics().requests > 380);
}

#[test]
fn server_that_is_not_there_ends_the_load_at_once() {
    let client = Load::new(LoadPlan {
        target: whimbrel_wire::Endpoint { port: 81, ..target() },
        ..plan(Ending::KeepAlive, StopCondition::Elapsed(60 * SECOND))
    });
    let ran = Ran::new("delay=10ms", client, NoServer);
    let record = ran.client().record();
    assert_eq!(record.answered(), 0);
    assert_eq!(record.conn_errors.keys().collect::<Vec<_>>(), [&ConnError::Refused]);
    assert!(record.elapsed() < SECOND, "{:?}", record.elapsed());
}

#[test]
fn silent_server_causes_a_timeout() {
    let quick =
        LoadPlan { timeout: SECOND, ..plan(Ending::KeepAlive, StopCondition::Exchanges(4)) };
    let ran = Ran::new("delay=10ms", Load::new(quick), NoServer);
    let conn_errors = &ran.client().record().conn_errors;
    assert_eq!(conn_errors.iter().collect::<Vec<_>>(), [(&ConnError::ResponseTimeout, &4)]);
}

#[test]
fn same_seed_gives_the_same_run_over_a_bad_link() {
    let record = || {
        let lossy = "rate=5M,delay=20ms,jitter=5ms,loss=2%,reorder=1%,dup=1%";
        let ran = run(lossy, plan(Ending::Server, StopCondition::Exchanges(200)));
        let record = ran.client().record();
        assert_eq!((record.answered(), record.failed()), (200, 0));
        (record.elapsed(), record.service.max(), record.phase(Phase::Connect).max())
    };
    assert_eq!(record(), record());
}
