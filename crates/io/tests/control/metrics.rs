//! Metrics, and their server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use whimbrel_io::Inspect;
use whimbrel_io::control::ControlHost;
use whimbrel_io::metrics::{MetricsServer, text};

use crate::world::{Control, World, wait_until};

fn host(world: &World) -> ControlHost {
    let shards = world.server.iter().map(|it| Arc::new(it.clone()) as Arc<dyn Inspect>);
    ControlHost::new(shards.collect())
}

/// The value behind a name with its labels.
fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn metrics_equal_the_counters() {
    let world = World::new();
    world.connect(40);
    let text = text(&[host(&world)]).expect("it answers");
    let counters = Control::new(&world.path()).ask("counters", json!({}));
    let counters = counters["result"]["counters"].as_object().expect("counters");
    let mut compared = 0;
    for (name, count) in counters {
        let groups = ["TcpExt", "Tcp", "Udp", "IpExt", "Ip", "Icmp", "Whimbrel"];
        let group = groups.iter().find(|group| name.starts_with(*group)).expect("a group");
        let rest = &name[group.len()..];
        let metric = value(&text, &format!("whimbrel_netstat_{group}_{rest}_total"));
        assert_eq!(metric, count.as_f64(), "{name}");
        compared += 1;
    }
    assert!(compared > 100, "{compared} counters");
    assert_eq!(value(&text, "whimbrel_netstat_Tcp_CurrEstab"), Some(40.0));
    assert_eq!(value(&text, "whimbrel_sockets{state=\"ESTABLISHED\"}"), Some(40.0));
    assert_eq!(value(&text, "whimbrel_accept_queue_limit"), Some(8_192.0));
    assert!(value(&text, "whimbrel_memory_held_bytes").expect("a gauge") > 0.0);
    assert_eq!(value(&text, "whimbrel_rtt_seconds_count"), Some(40.0));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn each_name_is_described_once() {
    let world = World::new();
    let hosts = [
        ControlHost::named("client", vec![Arc::new(world.client.clone()) as Arc<dyn Inspect>]),
        ControlHost::named("server", vec![Arc::new(world.server[0].clone()) as Arc<dyn Inspect>]),
    ];
    let text = text(&hosts).expect("they answer");
    let mut described: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let count = described.len();
    described.sort_unstable();
    described.dedup();
    assert_eq!(described.len(), count);
    for host in ["client", "server"] {
        let name = format!("whimbrel_netstat_Tcp_ActiveOpens_total{{host=\"{host}\"}}");
        assert_eq!(value(&text, &name), Some(0.0));
    }
}

/// The answer to a request.
fn ask(server: &MetricsServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.at()).expect("served");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
    stream.write_all(request.as_bytes()).expect("a stream");
    let mut answer = String::new();
    let _end_or_reset = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn server_answers_get_of_metrics_and_nothing_else() {
    let world = World::new();
    let at = "127.0.0.1:0".parse().expect("an address");
    let server = MetricsServer::start(at, vec![host(&world)]).expect("a free port");
    let accept = "accept: text/html;q=0.1, application/openmetrics-text;version=1.0.0\r\n";
    let answer = ask(&server, &format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{accept}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
    assert!(answer.contains("# TYPE whimbrel_netstat_Tcp_InSegs counter\n"));
    assert!(answer.ends_with("# EOF\n"));
    let answer = ask(&server, "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
    assert!(answer.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(answer.contains("# TYPE whimbrel_netstat_Tcp_InSegs_total counter\n"));
    assert!(!answer.contains("# EOF"));
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("\r\n\r\n", "405"),
    ] {
        let answer = ask(&server, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
    let answer = ask(&server, &"x".repeat(20_000));
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn fifth_scrape_is_refused_while_four_run() {
    let world = World::new();
    let at = "127.0.0.1:0".parse().expect("an address");
    let server = MetricsServer::start(at, vec![host(&world)]).expect("a free port");
    // A shard that is held up keeps scrapes waiting.
    let (release, held) = std::sync::mpsc::channel::<()>();
    world.server[0].inspect(Box::new(move |_| assert!(held.recv().is_err())));
    std::thread::scope(|scope| {
        let request = "GET /metrics HTTP/1.1\r\n\r\n";
        let scrapes: Vec<_> = (0..5).map(|_| scope.spawn(|| ask(&server, request))).collect();
        wait_until(|| scrapes.iter().any(|it| it.is_finished()));
        drop(release);
        let answers: Vec<_> = scrapes.into_iter().map(|it| it.join().expect("no panic")).collect();
        let of = |status| answers.iter().filter(|it| it.starts_with(status)).count();
        assert_eq!((of("HTTP/1.1 200 "), of("HTTP/1.1 503 ")), (4, 1), "{answers:?}");
    });
}

#[test]
fn silent_scrapers_keep_no_other_out_and_are_told_so() {
    let world = World::new();
    let at = "127.0.0.1:0".parse().expect("an address");
    let server = MetricsServer::start(at, vec![host(&world)]).expect("a free port");
    let mut silent: Vec<_> =
        (0..50).map(|_| TcpStream::connect(server.at()).expect("served")).collect();
    let answer = ask(&server, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut told = String::new();
    silent[0].set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
    silent[0].read_to_string(&mut told).expect("an answer");
    assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
}

#[test]
fn address_in_use_is_named() {
    let world = World::new();
    let at = "127.0.0.1:0".parse().expect("an address");
    let server = MetricsServer::start(at, vec![host(&world)]).expect("a free port");
    let error = MetricsServer::start(server.at(), vec![host(&world)]).expect_err("in use");
    assert!(error.to_string().contains("use another port"), "{error}");
}
