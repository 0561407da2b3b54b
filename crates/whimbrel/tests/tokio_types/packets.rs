//! Stacks whose packets are the test's.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;
use whimbrel::{PacketPort, Stack, TcpListener, TcpStream, UnclaimedPackets};

use crate::world::{SERVER, assert_empties, builder, text, until};

/// A server at 10.0.0.1 and a client at 10.0.0.2, each with its port.
struct Ends {
    server: Stack,
    server_port: Arc<PacketPort>,
    client: Stack,
    client_port: Arc<PacketPort>,
    /// True if the client's packets are carried.
    valve: watch::Sender<bool>,
}

impl Ends {
    /// Each on so many shards.
    fn joined(shards: u16) -> Self {
        let host = |addr| {
            let (builder, port) = builder().shards(shards).packets(1_420);
            (builder.address(addr, 24).unwrap().build().unwrap(), Arc::new(port))
        };
        let (server, server_port) = host("10.0.0.1");
        let (client, client_port) = host("10.0.0.2");
        let valve = watch::Sender::new(true);
        let (one, other) = (&server_port, &client_port);
        let open = watch::Sender::new(true);
        tokio::spawn(carry(Arc::clone(one), Arc::clone(other), open.subscribe()));
        tokio::spawn(carry(Arc::clone(other), Arc::clone(one), valve.subscribe()));
        // This one stays open.
        std::mem::forget(open);
        Self { server, server_port, client, client_port, valve }
    }
}

/// Carries packets one way until one of both stacks ends.
async fn carry(from: Arc<PacketPort>, to: Arc<PacketPort>, mut valve: watch::Receiver<bool>) {
    let mut packets = Vec::new();
    while valve.wait_for(|open| *open).await.is_ok() {
        tokio::select! {
            biased;
            // Nothing is taken that arrives later.
            () = async { drop(valve.wait_for(|open| !*open).await) } => continue,
            taken = from.recv_many(&mut packets, 32) => if taken.is_err() { return },
        }
        for packet in packets.drain(..) {
            assert!(packet.len() <= usize::from(from.mtu()), "{} bytes", packet.len());
            if to.send(packet).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn megabytes_pass_between_two_stacks_through_code_of_the_users() {
    for shards in [1, 2] {
        let ends = Ends::joined(shards);
        let listener = TcpListener::bind(&ends.server, SERVER).await.unwrap();
        let sent = text(4 << 20);
        for _ in 0..4 {
            let (stream, accepted) =
                tokio::join!(TcpStream::connect(&ends.client, SERVER), listener.accept());
            let (mut stream, mut peer) = (stream.unwrap(), accepted.unwrap().0);
            let writing = async {
                stream.write_all(&sent).await.unwrap();
                stream.shutdown().await.unwrap();
            };
            let mut received = Vec::new();
            let ((), read) = tokio::join!(writing, peer.read_to_end(&mut received));
            read.unwrap();
            assert!(received == sent, "other bytes arrived");
        }
        drop(listener);
        assert_empties(&ends.server).await;
        assert_empties(&ends.client).await;
        let counters = ends.server_port.counters();
        assert!(counters.sent > 4 * (4 << 20) / 1_420, "{counters:?}");
        assert_eq!((counters.full, counters.lost), (0, 0));
        assert!(ends.client_port.counters().received >= counters.sent);
    }
}

#[tokio::test]
async fn untaken_packets_wait_within_limit_and_resume() {
    let ends = Ends::joined(1);
    let listener = TcpListener::bind(&ends.server, SERVER).await.unwrap();
    let mut pairs = Vec::new();
    for _ in 0..100 {
        let (stream, accepted) =
            tokio::join!(TcpStream::connect(&ends.client, SERVER), listener.accept());
        pairs.push((stream.unwrap(), accepted.unwrap().0));
    }
    ends.valve.send(false).unwrap();
    let text = text(32 * 1024);
    for (stream, _) in &mut pairs {
        stream.write_all(&text).await.unwrap();
    }
    // Ten segments of each connection's first window are twice what the queue holds.
    let waiting = || ends.client_port.counters().waiting;
    until("the queue is full", async || waiting() > PacketPort::CAPACITY - 11).await;
    assert!(waiting() <= PacketPort::CAPACITY, "{}", waiting());
    ends.valve.send(true).unwrap();
    for (mut stream, mut peer) in pairs {
        stream.shutdown().await.unwrap();
        let mut received = Vec::new();
        peer.read_to_end(&mut received).await.unwrap();
        assert!(received == text, "other bytes arrived");
    }
}

#[tokio::test]
async fn full_queue_drops_try_send_and_delays_send() {
    let (builder, port) = builder().packets(1_500);
    let port = Arc::new(port);
    // No packet is taken yet.
    for _ in 0..PacketPort::CAPACITY {
        port.try_send(ping([192, 0, 2, 9])).unwrap();
    }
    let refused = port.try_send(ping([192, 0, 2, 9])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    let waiting = {
        let port = Arc::clone(&port);
        tokio::spawn(async move { port.send(ping([192, 0, 2, 9])).await })
    };
    assert!(timeout(Duration::from_millis(20), port.send(ping([1, 1, 1, 1]))).await.is_err());
    assert!(!waiting.is_finished());
    let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
    waiting.await.unwrap().unwrap();
    let received = PacketPort::CAPACITY as u64 + 1;
    until("all came in", async || {
        let received = stack.inspect(0, |shard| shard.ip_counters().in_receives).await.unwrap();
        received == PacketPort::CAPACITY as u64 + 1
    })
    .await;
    let counters = port.counters();
    assert_eq!((counters.sent, counters.full, counters.lost), (received, 1, 0));
    let long = port.try_send(Bytes::from(vec![0; 65_536])).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::InvalidInput);
    assert!(long.to_string().contains("65536 bytes"), "{long}");
    assert_eq!(port.counters().too_long, 1);
}

/// The server's device drops of a flood what has no room. A client whose packets wait for room, as others'
/// devices have it, is answered meanwhile.
#[tokio::test]
async fn connection_goes_on_beside_flood_of_its_device() {
    let ends = Ends::joined(1);
    let listener = TcpListener::bind(&ends.server, SERVER).await.unwrap();
    let (stream, accepted) =
        tokio::join!(TcpStream::connect(&ends.client, SERVER), listener.accept());
    let (mut stream, mut peer) = (stream.unwrap(), accepted.unwrap().0);
    let port = Arc::clone(&ends.server_port);
    let flood = tokio::spawn(async move {
        loop {
            for _ in 0..2 * PacketPort::CAPACITY {
                let _ = port.try_send(ping([192, 0, 2, 9]));
            }
            tokio::task::yield_now().await;
        }
    });
    let (text, mut buf) = (text(4_000), vec![0; 4_000]);
    let mut rounds = 0;
    while rounds < 10 || ends.server_port.counters().full < 1_000 {
        let exchange = async {
            stream.write_all(&text).await.unwrap();
            peer.read_exact(&mut buf).await.unwrap();
            peer.write_all(&buf).await.unwrap();
            stream.read_exact(&mut buf).await.unwrap();
        };
        timeout(Duration::from_secs(20), exchange).await.expect("it is answered");
        assert!(buf == text, "other bytes arrived");
        rounds += 1;
    }
    flood.abort();
    drop((stream, peer, listener));
    assert_empties(&ends.server).await;
    assert_empties(&ends.client).await;
}

#[tokio::test]
async fn port_returns_last_packets_then_reason_of_end() {
    let (builder, port) = builder().packets(1_500);
    let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
    stack.inject(ping([192, 0, 2, 9])).await.unwrap();
    until("it left", async || port.counters().waiting == 1).await;
    drop(stack);
    assert_eq!(port.recv().await.unwrap(), ping([192, 0, 2, 9]));
    let why = "the stack has ended: nothing of it was held any more";
    assert_eq!(port.recv().await.unwrap_err().to_string(), why);
    assert_eq!(port.try_recv().unwrap_err().to_string(), why);
    assert_eq!(port.send(ping([1, 1, 1, 1])).await.unwrap_err().to_string(), why);
    assert_eq!(port.try_send(ping([1, 1, 1, 1])).unwrap_err().kind(), ErrorKind::NotConnected);

    let (builder, port) = crate::world::builder().packets(1_500);
    port.try_send(ping([1, 1, 1, 1])).unwrap();
    drop(builder);
    let never = port.recv().await.unwrap_err();
    assert_eq!(never.to_string(), "the stack has ended: it was never built");
    assert_eq!(port.counters().lost, 1);
}

#[tokio::test]
async fn dropping_the_port_ends_the_stack_which_says_so() {
    for shards in [1, 2] {
        let (builder, port) = builder().shards(shards).packets(1_500);
        let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
        let listener = TcpListener::bind(&stack, SERVER).await.unwrap();
        drop(port);
        let why = "packets: the device is lost: its PacketPort was dropped";
        for error in [stack.ended().await, listener.accept().await.unwrap_err()] {
            assert_eq!(error.to_string(), format!("the stack has ended: {why}"));
        }
    }
}

#[tokio::test]
async fn a_host_of_ipv6_needs_an_mtu_of_1280_and_says_so() {
    let (builder, _port) = builder().packets(1_000);
    let refused = builder.address("fd00::1", 64).unwrap().build().unwrap_err();
    assert!(refused.to_string().contains("every link carries 1280"), "{refused}");
}

/// A stack of one address, its port, and what it does not take.
fn stack_with_unclaimed() -> (Stack, PacketPort, UnclaimedPackets) {
    let (builder, port) = builder().packets(1_500);
    let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
    let unclaimed = stack.unclaimed();
    (stack, port, unclaimed)
}

#[tokio::test]
async fn what_nothing_takes_is_handed_out_and_answered_by_no_error() {
    let (stack, port, mut unclaimed) = stack_with_unclaimed();
    // To another host; of a protocol that is not spoken here; a datagram for no socket; and what the stack
    // takes itself.
    let others = [ping([192, 0, 2, 9]), sctp([10, 0, 0, 1]), datagram([10, 0, 0, 1])];
    for packet in &others {
        port.send(packet.clone()).await.unwrap();
    }
    port.send(ping([10, 0, 0, 1])).await.unwrap();
    for packet in &others {
        assert_eq!(unclaimed.recv().await.unwrap(), packet);
    }
    let answer = port.recv().await.unwrap();
    assert_eq!((answer[9], answer[20]), (1, 0), "an echo reply, and nothing before it");
    assert_eq!(unclaimed.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
    let counted = stack.inspect(0, |shard| shard.ip_counters().unclaimed).await.unwrap();
    assert_eq!(counted, 3);

    // The receiver is gone: the datagram is answered again.
    drop(unclaimed);
    until("it is answered by an error", async || {
        port.send(datagram([10, 0, 0, 1])).await.unwrap();
        port.try_recv().is_ok_and(|answer| (answer[9], answer[20]) == (1, 3))
    })
    .await;
}

#[tokio::test]
async fn packets_that_nobody_takes_out_are_dropped_and_counted() {
    let (stack, port, mut unclaimed) = stack_with_unclaimed();
    for _ in 0..UnclaimedPackets::CAPACITY + 100 {
        port.send(ping([192, 0, 2, 9])).await.unwrap();
    }
    let received =
        async || stack.inspect(0, |shard| shard.ip_counters().in_receives).await.unwrap();
    until("all came in", async || received().await == UnclaimedPackets::CAPACITY as u64 + 100)
        .await;
    until("a hundred are dropped", async || unclaimed.dropped() == 100).await;
    for _ in 0..UnclaimedPackets::CAPACITY {
        unclaimed.try_recv().unwrap();
    }
    assert_eq!(unclaimed.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn later_receiver_takes_over_and_gets_reason_of_end() {
    let (stack, port, mut former) = stack_with_unclaimed();
    let mut latter = stack.unclaimed();
    assert_eq!(former.recv().await.unwrap_err().kind(), ErrorKind::AddrInUse);
    port.send(ping([192, 0, 2, 9])).await.unwrap();
    latter.recv().await.unwrap();
    drop(stack);
    let why = latter.recv().await.unwrap_err();
    assert_eq!(why.to_string(), "the stack has ended: nothing of it was held any more");
}

#[tokio::test]
async fn packets_that_are_none_are_not_sent() {
    let (stack, port, _unclaimed) = stack_with_unclaimed();
    let mut cut = ping([192, 0, 2, 9]).to_vec();
    cut.pop();
    let long = packet([192, 0, 2, 9], 1, &[0; 1_481]);
    for (packet, word) in [
        (Bytes::from_static(b"no packet"), "no IP packet"),
        (cut.into(), "of the length that its header says"),
        (long, "a packet of 1501 bytes: the link carries 1500"),
        (ping([127, 0, 0, 1]), "127.0.0.1 is a loopback address"),
    ] {
        let refused = stack.inject(packet).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(word), "{refused}");
    }
    assert_eq!(port.try_recv().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// An IPv4 packet from 10.0.0.2.
fn packet(dst: [u8; 4], protocol: u8, payload: &[u8]) -> Bytes {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 2];
    header.extend(dst);
    let sum: u32 = header.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    header.extend(payload);
    header.into()
}

/// ICMP's echo request.
fn ping(dst: [u8; 4]) -> Bytes {
    packet(dst, 1, &[8, 0, 0xf7, 0xfe, 0, 0, 0, 1])
}

fn sctp(dst: [u8; 4]) -> Bytes {
    packet(dst, 132, &[0; 12])
}

/// UDP, without a checksum.
fn datagram(dst: [u8; 4]) -> Bytes {
    packet(dst, 17, &[0x12, 0x34, 0, 53, 0, 8, 0, 0])
}

#[tokio::test]
async fn stream_goes_on_over_narrowing_link() {
    for shards in [1, 2] {
        let ends = Ends::joined(shards);
        let listener = TcpListener::bind(&ends.server, SERVER).await.unwrap();
        let mut client = TcpStream::connect(&ends.client, SERVER).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        // What is in flight waits before the valve, cut for a link that is no more.
        ends.valve.send_replace(false);
        let written = text(100_000);
        client.write_all(&written[..50_000]).await.unwrap();
        until("some of it waits", async || ends.client_port.counters().waiting > 1).await;
        ends.client_port.set_mtu(1_280).await.unwrap();
        assert_eq!((ends.client.mtu(), ends.client_port.mtu()), (1_280, 1_280));
        assert!(ends.client_port.counters().outgrown > 0);
        // `carry` asserts that no packet is longer than the MTU.
        ends.valve.send_replace(true);
        let (sent, heard) = tokio::join!(client.write_all(&written[50_000..]), async {
            let mut heard = vec![0; written.len()];
            server.read_exact(&mut heard).await.map(|_| heard)
        });
        sent.unwrap();
        assert!(heard.unwrap() == written);
        // A stream that begins now is of larger segments again.
        ends.client.set_mtu(9_000).await.unwrap();
        let mut wide = TcpStream::connect(&ends.client, SERVER).await.unwrap();
        wide.write_all(b"once more").await.unwrap();
        drop((wide, client, server, listener));
        assert_empties(&ends.client).await;
        assert_empties(&ends.server).await;
    }
}

#[tokio::test]
async fn mtu_out_of_range_is_refused_in_words() {
    let (builder, port) = builder().packets(1_420);
    // Before there is a stack it is built with this one.
    port.set_mtu(1_400).await.unwrap();
    let stack = builder.address("fd00::1", 64).unwrap().build().unwrap();
    assert_eq!(stack.mtu(), 1_400);
    for error in [port.set_mtu(1_279).await.unwrap_err(), stack.set_mtu(1_279).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains("1279 bytes") && text.contains("1280"), "{text}");
    }
    assert_eq!((stack.mtu(), port.mtu()), (1_400, 1_400));
    let wire = crate::world::World::new();
    let error = wire.server.set_mtu(9_000).await.unwrap_err();
    assert!(error.to_string().contains("9000 bytes: the wire was opened for 1500"), "{error}");
    let until_ended = stack.ended();
    drop(stack);
    until_ended.await;
    let error = port.set_mtu(1_300).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}
