//! What the kernel's client sees of destinations that a stack speaks for, over TUN, beside what it sees of the
//! kernel's own.
//!
//! Needs root. Without it the test says so and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream as KernelStream;
use tokio::time::{Instant, sleep};
use whimbrel::{AnyListener, Incoming, TcpListener, Unreachable};

use crate::namespace::in_a_namespace;
use crate::world::{assert_empties, builder, text};

#[test]
fn outsides_look_to_the_kernels_client_as_they_would_from_the_kernel() {
    let name = "any_tun::outsides_look_to_the_kernels_client_as_they_would_from_the_kernel";
    in_a_namespace(name, &["ip"], outsides);
}

/// How a destination behaves, by the last number of its address.
const REFUSES: u8 = 1;
const NO_HOST: u8 = 2;
const NO_NETWORK: u8 = 3;
const NO_PORT: u8 = 4;
const SILENT: u8 = 5;
const SLOW: u8 = 6;
/// This one and those behind it.
const ECHOES: u8 = 7;

/// Long enough that a SYN comes again.
const SLOWNESS: Duration = Duration::from_millis(1_200);

#[tokio::main(flavor = "current_thread")]
async fn outsides() {
    // Two repetitions: else it takes two minutes to see nothing.
    fs::write("/proc/sys/net/ipv4/tcp_syn_retries", "2").unwrap();
    let stack = builder()
        .wire("tun:whim0,addr=10.9.0.2/24,addr=fd09::2/64".parse().unwrap())
        .shards(2)
        .any_address()
        .build()
        .unwrap();
    for words in [
        "link set lo up",
        "route add 198.51.100.0/24 dev whim0",
        "-6 route add 2001:db8::/64 dev whim0",
        // The kernel's own black hole: a link, and a station there that nobody has.
        "link add hole type veth peer name bottom",
        "link set hole up",
        "link set bottom up",
        "route add 203.0.113.0/24 dev hole",
        "neighbour add 203.0.113.1 lladdr 02:00:00:00:00:99 dev hole",
    ] {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "{words}");
    }
    let serving = tokio::spawn(serve(TcpListener::bind_any(&stack).unwrap()));
    tokio::join!(
        looks(|last| IpAddr::from([198, 51, 100, last])),
        looks(|last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)])),
    );
    serving.abort();
    let _ = serving.await;
    assert_empties(&stack).await;
}

/// What the kernel's client sees of each, and when.
async fn looks(to: impl Fn(u8) -> IpAddr) {
    // Beside the kernel's own black hole, at the same time.
    let (silent, hole, slow) =
        tokio::join!(dial(to(SILENT)), dial(IpAddr::from([203, 0, 113, 1])), dial(to(SLOW)));
    assert_eq!(errno(silent.0), errno(hole.0));
    let given_up = hole.1;
    assert!(silent.1.abs_diff(given_up) < given_up / 2, "{:?} and {given_up:?}", silent.1);
    assert!(slow.1 >= SLOWNESS, "{:?}", slow.1);
    echoed(slow.0.unwrap()).await;

    let closed = dial(IpAddr::from([127, 0, 0, 1])).await.0;
    let closed = errno(closed);
    let refusals =
        [(REFUSES, closed), (NO_PORT, closed), (NO_HOST, EHOSTUNREACH), (NO_NETWORK, ENETUNREACH)];
    for (last, expected) in refusals {
        let (refused, took) = dial(to(last)).await;
        assert_eq!(errno(refused), expected, "{last}");
        assert!(took < given_up, "{last}: {took:?}");
    }
    for last in ECHOES..ECHOES + 3 {
        let stream = dial(to(last)).await.0.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), SocketAddr::new(to(last), 80));
        echoed(stream).await;
    }
}

async fn dial(addr: IpAddr) -> (io::Result<KernelStream>, Duration) {
    let began = Instant::now();
    (KernelStream::connect((addr, 80)).await, began.elapsed())
}

async fn serve(listener: AnyListener) -> io::Result<()> {
    loop {
        tokio::spawn(decide(listener.incoming().await?));
    }
}

async fn decide(incoming: Incoming) -> io::Result<()> {
    let last = match incoming.destination().ip() {
        IpAddr::V4(addr) => addr.octets()[3],
        IpAddr::V6(addr) => addr.octets()[15],
    };
    match last {
        REFUSES => incoming.reset(),
        NO_HOST => incoming.unreachable(Unreachable::Host),
        NO_NETWORK => incoming.unreachable(Unreachable::Network),
        NO_PORT => incoming.unreachable(Unreachable::Port),
        SILENT => incoming.ignore(),
        _ => {
            if last == SLOW {
                sleep(SLOWNESS).await;
            }
            let (mut read, mut write) = incoming.accept().await?.into_split();
            tokio::io::copy(&mut read, &mut write).await?;
            write.shutdown().await?;
        }
    }
    Ok(())
}

async fn echoed(stream: KernelStream) {
    let (mut read, mut write) = stream.into_split();
    let (sent, mut received) = (text(1 << 20), Vec::new());
    let writing = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    tokio::join!(writing, async { read.read_to_end(&mut received).await.unwrap() });
    assert!(received == sent, "{} bytes came back", received.len());
}

fn errno(dialled: io::Result<KernelStream>) -> i32 {
    dialled.unwrap_err().raw_os_error().unwrap()
}

const ENETUNREACH: i32 = 101;
const EHOSTUNREACH: i32 = 113;
