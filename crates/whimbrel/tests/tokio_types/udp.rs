//! UDP sockets.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use whimbrel::{Endpoint, Fragmenting, SendTo, Stack, TrafficClass, UdpSocket};

use crate::world::{World, pair, text, until};

/// A socket of the server's at its port, and one of the client's that is connected to it.
async fn sockets(world: &World) -> (UdpSocket, UdpSocket) {
    let server = UdpSocket::bind(&world.server, "10.0.0.1:7").await.unwrap();
    let client = UdpSocket::bind(&world.client, "0.0.0.0:0").await.unwrap();
    client.connect("10.0.0.1:7").await.unwrap();
    (server, client)
}

#[tokio::test]
async fn many_shards_keep_udp_sockets_at_one_without_loss() {
    for (server_shards, client_shards) in [(1, 3), (4, 2)] {
        let world = World::of_shards(server_shards, client_shards);
        let server = Arc::new(UdpSocket::bind(&world.server, "10.0.0.1:7").await.unwrap());
        let echo = Arc::clone(&server);
        let echo = tokio::spawn(async move {
            let mut buf = vec![0; 65_536];
            while let Ok((len, peer)) = echo.recv_from(&mut buf).await {
                echo.send_to(&buf[..len], peer).await.unwrap();
            }
        });
        let mut clients = Vec::new();
        for which in 0..16_u8 {
            let client = UdpSocket::bind(&world.client, "0.0.0.0:0").await.unwrap();
            client.connect("10.0.0.1:7").await.unwrap();
            clients.push(tokio::spawn(async move {
                for round in 0..20_usize {
                    // Whole ones, and ones in fragments.
                    let data = vec![which; 1 + round * 300];
                    client.send(&data).await.unwrap();
                    let mut buf = vec![0; 10_000];
                    let len = client.recv(&mut buf).await.unwrap();
                    assert!(
                        buf[..len] == data,
                        "another socket's datagram, or another of this one"
                    );
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        echo.abort();
        let _ = echo.await;
        let counters = world.server.udp_counters().await.unwrap();
        assert_eq!((counters.in_datagrams, counters.out_datagrams), (320, 320));
        drop(server);
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn datagrams_are_received_behind_what_the_buffer_has() {
    let world = World::new();
    let (server, client) = sockets(&world).await;
    let from = client.local_addr().unwrap();
    client.send(b"one").await.unwrap();
    client.send(b"another").await.unwrap();
    let mut all = Vec::new();
    assert_eq!(server.recv_buf_from(&mut all).await.unwrap(), (3, from));
    assert_eq!(server.recv_buf(&mut all).await.unwrap(), 7);
    assert_eq!(all, b"oneanother");
    assert_eq!(server.try_recv_buf_from(&mut all).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop((server, client));
    world.assert_empty().await;
}

#[tokio::test]
async fn unread_burst_is_bounded_and_sender_waits() {
    let world = World::new();
    let (server, client) = sockets(&world).await;
    server.set_recv_buffer_size(20_000).unwrap();
    let data = text(1_000);
    for _ in 0..2_000 {
        assert_eq!(client.send(&data).await.unwrap(), 1_000);
    }
    until("all of it arrived", async || {
        let counters = world.server.udp_counters().await.unwrap();
        counters.in_datagrams + counters.rcvbuf_errors == 2_000
    })
    .await;
    let counters = world.server.udp_counters().await.unwrap();
    assert!(counters.rcvbuf_errors > 1_500, "{counters:?}");
    let mut received = 0;
    let mut buf = [0; 1_500];
    while let Ok(len) = server.try_recv(&mut buf) {
        assert!(buf[..len] == data);
        received += 1;
        // What waits in the shard comes as room is made for it.
        tokio::task::yield_now().await;
    }
    assert!(received <= counters.in_datagrams);
    drop((server, client));
    world.assert_empty().await;
}

/// More comes for a socket that is not read than it may hold; another has each datagram.
#[tokio::test]
async fn socket_is_served_beside_flood_of_another() {
    let world = World::new();
    let (server, client) = sockets(&world).await;
    let full = UdpSocket::bind(&world.server, "10.0.0.1:8").await.unwrap();
    let flood = UdpSocket::bind(&world.client, "0.0.0.0:0").await.unwrap();
    flood.connect("10.0.0.1:8").await.unwrap();
    let (data, mut buf) = (text(1_000), [0; 9]);
    for _ in 0..20 {
        for _ in 0..100 {
            flood.send(&data).await.unwrap();
        }
        client.send(b"question").await.unwrap();
        let received = timeout(Duration::from_secs(20), server.recv_from(&mut buf)).await;
        let (_, peer) = received.expect("the question was lost").unwrap();
        server.send_to(b"answer", peer).await.unwrap();
        let received = timeout(Duration::from_secs(20), client.recv(&mut buf)).await;
        assert_eq!(received.expect("the answer was lost").unwrap(), 6);
    }
    let counters = world.server.udp_counters().await.unwrap();
    assert!(counters.rcvbuf_errors > 1_000, "{counters:?}");
    drop((server, client, full, flood));
    world.assert_empty().await;
}

#[tokio::test]
async fn reply_uses_queried_address_and_given_options() {
    let world = World::new();
    let server = UdpSocket::bind(&world.server, "[::]:7").await.unwrap();
    for (bind, ask) in [("0.0.0.0:0", "10.0.0.1:7"), ("[::]:0", "[fd00::1]:7")] {
        let client = UdpSocket::bind(&world.client, bind).await.unwrap();
        client.set_ttl(3).unwrap();
        client.set_tos_v4(0x20).unwrap();
        client.send_to(b"?", ask).await.unwrap();
        let query = server.recv_datagram().await.unwrap();
        let asked: SocketAddr = ask.parse().unwrap();
        assert_eq!(SocketAddr::from(query.to), asked);
        assert_eq!((query.hop_limit, query.class), (3, TrafficClass(0x20)));
        let send = SendTo::peer(query.from).with_source(query.to.addr);
        server.send_datagram(b"!", &send).await.unwrap();
        let mut buf = [0; 4];
        assert_eq!(client.recv_from(&mut buf).await.unwrap(), (1, asked));
    }
    drop(server);
    world.assert_empty().await;
}

#[tokio::test]
async fn multicast_and_invalid_datagrams_fail_with_message() {
    let world = World::new();
    let (server, client) = sockets(&world).await;
    let unsupported = |error: std::io::Error| {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        error.to_string()
    };
    let multicast = client.send_to(b"x", "224.0.0.251:5353").await.unwrap_err();
    assert!(unsupported(multicast).contains("224.0.0.251 is a multicast group"));
    let broadcast = client.send_to(b"x", "255.255.255.255:67").await.unwrap_err();
    assert!(unsupported(broadcast).contains("broadcast"));
    unsupported(client.set_broadcast(true).unwrap_err());
    let group = "224.0.0.251".parse().unwrap();
    unsupported(client.join_multicast_v4(group, [0; 4].into()).unwrap_err());
    unsupported(client.join_multicast_v6(&"ff02::1".parse().unwrap(), 0).unwrap_err());
    unsupported(UdpSocket::bind(&world.client, "224.0.0.251:5353").await.unwrap_err());
    unsupported(client.connect("10.0.0.255:7").await.unwrap_err());
    let error = client.connect("[fd00::1]:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let error = client.connect("192.0.2.1:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{error}");
    let error = client.send_to(b"x", "192.0.2.1:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{error}");
    let error = client.send_to(b"x", "[fd00::1]:7").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    client.set_fragmenting(Fragmenting::Refused).unwrap();
    let error = client.send(&text(3_000)).await.unwrap_err();
    assert!(error.to_string().contains("3000 bytes, and a datagram there carries 1472"), "{error}");
    client.send(b"fine").await.unwrap();
    assert_eq!(server.recv(&mut [0; 4]).await.unwrap(), 4);
    drop((server, client));
    world.assert_empty().await;
}

#[tokio::test]
async fn what_was_sent_before_the_socket_was_dropped_arrives() {
    let world = World::new();
    let (server, client) = sockets(&world).await;
    for _ in 0..30 {
        client.send(&text(2_000)).await.unwrap();
    }
    drop(client);
    let mut buf = [0; 2_500];
    for _ in 0..30 {
        assert_eq!(server.recv(&mut buf).await.unwrap(), 2_000);
    }
    drop(server);
    // Its port is free again.
    UdpSocket::bind(&world.server, "10.0.0.1:7").await.unwrap();
    world.assert_empty().await;
}

#[tokio::test]
async fn socket_keeps_stack_alive_and_reports_its_end() {
    let (server_stack, client_stack) = pair();
    let server = UdpSocket::bind(&server_stack, "10.0.0.1:7").await.unwrap();
    let client = UdpSocket::bind(&client_stack, "10.0.0.2:9").await.unwrap();
    drop((server_stack, client_stack));
    client.send_to(b"still here", "10.0.0.1:7").await.unwrap();
    assert_eq!(server.recv(&mut [0; 16]).await.unwrap(), 10);
}

#[tokio::test]
async fn each_datagram_reaches_one_of_many_waiting_tasks() {
    let world = World::new();
    let (server, client) = sockets(&world).await;
    let server = Arc::new(server);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.recv(&mut [0; 8]).await.unwrap() })
        })
        .collect();
    tokio::task::yield_now().await;
    for len in 0..8_usize {
        client.send(&[0; 8][..len]).await.unwrap();
    }
    let mut lens = Vec::new();
    for task in tasks {
        lens.push(task.await.unwrap());
    }
    lens.sort_unstable();
    assert_eq!(lens, (0..8).collect::<Vec<_>>());
    // A future that was dropped has taken nothing.
    drop(server.recv(&mut [0; 8]));
    client.send(b"kept").await.unwrap();
    assert_eq!(server.recv(&mut [0; 8]).await.unwrap(), 4);
    drop((server, client));
    world.assert_empty().await;
}

#[tokio::test]
async fn ends_are_plain_values() {
    let stack = Stack::pair().unwrap().0;
    let socket = UdpSocket::bind(&stack, "[::]:9").await.unwrap();
    assert_eq!(socket.local_addr().unwrap(), "[::]:9".parse().unwrap());
    assert!(format!("{socket:?}").contains("[::]:9"));
    let end = Endpoint::from("10.0.0.1:7".parse::<SocketAddr>().unwrap());
    assert_eq!(SendTo::peer(end).to, Some(end));
}
