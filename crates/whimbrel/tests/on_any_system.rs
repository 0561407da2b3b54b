//! Tests that need nothing of Linux: stacks joined inside the process, by a wire in memory or by packets that a
//! program carries, driven by threads and by the runtime.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use whimbrel::{Driver, PacketPort, Stack, StackBuilder, TcpListener, TcpStream, UdpSocket};

const DRIVERS: [Driver; 2] = [Driver::Thread, Driver::Runtime];
const MTU: u16 = 1_500;
/// Number of bytes that go there, and back.
const TEXT: usize = 1_000_000;

#[tokio::test]
async fn stacks_talk_over_packets_that_a_program_carries() {
    for driver in DRIVERS {
        for shards in [1, 2] {
            let (client, near) = Stack::builder().packets(MTU);
            let (server, far) = Stack::builder().packets(MTU);
            let stacks = [(client, "10.0.0.1"), (server, "10.0.0.2")]
                .map(|(builder, address)| built(builder, address, driver, shards));
            let carried = tokio::spawn(async move {
                let (there, back) = tokio::join!(carry(&near, &far), carry(&far, &near));
                (there, back)
            });
            talk(&stacks).await;
            drop(stacks);
            let (there, back) = ended(carried).await.unwrap();
            let least = TEXT / usize::from(MTU - 40);
            assert!(there > least && back > least, "{there} and {back} packets");
        }
    }
}

#[tokio::test]
async fn stacks_talk_over_a_wire_in_memory() {
    for driver in DRIVERS {
        let far = "rate=100M,delay=2ms".parse::<whimbrel::LinkConfig>().unwrap();
        let (near, far) = whimbrel::mem_wire(far.clone(), far, 7).unwrap();
        let near = built(Stack::builder().mem(near), "10.0.0.1", driver, 1);
        talk(&[near, built(Stack::builder().mem(far), "10.0.0.2", driver, 1)]).await;
    }
}

fn built(builder: StackBuilder, address: &str, driver: Driver, shards: u16) -> Stack {
    builder.address(address, 24).unwrap().driver(driver).shards(shards).build().unwrap()
}

/// Hands on what leaves the one until a stack has ended. Returns how many packets it was.
async fn carry(from: &PacketPort, to: &PacketPort) -> usize {
    let mut count = 0;
    while let Ok(packet) = from.recv().await {
        count += 1;
        if to.send(packet).await.is_err() {
            break;
        }
    }
    count
}

/// A megabyte there and back, a datagram there and back, and an end that both sides see.
async fn talk([client, server]: &[Stack; 2]) {
    let listener = TcpListener::bind(server, "10.0.0.2:7").await.unwrap();
    let socket = UdpSocket::bind(server, "10.0.0.2:7").await.unwrap();
    let echo = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let echoed = tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
        let mut datagram = [0; 64];
        let (len, peer) = socket.recv_from(&mut datagram).await.unwrap();
        socket.send_to(&datagram[..len], peer).await.unwrap();
        echoed
    });
    let text: Vec<u8> = (0..TEXT).map(|at| ((at * 31) >> 3) as u8).collect();
    let (mut read, mut write) =
        TcpStream::connect(client, "10.0.0.2:7").await.unwrap().into_split();
    let send = async {
        write.write_all(&text).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let (_, len) = ended(async { tokio::join!(send, read.read_to_end(&mut received)) }).await;
    assert_eq!(len.unwrap(), text.len());
    assert!(received == text, "the text came back as another");
    let asking = UdpSocket::bind(client, "10.0.0.1:0").await.unwrap();
    asking.send_to(b"whimbrel", "10.0.0.2:7").await.unwrap();
    let mut answer = [0; 64];
    let (len, _) = ended(asking.recv_from(&mut answer)).await.unwrap();
    assert_eq!(answer[..len], *b"whimbrel");
    assert_eq!(ended(echo).await.unwrap(), text.len() as u64);
}

/// Returns the result, or fails after a while.
async fn ended<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), future).await.expect("it ends within a minute")
}
