//! A stack of several shards: connections spread over them, listeners hear all of them, and what they
//! tell adds up.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::cc::{Ack, CongestionControl, Loss, Timeout, Window};
use whimbrel::{LinkConfig, Stack, TcpListener, TcpSocket, TcpStream, mem_wire};
use whimbrel_tcp::conn::State;

use crate::world::{SERVER, World, builder, until};

/// The shard, of so many, that a connection from this port to the server's is at, at either end.
fn shard_of(port: u16, shards: usize) -> usize {
    usize::from((port ^ 7) >> 1) % shards
}

/// A connection from this port of the client's.
async fn connect_from(client: &Stack, port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4(client).unwrap();
    socket.bind(SocketAddr::from(([10, 0, 0, 2], port))).unwrap();
    socket.connect(SERVER.parse().unwrap()).await.unwrap()
}

/// Echoes a byte.
async fn talk(one: &mut TcpStream, other: &mut TcpStream) {
    one.write_u8(7).await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), 7);
    other.write_u8(8).await.unwrap();
    assert_eq!(one.read_u8().await.unwrap(), 8);
}

#[tokio::test]
async fn connections_spread_over_shards_and_counters_add_up() {
    for (server, client) in [(2, 2), (4, 2), (1, 3)] {
        let world = World::of_shards(server, client);
        assert_eq!((world.server.shards(), world.client.shards()), (server.into(), client.into()));
        let listener = world.listener().await;
        let mut streams = Vec::new();
        let mut at_shard = vec![0; client.into()];
        for _ in 0..24 {
            let (connected, accepted) =
                tokio::join!(TcpStream::connect(&world.client, SERVER), listener.accept());
            let (mut connected, mut accepted) = (connected.unwrap(), accepted.unwrap().0);
            talk(&mut connected, &mut accepted).await;
            at_shard[shard_of(connected.local_addr().unwrap().port(), client.into())] += 1;
            assert_eq!(accepted.tcp_info().await.unwrap().state, State::Established);
            streams.extend([connected, accepted]);
        }
        assert_eq!(at_shard, vec![24 / usize::from(client); client.into()], "each its turn");
        let stats = listener.stats().await.unwrap();
        assert_eq!((stats.accepted, stats.backlog), (24, 1_024 * u32::from(server)));
        let census = [&world.server, &world.client].map(Stack::census);
        for (census, listeners) in census.into_iter().zip([server, 0]) {
            let census = census.await.unwrap();
            assert_eq!((census.streams, census.shards.connections), (24, 24));
            assert_eq!(census.listeners, usize::from(listeners));
        }
        assert_eq!(world.client.counters().await.unwrap().active_opens, 24);
        assert_eq!(world.server.counters().await.unwrap().passive_opens, 24);
        drop((streams, listener));
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn no_shard_waits_for_the_connections_of_another() {
    for shards in [2, 4] {
        let world = World::of_shards(shards, 1);
        let listener = world.listener().await;
        let shards = usize::from(shards);
        // Many wait at shard 0 before the first comes to each of the others.
        let from = |shard: usize| (20_000..).filter(move |port| shard_of(*port, shards) == shard);
        let mut streams = Vec::new();
        for port in from(0).take(60) {
            streams.push(connect_from(&world.client, port).await);
        }
        for port in (1..shards).flat_map(|shard| from(shard).take(3)) {
            streams.push(connect_from(&world.client, port).await);
        }
        let waiting = streams.len();
        until("all wait", async || listener.stats().await.unwrap().waiting == waiting).await;
        let mut taken = vec![0; shards];
        for _ in 0..3 * shards {
            let (_, peer) = listener.accept().await.unwrap();
            taken[shard_of(peer.port(), shards)] += 1;
        }
        assert_eq!(taken, vec![3; shards], "three of each, in turn");
        for _ in 3 * shards..waiting {
            let (_, peer) = listener.accept().await.unwrap();
            assert_eq!(shard_of(peer.port(), shards), 0);
        }
        drop((streams, listener));
        world.assert_empty().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_tasks_wake_for_connections_of_any_shard() {
    let world = World::of_shards(4, 1);
    let listener = Arc::new(world.listener().await);
    // One that gave up is not missed.
    let gave_up = tokio::time::timeout(std::time::Duration::from_millis(5), listener.accept());
    assert!(gave_up.await.is_err());
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let listener = Arc::clone(&listener);
            tokio::spawn(async move { listener.accept().await.unwrap().1.port() })
        })
        .collect();
    let mut streams = Vec::new();
    for port in 30_000..30_008 {
        streams.push(connect_from(&world.client, port).await);
    }
    let mut heard = Vec::new();
    for task in tasks {
        heard.push(task.await.unwrap());
    }
    heard.sort_unstable();
    assert_eq!(heard, (30_000..30_008).collect::<Vec<_>>());
    drop((streams, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn connect_uses_another_shard_if_ports_run_out() {
    let (server, client) = mem_wire(Default::default(), Default::default(), 7).unwrap();
    let server = builder().mem(server).address("10.0.0.1", 24).unwrap();
    let client = builder().mem(client).shards(2).address("10.0.0.2", 24).unwrap();
    let client = client.set("ports.first", "50000").unwrap().set("ports.last", "50003").unwrap();
    let world = World { server: server.build().unwrap(), client: client.build().unwrap() };
    let listener = world.listener().await;
    // Two of the four ports lead to each shard, and one of those is taken twice in a row.
    let first = TcpStream::connect(&world.client, SERVER).await.unwrap();
    let mut held = vec![first];
    while held.len() < 4 {
        held.push(TcpStream::connect(&world.client, SERVER).await.unwrap());
        // The next one begins at the other shard each time.
        let _ = TcpStream::connect(&world.client, "192.0.2.1:7").await.unwrap_err();
    }
    let error = TcpStream::connect(&world.client, SERVER).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    let figures = "from 50000 to 50003 4 are in use and 0 wait in TIME-WAIT; widen \
                   net.ipv4.ip_local_port_range";
    assert!(error.to_string().contains(figures), "of both shards: {error}");
    drop((held, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn a_tunable_changes_at_every_shard_of_a_stack_that_runs() {
    let world = World::of_shards(2, 2);
    let listener = world.listener().await;
    // The server closes first: TIME-WAITs at both of its shards.
    for port in [20_000, 20_002, 20_004, 20_006] {
        let mut connected = connect_from(&world.client, port).await;
        drop(listener.accept().await.unwrap());
        assert_eq!(connected.read(&mut [0; 8]).await.unwrap(), 0);
    }
    until("all wait", async || world.server.census().await.unwrap().shards.time_wait == 4).await;
    for which in 0..2 {
        let census = world.server.inspect(which, |shard| shard.census()).await.unwrap();
        assert_eq!(census.time_wait, 2);
    }
    for (name, value, part) in [
        ("msl.link", "300s", "give "),
        ("no.such", "1", "no.such"),
        ("isn", "host-wide", "cannot be changed while the host runs"),
    ] {
        let error = world.server.set_tunable(name, value).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(part), "{error}");
    }
    world.server.set_tunable("msl", "1ms").await.unwrap();
    until("none waits", async || world.server.census().await.unwrap().shards.time_wait == 0).await;
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_shard_that_panics_ends_the_stack_and_everybody_is_told() {
    let is_armed = Arc::new(AtomicBool::new(false));
    let (server, client) = mem_wire(LinkConfig::default(), LinkConfig::default(), 7).unwrap();
    let server = builder().mem(server).address("10.0.0.1", 24).unwrap();
    let client = builder().mem(client).shards(3).address("10.0.0.2", 24).unwrap();
    let make = {
        let is_armed = Arc::clone(&is_armed);
        move || Fatal(Arc::clone(&is_armed))
    };
    let client = client.add_congestion_control("fatal", make).unwrap();
    let client = client.tcp_congestion("fatal").unwrap();
    let world = World { server: server.build().unwrap(), client: client.build().unwrap() };
    let listener = world.listener().await;
    let mut streams = Vec::new();
    for _ in 0..6 {
        streams.push(TcpStream::connect(&world.client, SERVER).await.unwrap());
        streams.push(listener.accept().await.unwrap().0);
    }
    let waiting = TcpListener::bind(&world.client, "10.0.0.2:7").await.unwrap();
    let waiting = tokio::spawn(async move { waiting.accept().await });
    is_armed.store(true, Ordering::SeqCst);
    streams[0].write_all(b"!").await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("a worker of it stopped"), "{error}");
    for stream in streams.iter_mut().skip(2).step_by(2) {
        let error = stream.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
    }
    let error = TcpStream::connect(&world.client, SERVER).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}

/// A congestion control that panics at an acknowledgment once it is armed.
#[derive(Debug)]
struct Fatal(Arc<AtomicBool>);

impl CongestionControl for Fatal {
    fn begin(&mut self, window: &mut Window, mss: u32) {
        window.cwnd = 4 * mss;
    }

    fn on_ack(&mut self, _: &mut Window, _: &Ack) {
        assert!(!self.0.load(Ordering::SeqCst), "a shard that panics, as asked");
    }

    fn on_loss_event(&mut self, _: &mut Window, _: &Loss) {}

    fn on_rto(&mut self, _: &mut Window, _: &Timeout) {}
}

#[test]
fn a_number_of_shards_that_cannot_be_is_refused_with_what_can() {
    let build = |wire: &str, shards| {
        let wire = wire.parse().unwrap();
        Stack::builder().wire(wire).shards(shards).build().map(drop).unwrap_err().to_string()
    };
    let unix = "unix:/nowhere/whimbrel-no-such-wire,addr=10.0.0.1/24";
    assert!(build(unix, 0).contains("0 shards: give 1 to 256"));
    assert!(build(unix, 2).contains("this wire has one"));
    let tun = build("tun:whim0,addr=10.9.0.2/24,queues=3", 2);
    assert!(tun.contains("the wire has 3 queues"), "{tun}");
}
