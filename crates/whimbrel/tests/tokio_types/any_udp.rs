//! Datagrams to any destination: who sends one is answered from where it was for.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::timeout;
use whimbrel::{AnyUdpSocket, Received, Stack, UdpSocket, Unreachable};

use crate::any::Dialled;
use crate::world::{text, until};

async fn bind_any(stack: &Stack) -> AnyUdpSocket {
    UdpSocket::bind_any(stack).await.unwrap()
}

async fn connected(stack: &Stack, to: &str) -> UdpSocket {
    let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(stack, any).await.unwrap();
    socket.connect(to).await.unwrap();
    socket
}

#[tokio::test]
async fn bytes_are_equal_to_and_from_addresses_that_exist_nowhere() {
    for shards in [1, 3] {
        let world = Dialled::of_shards(shards);
        let socket = bind_any(&world.gateway).await;
        let serving = tokio::spawn(async move {
            while let Ok(received) = socket.recv().await {
                socket.answer(&received, &received.data).await.unwrap();
            }
        });
        let to = ["192.0.2.7:53", "[2001:db8::7]:443", "203.0.113.99:65535"];
        let asking = to.map(|to| {
            let client = world.client.clone();
            tokio::spawn(async move {
                let socket = connected(&client, to).await;
                let mut buf = vec![0; 65_536];
                for len in [0, 1, 512, 1_400, 9_000, 60_000] {
                    let sent = text(len);
                    // Nothing is lost on this wire.
                    socket.send(&sent).await.unwrap();
                    let received = timeout(Duration::from_secs(60), socket.recv(&mut buf)).await;
                    let received = received.unwrap().unwrap();
                    assert!(buf[..received] == sent, "{len} bytes became {received}");
                }
            })
        });
        for asking in asking {
            asking.await.unwrap();
        }
        serving.abort();
        let _ = serving.await;
        let census = world.gateway.census().await.unwrap();
        assert_eq!(census.shards.other_addresses, 0, "datagrams need no numbers");
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn who_sends_sees_what_was_decided() {
    for shards in [1, 2] {
        let world = Dialled::of_shards(shards);
        let socket = bind_any(&world.gateway).await;
        let error = UdpSocket::bind_any(&world.gateway).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        for to in ["192.0.2.7:53", "[2001:db8::7]:53"] {
            let client = connected(&world.client, to).await;
            let received = asked(&socket, &client).await;
            assert_eq!(received.to, to.parse::<std::net::SocketAddr>().unwrap().into());
            socket.refuse(&received, Unreachable::Port);
            let error = client.recv(&mut [0; 9]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            // `take_error` returns what may pass by itself, as calls of Linux' sockets do not fail for it.
            let soft = [
                (Unreachable::Host, ErrorKind::HostUnreachable),
                (Unreachable::Network, ErrorKind::NetworkUnreachable),
            ];
            for (what, kind) in soft {
                let received = asked(&socket, &client).await;
                socket.refuse(&received, what);
                let mut told = None;
                until("take_error returns it", async || {
                    told = told.take().or(client.take_error().unwrap());
                    told.is_some()
                })
                .await;
                assert_eq!(told.unwrap().kind(), kind, "{what:?}");
            }
            // Silence, and a slow host.
            let received = asked(&socket, &client).await;
            let silence = timeout(Duration::from_millis(50), client.recv(&mut [0; 9])).await;
            assert!(silence.is_err());
            socket.send(b"at last", received.to.into(), received.from.into()).await.unwrap();
            let mut buf = [0; 9];
            let len = client.recv(&mut buf).await.unwrap();
            assert_eq!(&buf[..len], b"at last");
        }
        drop(socket);
        let client = connected(&world.client, "192.0.2.7:53").await;
        // The port is closed now; datagrams that came before stay without an answer.
        let error = loop {
            client.send(b"anybody?").await.unwrap();
            let mut buf = [0; 9];
            if let Ok(heard) = timeout(Duration::from_secs(1), client.recv(&mut buf)).await {
                break heard.unwrap_err();
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        drop(client);
        world.assert_empty().await;
    }
}

async fn asked(socket: &AnyUdpSocket, client: &UdpSocket) -> Received {
    client.send(b"a query").await.unwrap();
    let received = socket.recv().await.unwrap();
    assert_eq!(&received.data[..], b"a query");
    received
}

#[tokio::test]
async fn what_cannot_be_sent_to_one_keeps_nothing_from_others() {
    let world = Dialled::of_shards(1);
    let socket = bind_any(&world.gateway).await;
    let client = connected(&world.client, "192.0.2.7:53").await;
    let received = asked(&socket, &client).await;
    // A group is no source address, which only the shard finds out.
    let (group, peer) = ("224.0.0.1:53".parse().unwrap(), received.from.into());
    socket.send(b"from a group", group, peer).await.unwrap();
    let mut told = None;
    until("take_error returns it", async || {
        told = told.take().or(socket.take_error().unwrap());
        told.is_some()
    })
    .await;
    assert_eq!(told.unwrap().kind(), ErrorKind::AddrNotAvailable);
    socket.send(b"once more", group, peer).await.unwrap();
    // And calls go on as if nothing had been.
    let received = asked(&socket, &client).await;
    socket.answer(&received, b"here").await.unwrap();
    let mut buf = [0; 9];
    assert_eq!(client.recv(&mut buf).await.unwrap(), 4);
    // An impossible datagram fails at once.
    let long = socket.send(&[0; 65_508], received.to.into(), peer).await.unwrap_err();
    assert_eq!(long.kind(), ErrorKind::InvalidInput);
    drop((socket, client));
    world.assert_empty().await;
}

#[tokio::test]
async fn a_burst_that_nobody_reads_is_bounded_and_counted() {
    let world = Dialled::of_shards(1);
    let socket = bind_any(&world.gateway).await;
    socket.set_recv_buffer_size(2_048).unwrap();
    let client = UdpSocket::bind(&world.client, "0.0.0.0:0").await.unwrap();
    for sent in 0..5_000_u32 {
        let [_, _, high, low] = sent.to_be_bytes();
        client.send_to(&[7; 100], (std::net::Ipv4Addr::new(192, 0, high, low), 53)).await.unwrap();
    }
    until("each is counted", async || {
        let counters = world.gateway.udp_counters().await.unwrap();
        counters.in_datagrams + counters.rcvbuf_errors == 5_000
    })
    .await;
    let dropped = world.gateway.udp_counters().await.unwrap().rcvbuf_errors;
    assert!(dropped > 4_000, "{dropped}");
    let mut waiting = 0;
    while timeout(Duration::from_millis(50), socket.recv()).await.is_ok() {
        waiting += 1;
    }
    assert_eq!(waiting + dropped, 5_000);
    drop((socket, client));
    world.assert_empty().await;
}
