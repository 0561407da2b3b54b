//! Errors of streams: the kind that tokio's users expect, and the name of the limit.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{TcpListener, TcpSocket, TcpStream, mem_wire};

use crate::scratch::scratch;
use crate::world::{SERVER, World, builder, until};

#[tokio::test]
async fn refused_timed_out_and_unreachable_are_told_apart() {
    let world = World::new();
    let expected = [
        (SERVER, ErrorKind::ConnectionRefused, "connection refused after 1 SYN in 0."),
        (SERVER, ErrorKind::ConnectionRefused, "no listener at 10.0.0.1:7"),
        ("192.0.2.1:7", ErrorKind::NetworkUnreachable, "no route to 192.0.2.1:7"),
        ("10.0.0.2:7", ErrorKind::ConnectionRefused, "no listener at 10.0.0.2:7"),
        ("224.0.0.1:7", ErrorKind::InvalidInput, "unicast"),
    ];
    for (addr, kind, part) in expected {
        let error = TcpStream::connect(&world.client, addr).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(format!("{error:?}").contains(part), "{error:?}");
    }
    world.assert_empty().await;

    let lossy = World::with(
        "loss=100%",
        &[("net.ipv4.tcp_syn_retries", "0"), ("initial_rto", "50ms"), ("min_rto", "50ms")],
    );
    let error = TcpStream::connect(&lossy.client, SERVER).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("answered none of 1 SYN in 0."), "{error}");
    lossy.assert_empty().await;
}

#[tokio::test]
async fn limits_are_named_when_they_are_hit() {
    let rules = [("ports.first", "50000"), ("ports.last", "50001"), ("max_connections", "3")];
    let world = World::with("delay=0ms", &rules);
    let listener = world.listener().await;
    let other = TcpListener::bind(&world.server, "10.0.0.1:8").await.unwrap();
    let first = TcpStream::connect(&world.client, SERVER).await.unwrap();
    let second = TcpStream::connect(&world.client, SERVER).await.unwrap();
    let error = TcpStream::connect(&world.client, SERVER).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    let figures = "towards 10.0.0.1:7: from 50000 to 50001 2 are in use and 0 wait in TIME-WAIT; widen \
                   net.ipv4.ip_local_port_range";
    assert!(error.to_string().contains(figures), "{error}");

    let third = TcpStream::connect(&world.client, "10.0.0.1:8").await.unwrap();
    let error = TcpStream::connect(&world.client, "10.0.0.1:8").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    assert!(error.to_string().contains("the limit is 3; raise max_connections"), "{error}");

    let error = TcpListener::bind(&world.server, SERVER).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let error = TcpListener::bind(&world.server, "10.0.0.9:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    drop((first, second, third, listener, other));
    world.assert_empty().await;
}

#[tokio::test]
async fn socket_bound_without_port_shares_port_among_peers() {
    let one_port = [("ports.first", "50000"), ("ports.last", "50000")];
    let world = World::with("delay=0ms", &one_port);
    let listener = world.listener().await;
    let other = TcpListener::bind(&world.server, "10.0.0.1:8").await.unwrap();
    let socket = |no_port: bool| {
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        socket.set_bind_address_no_port(no_port).unwrap();
        assert_eq!(socket.bind_address_no_port().unwrap(), no_port);
        socket.bind("10.0.0.2:0".parse().unwrap()).map(|()| socket)
    };
    let mut held = Vec::new();
    for peer in [SERVER, "10.0.0.1:8"] {
        let socket = socket(true).unwrap();
        assert_eq!(socket.local_addr().unwrap(), "10.0.0.2:0".parse().unwrap());
        let again = socket.bind("10.0.0.2:9".parse().unwrap()).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::InvalidInput);
        let client = socket.connect(peer.parse().unwrap()).await.unwrap();
        assert_eq!(client.local_addr().unwrap(), "10.0.0.2:50000".parse().unwrap());
        held.push(client);
    }
    let error = socket(true).unwrap().connect(SERVER.parse().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("50000 to 50000 1 are in use"), "{error}");
    // With a port at once, the first has the only one.
    let first = socket(false).unwrap();
    assert_eq!(first.local_addr().unwrap().port(), 50_000);
    assert_eq!(socket(false).unwrap_err().kind(), ErrorKind::AddrInUse);
    let foreign = TcpSocket::new_v4(&world.client).unwrap();
    foreign.set_bind_address_no_port(true).unwrap();
    let error = foreign.bind("10.0.0.1:0".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    drop((held, first, listener, other));
    world.assert_empty().await;
}

#[tokio::test]
async fn connections_use_source_pool_in_turn_on_any_shard() {
    let build = |pool: &[&str]| {
        let (server, client) = mem_wire(Default::default(), Default::default(), 7).unwrap();
        let server = builder().mem(server).address("10.0.0.1", 24).unwrap();
        let client = builder().mem(client).shards(2).address("10.0.0.2", 24).unwrap();
        let client = client.address("10.0.0.3", 24).unwrap().source_pool(pool).unwrap();
        let client =
            client.set("ports.first", "50000").unwrap().set("ports.last", "50003").unwrap();
        (server.build().unwrap(), client.build())
    };
    let error = build(&["10.0.0.2", "10.0.0.1"]).1.unwrap_err().to_string();
    assert!(error.starts_with("10.0.0.1 is not an address of this host"), "{error}");
    let (server, client) = build(&["10.0.0.2", "10.0.0.3"]);
    let world = World { server, client: client.unwrap() };
    let listener = world.listener().await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(TcpStream::connect(&world.client, SERVER).await.unwrap());
    }
    let mut ends: Vec<_> = held.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
    ends.sort_unstable();
    let all = |addr: u8| (50_000..50_004).map(move |port| format!("10.0.0.{addr}:{port}"));
    assert_eq!(ends, all(2).chain(all(3)).collect::<Vec<_>>());
    let error = TcpStream::connect(&world.client, SERVER).await.unwrap_err();
    assert!(error.to_string().contains("8 are in use and 0 wait"), "{error}");
    drop((held, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn refusing_time_wait_is_reported_apart_from_silence() {
    let lwip = [("tw.syn", "never"), ("tw.rst", "ignore")];
    let impatient =
        [("net.ipv4.tcp_syn_retries", "2"), ("initial_rto", "50ms"), ("min_rto", "50ms")];
    let world = World::between("delay=1ms", &lwip, &impatient);
    let listener = world.listener().await;
    let connect = || {
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        socket.bind("10.0.0.2:4000".parse().unwrap()).unwrap();
        socket.connect(SERVER.parse().unwrap())
    };
    let (connected, accepted) = tokio::join!(connect(), listener.accept());
    // The server closes first, and is in TIME-WAIT.
    drop(accepted.unwrap());
    let mut connected = connected.unwrap();
    assert_eq!(connected.read(&mut [0; 8]).await.unwrap(), 0);
    drop(connected);
    until("the server is in TIME-WAIT", async || {
        world.server.census().await.unwrap().shards.time_wait == 1
            && world.client.census().await.unwrap().shards.flows == 0
    })
    .await;
    let error = connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let text = error.to_string();
    assert!(text.contains("10.0.0.1:7 answered ") && text.contains(" SYNs in "), "{text}");
    assert!(text.contains("which it keeps in TIME-WAIT"), "{text}");
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_full_backlog_keeps_clients_out_and_is_counted() {
    let world = World::with(
        "delay=0ms",
        &[("net.ipv4.tcp_syn_retries", "0"), ("initial_rto", "50ms"), ("min_rto", "50ms")],
    );
    let socket = TcpSocket::new_v4(&world.server).unwrap();
    socket.bind(SERVER.parse().unwrap()).unwrap();
    let listener = socket.listen(4).unwrap();
    let mut clients = Vec::new();
    let refused = loop {
        match TcpStream::connect(&world.client, SERVER).await {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
        // One at a time: the face has taken it before the next one comes.
        until("it waits", async || listener.stats().await.unwrap().waiting == clients.len()).await;
    };
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert!(refused.to_string().contains("its backlog is full"), "{refused}");
    assert_eq!(clients.len(), 5, "the backlog, and one more, as on Linux");
    let stats = listener.stats().await.unwrap();
    assert_eq!((stats.waiting, stats.backlog, stats.accepted), (5, 4, 5));
    assert!(stats.overflows > 0);

    // Each that is taken makes room for another.
    for _ in 0..5 {
        drop(listener.accept().await.unwrap());
    }
    clients.push(TcpStream::connect(&world.client, SERVER).await.unwrap());
    assert_eq!(listener.accept().await.unwrap().1, clients[5].local_addr().unwrap());
    drop((clients, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn a_reset_is_told_once_after_what_arrived_before_it() {
    let world = World::new();
    let (mut server, mut client) = world.connection().await;
    client.write_all(b"last words").await.unwrap();
    server.readable().await.unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    let mut words = [0; 10];
    server.read_exact(&mut words).await.unwrap();
    assert_eq!(&words, b"last words");
    let error = server.read(&mut words).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(error.to_string().contains("10.0.0.2"), "{error}");
    assert_eq!(server.read(&mut words).await.unwrap(), 0);
    assert_eq!(server.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(server.take_error().unwrap().is_none());
    drop(server);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_reset_that_meets_our_fin_is_told_and_the_end_stays_the_end() {
    let world = World::with("delay=50ms", &[]);
    let (mut server, mut client) = world.connection().await;
    server.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    client.shutdown().await.unwrap();
    server.set_zero_linger().unwrap();
    drop(server);
    client.ready(tokio::io::Interest::ERROR).await.unwrap();
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    let error = client.take_error().unwrap().expect("it was reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(client.take_error().unwrap().is_none(), "once");
    drop(client);
    world.assert_empty().await;
}

#[tokio::test]
async fn what_was_not_read_resets_the_peer_when_the_stream_is_dropped() {
    let world = World::new();
    let (server, mut client) = world.connection().await;
    client.write_all(b"unread").await.unwrap();
    server.readable().await.unwrap();
    drop(server);
    let error = client.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    drop(client);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_port_is_free_again_as_soon_as_its_holder_is_gone() {
    let world = World::new();
    for _ in 0..20 {
        let listener = world.listener().await;
        let client = TcpStream::connect(&world.client, SERVER).await.unwrap();
        drop((listener.accept().await.unwrap(), client, listener));
    }
    let sockets = [TcpSocket::new_v4(&world.client), TcpSocket::new_v4(&world.client)];
    let [first, second] = sockets.map(Result::unwrap);
    first.bind("10.0.0.2:99".parse().unwrap()).unwrap();
    assert_eq!(
        second.bind("0.0.0.0:99".parse().unwrap()).unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
    assert_eq!(
        second.bind("[::]:99".parse().unwrap()).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    drop(first);
    second.bind("0.0.0.0:99".parse().unwrap()).unwrap();
    world.assert_empty().await;
}

#[tokio::test]
async fn when_the_wire_is_lost_everybody_is_told_why() {
    let folder = scratch("wire");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("wire");
    let stack = |addr: &str| {
        let wire = format!("unix:{},addr={addr}/24", path.display()).parse().unwrap();
        builder().wire(wire).build().unwrap()
    };
    // The first keeps the wire; the second fails.
    let (server, client) = (stack("10.0.0.1"), stack("10.0.0.2"));
    let listener = TcpListener::bind(&server, SERVER).await.unwrap();
    let (connected, accepted) =
        tokio::join!(TcpStream::connect(&client, SERVER), listener.accept());
    let (mut connected, mut accepted) = (connected.unwrap(), accepted.unwrap().0);
    connected.write_all(b"whimbrel").await.unwrap();
    accepted.read_exact(&mut [0; 8]).await.unwrap();
    let waiting = TcpListener::bind(&client, "10.0.0.2:7").await.unwrap();
    let waiting = tokio::spawn(async move { waiting.accept().await });

    accepted.set_zero_linger().unwrap();
    drop((accepted, listener, server));
    assert_eq!(connected.read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    assert!(error.to_string().contains("the device is lost"), "{error}");
    assert_eq!(connected.read(&mut [0; 8]).await.unwrap(), 0);
    // Nothing that is asked of it from now on waits for ever.
    let late = [
        TcpStream::connect(&client, SERVER).await.map(drop),
        client.census().await.map(drop),
        client.wait_drained().await,
        connected.tcp_info().await.map(drop),
    ];
    for result in late {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotConnected);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
