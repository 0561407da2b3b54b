//! Connections to any destination: the peer sees the decision, and none waits for another connection's
//! decision.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use futures_core::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use whimbrel::{
    AnyListener, Incoming, LinkConfig, Route, Stack, TcpListener, TcpSocket, TcpStream,
    Unreachable, mem_wire,
};

use crate::world::{assert_empties, builder, text, until};

/// A gateway that speaks for everybody, and a client whose routes lead there; on so many shards each.
pub(crate) struct Dialled {
    pub(crate) gateway: Stack,
    pub(crate) client: Stack,
}

impl Dialled {
    pub(crate) fn of_shards(shards: u16) -> Self {
        Self::with_limit(shards, 64)
    }

    /// With this limit of undecided dials to one destination.
    fn with_limit(shards: u16, dials: u16) -> Self {
        let (outer, inner) = mem_wire(LinkConfig::default(), LinkConfig::default(), 3).unwrap();
        let host = |end, v4, v6| {
            let builder = builder().mem(end).shards(shards).address(v4, 24).unwrap();
            let builder = builder.set("net.ipv4.tcp_fin_timeout", "3s").unwrap();
            builder.address(v6, 64).unwrap().route(route("0.0.0.0")).route(route("::"))
        };
        let gateway = host(outer, "10.0.0.1", "fd00::1").any_address();
        let gateway = gateway.set("max_dials_per_destination", &dials.to_string()).unwrap();
        let gateway = gateway.build().unwrap();
        Self { gateway, client: host(inner, "10.0.0.2", "fd00::2").build().unwrap() }
    }

    fn listen(&self) -> AnyListener {
        TcpListener::bind_any(&self.gateway).unwrap()
    }

    pub(crate) async fn assert_empty(&self) {
        assert_empties(&self.gateway).await;
        assert_empties(&self.client).await;
    }
}

fn route(network: &str) -> Route {
    Route::new(network.parse().unwrap(), 0)
}

/// Returns the results of `dials` and of the task that decides.
async fn asked<T>(
    listener: &AnyListener,
    dials: impl Future<Output = T>,
    decide: impl AsyncFnOnce(Incoming),
) -> T {
    let (done, ()) = tokio::join!(dials, async { decide(listener.next().await.unwrap()).await });
    done
}

#[tokio::test]
async fn bytes_are_equal_to_and_from_addresses_that_exist_nowhere() {
    for shards in [1, 3] {
        let world = Dialled::of_shards(shards);
        let listener = world.listen();
        let serving = tokio::spawn(async move {
            while let Ok(incoming) = listener.next().await {
                tokio::spawn(echo(incoming));
            }
        });
        let sent = text(300_000);
        let to = ["192.0.2.7:80", "[2001:db8::7]:443", "203.0.113.99:65535"];
        let dials = (0..12).map(|dial| {
            let (client, sent) = (world.client.clone(), sent.clone());
            tokio::spawn(async move {
                let to: SocketAddr = to[dial % to.len()].parse().unwrap();
                let stream = TcpStream::connect(&client, to).await.unwrap();
                assert_eq!(stream.peer_addr().unwrap(), to);
                let (mut read, mut write) = stream.into_split();
                let mut received = Vec::new();
                let writing = async {
                    write.write_all(&sent).await.unwrap();
                    write.shutdown().await.unwrap();
                };
                tokio::join!(writing, async { read.read_to_end(&mut received).await.unwrap() });
                assert!(received == sent, "{} bytes came back", received.len());
            })
        });
        for dial in dials.collect::<Vec<_>>() {
            dial.await.unwrap();
        }
        serving.abort();
        let _ = serving.await;
        world.assert_empty().await;
    }
}

async fn echo(incoming: Incoming) -> io::Result<()> {
    let (peer, destination) = (incoming.peer(), incoming.destination());
    let stream = incoming.accept().await?;
    assert_eq!((stream.peer_addr()?, stream.local_addr()?), (peer, destination));
    let (mut read, mut write) = stream.into_split();
    tokio::io::copy(&mut read, &mut write).await?;
    write.shutdown().await
}

#[tokio::test]
async fn who_dials_sees_what_was_decided() {
    for shards in [1, 2] {
        let world = Dialled::of_shards(shards);
        let listener = world.listen();
        let dial = |to: &'static str| TcpStream::connect(&world.client, to);

        let refused = asked(&listener, dial("192.0.2.7:80"), async |it| it.reset()).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let dropped = asked(&listener, dial("192.0.2.7:80"), async |it| drop(it)).await;
        assert_eq!(dropped.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let unreachable = asked(&listener, dial("192.0.2.7:80"), async |it| {
            it.unreachable(Unreachable::Port);
        });
        assert_eq!(unreachable.await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let slow = asked(&listener, dial("[2001:db8::7]:80"), async |it| {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            it.accept().await.unwrap().write_all(b"at last").await.unwrap();
        });
        let mut heard = String::new();
        slow.await.unwrap().read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "at last");
        // Silence, and what dials repeats itself, as another.
        let silent = timeout(Duration::from_secs(20), async {
            tokio::select! {
                done = dial("192.0.2.8:80") => panic!("no host answers: {done:?}"),
                again = async {
                    listener.next().await.unwrap().ignore();
                    listener.next().await.unwrap()
                } => again.destination(),
            }
        });
        assert_eq!(silent.await.unwrap(), "192.0.2.8:80".parse().unwrap());
        drop(listener);
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn dials_to_a_black_hole_delay_no_other_destination() {
    let world = Dialled::of_shards(1);
    let listener = world.listen();
    let mut dials = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let client = world.client.clone();
        dials.spawn(async move { TcpStream::connect(&client, "192.0.2.9:80").await });
    }
    // None is decided about there: the oldest give way, and their peers repeat their SYNs.
    let mut waiting = Vec::new();
    while waiting.len() < 64 {
        waiting.push(listener.next().await.unwrap());
    }
    let full = async || world.gateway.counters().await.unwrap().verdict_crowded >= 1_000 - 64;
    until("all have dialled", full).await;
    for to in ["192.0.2.10:80", "192.0.2.9:81"] {
        let deciding = async {
            loop {
                let incoming = listener.next().await.unwrap();
                if incoming.destination() == to.parse().unwrap() {
                    return drop(incoming.accept().await.unwrap());
                }
                waiting.push(incoming);
            }
        };
        let dialling = TcpStream::connect(&world.client, to);
        // Slow machines included: otherwise it would wait until one of 64 is decided, which none is.
        let done = timeout(Duration::from_secs(60), async { tokio::join!(dialling, deciding) });
        drop(done.await.unwrap().0.unwrap());
    }
    let mut gone = Vec::new();
    for mut oldest in waiting.drain(..8) {
        gone.push(oldest.withdrawn().await.kind());
        // What is decided too late is said to be.
        gone.push(oldest.accept().await.unwrap_err().kind());
    }
    assert_eq!(gone, [ErrorKind::ConnectionAborted; 16]);
    let counters = world.gateway.counters().await.unwrap();
    assert_eq!(counters.verdict_overflows, 0);
    dials.abort_all();
    while dials.join_next().await.is_some() {}
    drop((waiting, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn five_hundred_dials_to_one_server_repeat_no_syn() {
    let world = Dialled::with_limit(1, 4_096);
    let listener = world.listen();
    let mut dials = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let client = world.client.clone();
        dials.spawn(async move { TcpStream::connect(&client, "192.0.2.9:80").await });
    }
    // All wait before the first decision, as while a gateway dials.
    let all_wait = async || world.gateway.census().await.unwrap().shards.pending_dials == 500;
    until("all have dialled", all_wait).await;
    let mut accepted = Vec::new();
    while accepted.len() < 500 {
        accepted.push(listener.next().await.unwrap().accept().await.unwrap());
    }
    let mut opened = Vec::new();
    while let Some(dial) = dials.join_next().await {
        opened.push(dial.unwrap().unwrap());
    }
    let counters = world.gateway.counters().await.unwrap();
    assert_eq!((counters.verdict_crowded, counters.verdict_withdrawn), (0, 0));
    drop((accepted, opened, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn socket_connects_from_any_address_on_every_shard() {
    for shards in [1, 3] {
        let world = Dialled::of_shards(shards);
        for (server, source) in [("10.0.0.2:80", "198.51.100.7"), ("[fd00::2]:80", "2001:db8::7")] {
            let server: SocketAddr = server.parse().unwrap();
            let listener = TcpListener::bind(&world.client, server).await.unwrap();
            for number in 0..8 {
                let family = if server.is_ipv4() { TcpSocket::new_v4 } else { TcpSocket::new_v6 };
                let socket = family(&world.gateway).unwrap();
                socket.set_bind_address_no_port(number % 2 == 0).unwrap();
                socket.bind(SocketAddr::new(source.parse().unwrap(), 0)).unwrap();
                let (near, far) = tokio::join!(socket.connect(server), listener.accept());
                let (mut near, (mut far, peer)) = (near.unwrap(), far.unwrap());
                assert_eq!(
                    (peer, peer.ip()),
                    (near.local_addr().unwrap(), source.parse().unwrap())
                );
                near.write_all(b"as another").await.unwrap();
                near.shutdown().await.unwrap();
                let mut heard = String::new();
                far.read_to_string(&mut heard).await.unwrap();
                assert_eq!(heard, "as another");
            }
        }
        // Its answers would be another's, and no host listens for another.
        let socket = TcpSocket::new_v4(&world.gateway).unwrap();
        socket.bind("198.51.100.7:80".parse().unwrap()).unwrap();
        assert_eq!(socket.listen(1).unwrap_err().kind(), ErrorKind::AddrNotAvailable);
        let socket = TcpSocket::new_v4(&world.gateway).unwrap();
        let error = socket.bind("224.0.0.1:80".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        let error = socket.bind("198.51.100.7:0".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable, "it takes only its own");
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn a_stack_has_one_such_listener_until_all_of_it_is_dropped() {
    let world = Dialled::of_shards(2);
    let listener = world.listen();
    let error = TcpListener::bind_any(&world.gateway).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    // One that was yielded, others that wait.
    let mut dials: Vec<_> = (0..5)
        .map(|_| {
            let client = world.client.clone();
            tokio::spawn(async move { TcpStream::connect(&client, "192.0.2.9:80").await })
        })
        .collect();
    let yielded = listener.next().await.unwrap();
    let census = async || world.gateway.census().await.unwrap().shards.syn_entries == 5;
    until("all have dialled", census).await;
    drop(listener);
    // Four are refused, the fifth is decided about still.
    let mut ended = 0;
    until("four are refused", async || {
        ended = dials.iter().filter(|dial| dial.is_finished()).count();
        ended >= 4
    })
    .await;
    assert_eq!(ended, 4);
    assert!(TcpListener::bind_any(&world.gateway).is_err(), "it is held still");
    let accepted = yielded.accept().await.unwrap();
    for dial in dials.drain(..) {
        match dial.await.unwrap() {
            Ok(stream) => assert_eq!(
                (stream.peer_addr().unwrap(), stream.local_addr().unwrap()),
                (accepted.local_addr().unwrap(), accepted.peer_addr().unwrap())
            ),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
        }
    }
    let listener = world.listen();
    let dial = TcpStream::connect(&world.client, "192.0.2.9:80");
    assert!(asked(&listener, dial, async |it| drop(it.accept().await.unwrap())).await.is_ok());
    drop((listener, accepted));
    world.assert_empty().await;
}

#[tokio::test]
async fn who_waits_for_the_connection_no_more_resets_it() {
    let world = Dialled::of_shards(1);
    let listener = world.listen();
    for _ in 0..20 {
        let dial = TcpStream::connect(&world.client, "192.0.2.9:80");
        let dialled = asked(&listener, dial, async |it| {
            // Polled once: the decision is on its way.
            let _ = timeout(Duration::ZERO, it.accept()).await;
        });
        // It was complete, or is refused on its way there.
        if let Ok(mut stream) = dialled.await {
            let ended = stream.read(&mut [0; 1]).await;
            assert!(ended.as_ref().map_or(true, |len| *len == 0), "{ended:?}");
        }
    }
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn whoever_is_asked_hears_that_nobody_waits_any_more() {
    let (builder, port) = builder().packets(1_500);
    let gateway = builder.address("10.0.0.1", 24).unwrap().any_address().build().unwrap();
    let listener = TcpListener::bind_any(&gateway).unwrap();
    for _ in 0..2 {
        port.send(segment(0x02, 100)).await.unwrap();
        let mut incoming = listener.next().await.unwrap();
        assert_eq!(incoming.destination(), "192.0.2.9:80".parse().unwrap());
        assert_eq!(incoming.peer(), "10.0.0.2:4000".parse().unwrap());
        let early = timeout(Duration::from_millis(20), incoming.withdrawn()).await;
        assert!(early.is_err(), "it waits");
        // A reset of its own.
        port.send(segment(0x04, 101)).await.unwrap();
        assert_eq!(incoming.withdrawn().await.kind(), ErrorKind::ConnectionAborted);
        assert_eq!(incoming.withdrawn().await.kind(), ErrorKind::ConnectionAborted, "and again");
        assert_eq!(incoming.accept().await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    }
    // Nothing was ever sent; nor is it to who is gone before anybody took it.
    port.send(segment(0x02, 100)).await.unwrap();
    port.send(segment(0x04, 101)).await.unwrap();
    let two = async || gateway.counters().await.unwrap().verdict_withdrawn == 3;
    until("it is withdrawn", two).await;
    assert!(timeout(Duration::from_millis(20), listener.next()).await.is_err());
    assert!(port.try_recv().is_err(), "not a packet left");
    // The end of the stack is the end of the wait.
    port.send(segment(0x02, 100)).await.unwrap();
    let mut incoming = listener.next().await.unwrap();
    drop(port);
    assert_eq!(incoming.withdrawn().await.kind(), ErrorKind::NotConnected);
    assert_eq!(incoming.accept().await.unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(listener.next().await.unwrap_err().kind(), ErrorKind::NotConnected);
}

/// A segment without text from 10.0.0.2:4000 to 192.0.2.9:80.
fn segment(flags: u8, seq: u32) -> bytes::Bytes {
    let mut packet =
        Vec::from([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 2, 192, 0, 2, 9]);
    let sum = checksum(&packet, 0);
    packet[10..12].copy_from_slice(&sum);
    let mut tcp = Vec::from([0x0f, 0xa0, 0, 80]);
    tcp.extend(seq.to_be_bytes());
    tcp.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    let pseudo = u32::from(tcp.len() as u16) + 6;
    let sum = checksum(&[&packet[12..], &tcp[..]].concat(), pseudo);
    tcp[16..18].copy_from_slice(&sum);
    packet.extend(tcp);
    packet.into()
}

/// RFC 1071, over an even number of bytes, and this.
fn checksum(bytes: &[u8], more: u32) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum = more + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[tokio::test]
async fn incoming_is_stream_of_connections_like_listeners() {
    let world = Dialled::of_shards(1);
    let listener = world.listen();
    let mut incoming = Box::pin(listener.incoming());
    for to in ["192.0.2.7:80", "192.0.2.8:81"] {
        let (dialled, ()) = tokio::join!(TcpStream::connect(&world.client, to), async {
            let next = std::future::poll_fn(|cx| incoming.as_mut().poll_next(cx)).await;
            let next = next.unwrap().unwrap();
            assert_eq!(next.destination().to_string(), to);
            next.reset();
        });
        assert_eq!(dialled.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
    drop(incoming);
    drop(listener);
    world.assert_empty().await;
}
