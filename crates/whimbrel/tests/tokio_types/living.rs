//! A stack whose addresses and routes change while it runs, and that talks to itself.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{Ping, Route, Stack, TcpListener, TcpSocket, TcpStream, UdpSocket};

use crate::world::{World, pair, text, until};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn added_address_reaches_listeners_sockets_and_shards() {
    for shards in [1, 3] {
        let world = World::of_shards(shards, shards);
        let listener = TcpListener::bind(&world.server, "0.0.0.0:7").await.unwrap();
        let early = TcpListener::bind(&world.server, "10.0.0.9:8").await.unwrap_err();
        assert_eq!(early.kind(), ErrorKind::AddrNotAvailable);
        world.server.add_address(ip("10.0.0.9"), 24).await.unwrap();
        assert_eq!(world.server.addresses().len(), 2);
        let again = world.server.add_address(ip("10.0.0.9"), 24).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
        assert!(again.to_string().contains("10.0.0.9 is an address of this host"), "{again}");
        let bound = TcpListener::bind(&world.server, "10.0.0.9:8").await.unwrap();
        // As many as reach every shard.
        for _ in 0..2 * shards {
            for (listener, port) in [(&listener, 7), (&bound, 8)] {
                let to = (ip("10.0.0.9"), port);
                let (there, here) =
                    tokio::join!(TcpStream::connect(&world.client, to), listener.accept());
                let (there, here) = (there.unwrap(), here.unwrap().0);
                assert_eq!(here.local_addr().unwrap(), to.into());
                assert_eq!(there.peer_addr().unwrap(), to.into());
            }
        }
        // It speaks from there, too.
        let back = TcpListener::bind(&world.client, "10.0.0.2:9").await.unwrap();
        let socket = TcpSocket::new_v4(&world.server).unwrap();
        socket.bind("10.0.0.9:0".parse().unwrap()).unwrap();
        let (out, accepted) =
            tokio::join!(socket.connect("10.0.0.2:9".parse().unwrap()), back.accept());
        let (out, (accepted, peer)) = (out.unwrap(), accepted.unwrap());
        assert_eq!((peer.ip(), out.local_addr().unwrap()), (ip("10.0.0.9"), peer));
        drop((listener, bound, back, out, accepted));
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn an_address_that_is_removed_ends_its_streams_and_no_others() {
    let world = World::of_shards(2, 2);
    world.server.add_address(ip("10.0.0.9"), 24).await.unwrap();
    let listener = TcpListener::bind(&world.server, "0.0.0.0:7").await.unwrap();
    let mut pairs = Vec::new();
    for host in ["10.0.0.1:7", "10.0.0.9:7", "10.0.0.1:7", "10.0.0.9:7"] {
        let (there, here) =
            tokio::join!(TcpStream::connect(&world.client, host), listener.accept());
        pairs.push((there.unwrap(), here.unwrap().0));
    }
    let unknown = world.server.remove_address(ip("10.0.0.8")).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::AddrNotAvailable);
    world.server.remove_address(ip("10.0.0.9")).await.unwrap();
    for (at, (there, here)) in pairs.iter_mut().enumerate() {
        if at % 2 == 1 {
            let error = here.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "{error}");
            continue;
        }
        there.write_all(b"still here").await.unwrap();
        let mut bytes = [0; 10];
        here.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"still here");
    }
    let gone = TcpListener::bind(&world.server, "10.0.0.9:8").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::AddrNotAvailable);
}

#[tokio::test]
async fn a_route_that_is_added_leads_and_one_that_is_removed_does_not() {
    let (server, client) = pair();
    server.add_address(ip("192.0.2.1"), 32).await.unwrap();
    let listener = TcpListener::bind(&server, "192.0.2.1:7").await.unwrap();
    let error = TcpStream::connect(&client, "192.0.2.1:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
    let route = Route::new(ip("192.0.2.0"), 24).via(ip("10.0.0.1"));
    client.add_route(route).await.unwrap();
    assert_eq!(client.add_route(route).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let (there, here) = tokio::join!(TcpStream::connect(&client, "192.0.2.1:7"), listener.accept());
    drop((there.unwrap(), here.unwrap()));
    client.remove_route(route).await.unwrap();
    let error = TcpStream::connect(&client, "192.0.2.1:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
    assert_eq!(client.remove_route(route).await.unwrap_err().kind(), ErrorKind::NotFound);
    let nowhere = route.via(ip("198.51.100.1"));
    let error = client.add_route(nowhere).await.unwrap_err();
    assert!(error.to_string().contains("not on a directly connected network"), "{error}");
}

/// A stack connects to itself, in both families, over loopback and by its own address.
#[tokio::test]
async fn a_stack_talks_to_itself_whatever_its_shards() {
    for shards in [1, 3] {
        let world = World::of_shards(shards, 1);
        let stack = &world.server;
        for host in ["127.0.0.1", "10.0.0.1", "::1"] {
            let any = if host == "::1" { "[::]:7" } else { "0.0.0.0:7" };
            let listener = TcpListener::bind(stack, any).await.unwrap();
            for _ in 0..2 * shards {
                let to = (ip(host), 7);
                let (there, here) = tokio::join!(TcpStream::connect(stack, to), listener.accept());
                echo(there.unwrap(), here.unwrap().0).await;
            }
            // From a port of the caller's choice, which leads to one shard.
            for port in 4_000..4_000 + shards {
                let socket = match ip(host) {
                    IpAddr::V4(_) => TcpSocket::new_v4(stack).unwrap(),
                    IpAddr::V6(_) => TcpSocket::new_v6(stack).unwrap(),
                };
                socket.bind((ip(host), port).into()).unwrap();
                let to = (ip(host), 7).into();
                let (there, here) = tokio::join!(socket.connect(to), listener.accept());
                echo(there.unwrap(), here.unwrap().0).await;
            }
            drop(listener);
            let refused = TcpStream::connect(stack, (ip(host), 7)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            datagrams(stack, host).await;
        }
        world.assert_empty().await;
    }
}

async fn echo(mut there: TcpStream, mut here: TcpStream) {
    assert_eq!(there.local_addr().unwrap(), here.peer_addr().unwrap());
    let sent = text(300_000);
    let write = async {
        there.write_all(&sent).await.unwrap();
        there.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let (_, read) = tokio::join!(write, here.read_to_end(&mut received));
    read.unwrap();
    assert!(received == sent, "{} bytes", received.len());
}

async fn datagrams(stack: &Stack, host: &str) {
    let server = UdpSocket::bind(stack, (ip(host), 53)).await.unwrap();
    let client = UdpSocket::bind(stack, (ip(host), 0)).await.unwrap();
    client.connect((ip(host), 53)).await.unwrap();
    // In fragments: more than the wire carries.
    let sent = text(5_000);
    assert_eq!(client.send(&sent).await.unwrap(), sent.len());
    let mut room = vec![0; 6_000];
    let (len, peer) = server.recv_from(&mut room).await.unwrap();
    assert!(room[..len] == sent && peer == client.local_addr().unwrap());
    drop(server);
    until("the port is free", async || {
        let _told = client.send(b"?").await;
        let told = client.recv(&mut room).await;
        told.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    })
    .await;
}

#[tokio::test]
async fn a_stack_pings_others_and_itself_and_is_told_why_not() {
    for shards in [1, 3] {
        let world = World::of_shards(shards, shards);
        for host in ["10.0.0.1", "10.0.0.2", "127.0.0.1", "::1"] {
            for size in [56, 8_000] {
                let mut ping = Ping::new(ip(host));
                (ping.size, ping.timeout) = (size, Duration::from_secs(10));
                let pong = world.client.ping_with(ping).await.unwrap();
                assert_eq!((pong.from, pong.size), (ip(host).into(), size.into()));
                assert!(pong.round_trip < ping.timeout && pong.hop_limit == 64);
            }
        }
        let silent = world.client.ping(ip("10.0.0.77")).await.unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::TimedOut, "{silent}");
        let nowhere = world.client.ping(ip("192.0.2.1")).await.unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::NetworkUnreachable, "{nowhere}");
        world.assert_empty().await;
    }
}
