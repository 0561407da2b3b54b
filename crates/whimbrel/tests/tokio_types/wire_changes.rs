//! A wire that changes while stacks use it, in virtual time.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};
use whimbrel::link::PacketVerdict;
use whimbrel::parts::link::filter::Filter;
use whimbrel::parts::link::pcapng::LinkType;
use whimbrel::{LinkConfig, LinkHandle, Stack, TcpListener, TcpStream, UdpSocket, mem_wire};

/// Two hosts, and the link from the first to the second.
struct Hosts {
    first: Stack,
    second: Stack,
    link: LinkHandle,
}

fn hosts(link: &str) -> Hosts {
    let config: LinkConfig = link.parse().unwrap();
    let (left, right) = mem_wire(config.clone(), config, 1).unwrap();
    let link = left.outgoing();
    let first = Stack::builder().mem(left).address("10.0.0.1", 24).unwrap().seed(1);
    let second = Stack::builder().mem(right).address("10.0.0.2", 24).unwrap().seed(2);
    Hosts { first: first.build().unwrap(), second: second.build().unwrap(), link }
}

impl Hosts {
    async fn sockets(&self) -> (UdpSocket, UdpSocket) {
        let from = UdpSocket::bind(&self.first, "10.0.0.1:7").await.unwrap();
        let to = UdpSocket::bind(&self.second, "10.0.0.2:7").await.unwrap();
        from.connect("10.0.0.2:7").await.unwrap();
        (from, to)
    }

    async fn connect(&self) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(&self.second, "10.0.0.2:7").await.unwrap();
        let connected = TcpStream::connect(&self.first, "10.0.0.2:7");
        let (connected, accepted) = tokio::join!(connected, listener.accept());
        (connected.unwrap(), accepted.unwrap().0)
    }
}

/// Receives the next datagram, and returns its first byte.
async fn receive(socket: &UdpSocket) -> u8 {
    let mut text = [0; 2_000];
    socket.recv_from(&mut text).await.unwrap();
    text[0]
}

#[tokio::test(start_paused = true)]
async fn full_queue_drains_at_new_rate() {
    let hosts = hosts("rate=1M,queue=100p");
    let (from, to) = hosts.sockets().await;
    let began = Instant::now();
    // 1,250 bytes with the headers: 10 ms at 1 Mb/s, 1 ms at 10 Mb/s.
    for number in 0..101 {
        from.send(&[number; 1_222]).await.unwrap();
    }
    let link = hosts.link.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(500)).await;
        link.set("rate=10M,queue=10p".parse().unwrap());
    });
    for number in 0..100 {
        assert_eq!(receive(&to).await, number);
    }
    assert_eq!(began.elapsed(), Duration::from_millis(550));
    let counters = hosts.link.counters();
    assert_eq!((counters.lost_queue, counters.lost(), counters.delivered), (1, 1, 100));
}

#[tokio::test(start_paused = true)]
async fn configuration_before_build_applies() {
    let (left, right) = mem_wire(LinkConfig::default(), LinkConfig::default(), 1).unwrap();
    left.outgoing().set("delay=30ms".parse().unwrap());
    let first = Stack::builder().mem(left).address("10.0.0.1", 24).unwrap().build().unwrap();
    let second = Stack::builder().mem(right).address("10.0.0.2", 24).unwrap().build().unwrap();
    let began = Instant::now();
    first.ping("10.0.0.2").await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(30));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn link_that_is_down_loses_packets_until_up() {
    let hosts = hosts("delay=10ms");
    let (mut sender, mut receiver) = hosts.connect().await;
    hosts.link.down();
    sender.write_all(b"late").await.unwrap();
    sleep(Duration::from_secs(10)).await;
    let lost = hosts.link.counters().lost_down;
    assert!(lost >= 4, "{lost} packets were lost in ten seconds of retransmission");
    hosts.link.up();
    let mut text = [0; 4];
    receiver.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"late");
    assert_eq!(hosts.link.counters().lost(), lost);
}

#[tokio::test(start_paused = true)]
async fn packets_on_link_that_goes_down_are_lost() {
    let hosts = hosts("delay=10ms");
    let (from, to) = hosts.sockets().await;
    from.send(&[1]).await.unwrap();
    sleep(Duration::from_millis(5)).await;
    hosts.link.down();
    hosts.link.up();
    from.send(&[2]).await.unwrap();
    assert_eq!(receive(&to).await, 2);
    assert_eq!(hosts.link.counters().lost_down, 1);
}

#[tokio::test(start_paused = true)]
async fn drop_next_loses_that_many_packets() {
    let hosts = hosts("delay=10ms");
    hosts.link.drop_next(2);
    let began = Instant::now();
    hosts.connect().await;
    // RFC 6298 2.1: "Until a round-trip time (RTT) measurement has been made for a segment sent between
    // the sender and receiver, the sender SHOULD set RTO <- 1 second"; 5.5: "RTO <- RTO * 2".
    let (took, expected) = (began.elapsed(), Duration::from_millis(1_000 + 2_000 + 20));
    let latest = expected + Duration::from_millis(20);
    assert!((expected..latest).contains(&took), "timers have ticks: {took:?}");
    assert_eq!(hosts.link.counters().lost_targeted, 2);
}

#[tokio::test(start_paused = true)]
async fn held_packets_arrive_in_order_after_release() {
    let hosts = hosts("delay=10ms");
    let (from, to) = hosts.sockets().await;
    from.send(&[1]).await.unwrap();
    sleep(Duration::from_millis(5)).await;
    hosts.link.hold();
    from.send(&[2]).await.unwrap();
    from.send(&[3]).await.unwrap();
    let began = Instant::now();
    // It was on the link before.
    assert_eq!(receive(&to).await, 1);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(hosts.link.held(), 2);
    hosts.link.release();
    assert_eq!((receive(&to).await, receive(&to).await), (2, 3));
    assert_eq!(began.elapsed(), Duration::from_millis(5 + 60_000 + 10));
    from.send(&[4]).await.unwrap();
    assert_eq!((receive(&to).await, hosts.link.held()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn rule_judges_each_packet() {
    let hosts = hosts("delay=10ms");
    let (from, to) = hosts.sockets().await;
    let filter: Filter = "udp and greater 100".parse().unwrap();
    let mut count = 0;
    hosts.link.on(move |packet| {
        count += u32::from(filter.matches(LinkType::Raw, packet));
        match count {
            1 => PacketVerdict::Drop,
            2 => PacketVerdict::Duplicate,
            _ => PacketVerdict::Pass,
        }
    });
    for number in [1, 2, 3] {
        from.send(&[number; 100]).await.unwrap();
    }
    let mut received = Vec::new();
    for _ in 0..3 {
        received.push(receive(&to).await);
    }
    assert_eq!(received, [2, 2, 3]);
    let counters = hosts.link.counters();
    assert_eq!((counters.lost_targeted, counters.sent, counters.delivered), (1, 4, 3));
    hosts.link.clear_rule();
    from.send(&[4; 100]).await.unwrap();
    assert_eq!(receive(&to).await, 4);
}

#[tokio::test(start_paused = true)]
async fn rule_may_use_handle_of_its_link() {
    let hosts = hosts("delay=10ms");
    let (from, to) = hosts.sockets().await;
    let link = hosts.link.clone();
    hosts.link.on(move |_| {
        link.drop_next(1);
        link.clear_rule();
        PacketVerdict::Pass
    });
    from.send(&[1]).await.unwrap();
    // The first was dropped: a packet meets the rule before `drop_next`.
    from.send(&[2]).await.unwrap();
    assert_eq!(receive(&to).await, 2);
    assert_eq!(hosts.link.counters().lost_targeted, 1);
}
