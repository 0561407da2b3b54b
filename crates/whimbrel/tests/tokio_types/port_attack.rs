//! Ports whose other end means no good: packets that are none, futures dropped midway, ends while queues are
//! full, and dials of peers that do as they like.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep, timeout};
use whimbrel::{Incoming, PacketPort, Stack, TcpListener, TcpStream, UdpSocket, Unreachable};
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{Address, IcmpMessage, IpHeader, Ipv4Header, Protocol, RawWindow, SeqNum, Sum};

use crate::world::{SERVER, assert_empties, builder, text};

/// A server and a client whose packets `carry` hands on, with what it makes of them.
fn joined(shards: u16, rng: &mut Rng) -> (Stack, Stack) {
    let host = |addr| {
        let (builder, port) = builder().shards(shards).packets(1_420);
        (builder.address(addr, 24).unwrap().build().unwrap(), Arc::new(port))
    };
    let (server, server_port) = host("10.0.0.1");
    let (client, client_port) = host("10.0.0.2");
    tokio::spawn(carry(Arc::clone(&server_port), Arc::clone(&client_port), rng.fork()));
    tokio::spawn(carry(client_port, server_port, rng.fork()));
    (server, client)
}

/// Carries packets one way until one of both stacks ends, and with each something that is none.
async fn carry(from: Arc<PacketPort>, to: Arc<PacketPort>, mut rng: Rng) {
    while let Ok(packet) = from.recv().await {
        let garbage = garbage(&packet, &mut rng);
        if to.send(garbage).await.is_err() || to.send(packet).await.is_err() {
            return;
        }
    }
}

/// Returns a damaged packet.
fn garbage(packet: &Bytes, rng: &mut Rng) -> Bytes {
    let mut bytes = packet.to_vec();
    match rng.u8(..6) {
        0 => bytes = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect(),
        1 => bytes.truncate(rng.usize(..bytes.len())),
        // A checksum finds one byte that is another.
        2 => bytes[rng.usize(..packet.len())] ^= rng.u8(1..),
        3 => {
            let (len, version) = (rng.usize(..=65_535), rng.u8(..));
            bytes = vec![rng.u8(..); len];
            bytes.first_mut().into_iter().for_each(|first| *first = version);
        }
        4 => bytes.clear(),
        // What stands behind a packet is none of it.
        _ => bytes.resize(rng.usize(bytes.len()..=65_535), 7),
    }
    bytes.into()
}

#[tokio::test]
async fn who_is_honest_is_served_whatever_else_is_put_into_a_port() {
    for shards in [1, 2] {
        let seed = fastrand::u64(..);
        println!("seed {seed}, {shards} shards");
        let (server, client) = joined(shards, &mut Rng::with_seed(seed));
        let listener = TcpListener::bind(&server, SERVER).await.unwrap();
        let (connected, accepted) =
            tokio::join!(TcpStream::connect(&client, SERVER), listener.accept());
        let (mut stream, (mut peer, _)) = (connected.unwrap(), accepted.unwrap());
        let asked = UdpSocket::bind(&server, "10.0.0.1:53").await.unwrap();
        let asking = UdpSocket::bind(&client, "10.0.0.2:0").await.unwrap();
        let sent = text(1 << 20);
        let streams = async {
            stream.write_all(&sent).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let datagrams = async {
            for number in 0..200_u32 {
                asking.send_to(&number.to_be_bytes(), "10.0.0.1:53").await.unwrap();
                // Some come twice: what carries them makes copies.
                while asked.recv_datagram().await.unwrap().data != number.to_be_bytes()[..] {}
            }
        };
        let ((), read, ()) = tokio::join!(streams, peer.read_to_end(&mut received), datagrams);
        read.unwrap();
        assert!(received == sent, "other bytes arrived");
        let mut dropped = 0;
        for shard in 0..shards.into() {
            let counters = server.inspect(shard, |it| it.ip_counters().clone()).await.unwrap();
            dropped += counters.drops().map(|(_, count)| count).sum::<u64>();
        }
        assert!(dropped > 100, "{dropped} packets were dropped");
        drop((stream, peer, listener, asked, asking));
        assert_empties(&server).await;
        assert_empties(&client).await;
    }
}

/// An echo request of this number, from 10.0.0.2.
fn ping(number: u16) -> Bytes {
    let message = IcmpMessage::EchoRequest { identifier: 1, sequence: number, data: &[] };
    let mut bytes = vec![0; message.wire_len()];
    message.emit(&mut bytes);
    wrap([10, 0, 0, 2], [10, 0, 0, 1], Protocol::ICMP, &bytes)
}

/// Which request it answers.
fn number_of(reply: &Bytes) -> u16 {
    let (_, payload) = IpHeader::parse(reply).unwrap();
    match IcmpMessage::parse(payload).unwrap() {
        IcmpMessage::EchoReply { sequence, .. } => sequence,
        other => panic!("{other:?}"),
    }
}

fn wrap(src: [u8; 4], dst: [u8; 4], protocol: Protocol, payload: &[u8]) -> Bytes {
    let mut packet = vec![0; Ipv4Header::LEN];
    Ipv4Header::new(src.into(), dst.into(), protocol, payload.len()).emit(&mut packet);
    packet.extend_from_slice(payload);
    packet.into()
}

/// Returns the result of a future that is polled once and then dropped.
async fn polled_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(unconstrained(future));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn dropped_port_futures_lose_and_repeat_nothing() {
    let (builder, port) = builder().packets(1_500);
    let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
    let (mut dropped, mut taken) = (0, Vec::new());
    let mut put = Vec::new();
    for round in 0..20 {
        for number in 0..1_000 {
            let number = round * 1_000 + number;
            match polled_once(port.send(ping(number))).await {
                Some(sent) => {
                    sent.unwrap();
                    put.push(number);
                }
                None => dropped += 1,
            }
        }
        while taken.len() < put.len() {
            match polled_once(port.recv()).await {
                Some(reply) => taken.push(number_of(&reply.unwrap())),
                None => tokio::task::yield_now().await,
            }
        }
    }
    // How many find the port full depends on how fast the stack is, where that has a thread of its own.
    println!("{dropped} dropped");
    assert!(put.len() >= 20 * PacketPort::CAPACITY, "{}", put.len());
    assert!(taken == put, "of {} that were sent others are answered", put.len());
    assert_eq!(port.counters().sent, put.len() as u64);
    assert!(polled_once(port.recv()).await.is_none());
    assert_empties(&stack).await;
}

#[tokio::test]
async fn whoever_waits_at_a_full_port_hears_that_its_stack_has_ended() {
    let (builder, port) = builder().packets(1_500);
    let port = Arc::new(port);
    let mut waiting = JoinSet::new();
    for number in 0..PacketPort::CAPACITY as u16 {
        port.try_send(ping(number)).unwrap();
    }
    for number in 0..100 {
        let port = Arc::clone(&port);
        waiting.spawn(async move { port.send(ping(number)).await });
    }
    tokio::task::yield_now().await;
    // The answers are not taken, so the stack stops taking packets.
    drop(builder);
    while let Some(sent) = waiting.join_next().await {
        assert_eq!(sent.unwrap().unwrap_err().kind(), ErrorKind::NotConnected);
    }
    let counters = port.counters();
    assert_eq!((counters.sent, counters.lost), (512, 512));
}

#[tokio::test]
async fn a_port_that_is_dropped_full_both_ways_ends_its_stack_at_once() {
    for shards in [1, 2] {
        let (builder, port) = builder().shards(shards).packets(1_500);
        let stack = builder.address("10.0.0.1", 24).unwrap().build().unwrap();
        // Answers wait outward, and what is to be answered inward.
        let end = Instant::now() + Duration::from_secs(20);
        let mut number = 0;
        while port.counters().waiting < PacketPort::CAPACITY || number % 64 > 0 {
            assert!(Instant::now() < end, "{:?}", port.counters());
            let _ = timeout(Duration::from_millis(1), port.send(ping(number))).await;
            number = number.wrapping_add(1);
        }
        while port.try_send(ping(0)).is_ok() {}
        assert!(port.counters().waiting <= PacketPort::CAPACITY, "{:?}", port.counters());
        drop(port);
        let ended = timeout(Duration::from_secs(5), stack.ended()).await.unwrap();
        assert!(ended.to_string().contains("its PacketPort was dropped"), "{ended}");
    }
}

/// A peer that dials, and answers as it likes.
struct Dialler {
    port: Arc<PacketPort>,
    rng: Rng,
}

impl Dialler {
    /// SYNs to a few destinations and to many, and now and then something else where a SYN may be.
    async fn dial(&mut self, count: u32) {
        for _ in 0..count {
            let flags = match self.rng.u8(..8) {
                0 => TcpFlags::RST,
                1 => TcpFlags::ACK,
                2 => TcpFlags::FIN | TcpFlags::ACK,
                _ => TcpFlags::SYN,
            };
            let dst = [192, 0, self.rng.u8(..3), self.rng.u8(..)];
            let ports = [self.rng.u16(4_000..4_050), self.rng.u16(80..82)];
            let numbers = [self.rng.u32(1_000..1_004), self.rng.u32(..)];
            self.port.send(segment(dst, ports, flags, numbers)).await.unwrap();
            if self.rng.u8(..64) == 0 {
                sleep(Duration::from_micros(200)).await;
            }
        }
    }

    /// Completes, resets or ignores what is accepted, and resets whatever else comes.
    async fn answer(mut self) {
        while let Ok(packet) = self.port.recv().await {
            let (ip, payload) = IpHeader::parse(&packet).unwrap();
            let Some((header, _)) = TcpHeader::parse(payload).ok().filter(|_| is_tcp(&ip)) else {
                continue;
            };
            let (dst, ports) = (ip.src.v4_bytes(), [header.dst_port, header.src_port]);
            let reset = segment(dst, ports, TcpFlags::RST, [header.ack.raw(), 0]);
            let answer = match self.rng.u8(..4) {
                _ if header.flags.is_rst() => continue,
                _ if !header.flags.is_syn() => reset,
                0 => continue,
                1 => reset,
                _ => {
                    let numbers = [header.ack.raw(), header.seq.raw().wrapping_add(1)];
                    segment(dst, ports, TcpFlags::ACK, numbers)
                }
            };
            if self.port.send(answer).await.is_err() {
                return;
            }
        }
    }
}

fn is_tcp(ip: &IpHeader) -> bool {
    ip.protocol == Protocol::TCP
}

/// A segment without text from 10.0.0.2.
fn segment(dst: [u8; 4], ports: [u16; 2], flags: TcpFlags, numbers: [u32; 2]) -> Bytes {
    let header = TcpHeader {
        src_port: ports[0],
        dst_port: ports[1],
        seq: SeqNum::new(numbers[0]),
        ack: SeqNum::new(numbers[1]),
        flags,
        window: RawWindow::new(65_535),
        ..TcpHeader::default()
    };
    let mut bytes = vec![0; header.header_len(OptionOrder::Linux)];
    header.emit(OptionOrder::Linux, &mut bytes);
    let [src, to] = [[10, 0, 0, 2], dst].map(Address::from_v4_bytes);
    let sum = Sum::pseudo_header(src, to, Protocol::TCP.0, bytes.len() as u32);
    let sum = sum.add_bytes(&bytes).finish();
    TcpHeader::set_checksum(&mut bytes, sum);
    wrap([10, 0, 0, 2], dst, Protocol::TCP, &bytes)
}

/// Decides in some way, or does not; returns whether a connection came of it.
async fn decide(mut incoming: Incoming, mut rng: Rng) -> bool {
    sleep(Duration::from_micros(rng.u64(..3_000))).await;
    match rng.u8(..9) {
        0 => incoming.reset(),
        1 => incoming.ignore(),
        2 => incoming.unreachable(Unreachable::Host),
        3 => drop(incoming),
        4 => drop(polled_once(incoming.accept()).await),
        5 => drop(timeout(Duration::from_micros(rng.u64(..3_000)), incoming.accept()).await),
        6 => {
            drop(timeout(Duration::from_millis(2), incoming.withdrawn()).await);
            drop(incoming.accept().await);
        }
        _ => return incoming.accept().await.is_ok(),
    }
    false
}

#[tokio::test]
async fn whatever_peers_and_verdicts_do_nothing_is_left_of_dials() {
    for shards in [1, 2] {
        let seed = fastrand::u64(..);
        println!("seed {seed}, {shards} shards");
        let mut rng = Rng::with_seed(seed);
        let (mut builder, port) = builder().shards(shards).packets(1_500);
        let once = [("initial_rto", "100ms"), ("net.ipv4.tcp_synack_retries", "0")];
        for (name, value) in once {
            builder = builder.set(name, value).unwrap();
        }
        let gateway = builder.address("10.0.0.1", 24).unwrap().any_address().build().unwrap();
        let listener = TcpListener::bind_any(&gateway).unwrap();
        let port = Arc::new(port);
        let answering = Dialler { port: Arc::clone(&port), rng: rng.fork() };
        let answering = tokio::spawn(answering.answer());
        let mut dialler = Dialler { port, rng: rng.fork() };
        let mut deciding = JoinSet::new();
        let dialling = tokio::spawn(async move { dialler.dial(20_000).await });
        while !dialling.is_finished() {
            // Now and then the future is dropped while something may be on its way to it.
            let wait = Duration::from_micros(rng.u64(..2_000));
            if let Ok(incoming) = timeout(wait, listener.next()).await {
                deciding.spawn(decide(incoming.unwrap(), rng.fork()));
            }
        }
        dialling.await.unwrap();
        drop(listener);
        let mut opened = 0;
        while let Some(decided) = deciding.join_next().await {
            opened += u32::from(decided.unwrap());
        }
        assert!(opened > 50, "{opened} connections");
        assert_empties(&gateway).await;
        drop(gateway);
        answering.await.unwrap();
    }
}
